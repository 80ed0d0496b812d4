"""Stochastic steps on a few classes: neither a step's cost nor memory grows with their number.

A drawn class's sites are taken at a row's T = Σ(1 − p_c) (likelihoods/drawn_classes.py). Each row
remembers T, how often it was seen, and its own class's 1 − p_y, and each class the mean r_c of
1 − p_c over the rows of others: 3N + C numbers. The D drawn classes that are not a row's own say

    T ≈ (1 − p_y) + Σ_{c≠y} r_c + (C − 1)/D Σ_{drawn c≠y} (1 − p_c − r_c),

which is right on average over draws, and T is the mean of the last few of these.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.compilation import program
from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.inference.passes import Pass, Statistics, gradient_pass, step_pass
from gpclf.likelihoods.base import RowBound, Sites
from gpclf.likelihoods.drawn_classes import DrawnClasses, DrawnLabel
from gpclf.likelihoods.logistic_softmax import LogisticSoftmaxFamily
from gpclf.model import Model, Prepared, Theta

SMALLEST = 1e-6  # of 1 − p_c as remembered: the memory steers, it need not resolve
NEWEST = 0.1  # share of the newest estimate in what is remembered, once there are ten


@program
def _rest(likelihood: DrawnClasses, sites: Sites, label: DrawnLabel) -> Float[Array, "B K"]:
    """1 − p_c, read off the sites: γ_c = [c=y] − 2λ_c = s(T) p_c."""
    own = label.place[:, None] == jnp.arange(likelihood.drawn)
    gamma = own - 2 * jnp.asarray(sites.linear) / likelihood.factor
    log_slope = likelihood.whole.log_slope(label.log_total, likelihood.n_classes)
    return jnp.clip(1 - gamma * jnp.exp(-log_slope)[:, None], 0.0, 1.0)


def estimated_total(
    rest: Float[np.ndarray, "B K"],
    own: Float[np.ndarray, "B"],
    usual: Float[np.ndarray, "C"],
    y: Int[np.ndarray, "B"],
    drawn: Int[np.ndarray, "K"],
) -> Float[np.ndarray, "B"]:
    """T of rows, from 1 − p of the drawn classes: right on average over draws."""
    is_own = y[:, None] == drawn
    beyond = np.where(is_own, 0.0, rest - usual[drawn]).sum(axis=1)
    seen = np.maximum((~is_own).sum(axis=1), 1)
    return own + usual.sum() - usual[y] + (len(usual) - 1) / seen * beyond


class AllClasses:
    """Every class in every step: nothing to remember."""

    factor = 1.0

    def narrowed(self, theta: Theta) -> Theta:
        """θ itself."""
        return theta

    widened = narrowed

    def draw(self, rng: np.random.Generator) -> slice:
        """All of them."""
        return slice(None)

    def step(
        self, prepared: Prepared, m: Moments, chunk: Chunk, drawn: Any
    ) -> tuple[Statistics, Sites]:
        """A pass over the chunk itself."""
        return step_pass(prepared, m, chunk)

    def gradient(self, prepared: Prepared, m: Moments, chunk: Chunk, drawn: Any) -> Pass:
        """Likewise, with gradients."""
        return gradient_pass(prepared, m, chunk)

    def target(self, target: Natural) -> Natural:
        """The target itself."""
        return target

    def memory(self) -> tuple:
        """None."""
        return ()

    def go_on(self, memory: tuple) -> None:
        """As before."""


class ClassDraws:
    """What rows remember of classes, and the model as the drawn ones see it."""

    def __init__(self, whole: LogisticSoftmaxFamily, n_rows: int, n_classes: int, count: int):
        self.likelihood = DrawnClasses(whole, n_classes, count)
        self.own = np.full(n_rows, 0.5, np.float32)  # 1 − p_y; where f is 0, a half
        self.usual = np.full(n_classes, 0.5)  # r_c
        self.total = np.full(n_rows, 0.5 * n_classes, np.float32)  # T
        self.looks = np.zeros(n_rows, np.int32)  # how many estimates T has seen
        self.factor = n_classes / count

    @classmethod
    def of(cls, theta: Theta, n_rows: int, q: Natural, count: int) -> "ClassDraws":
        """For a model of all classes, of which so many are drawn."""
        whole = theta.model.likelihood
        assert isinstance(whole, LogisticSoftmaxFamily)
        return cls(whole, n_rows, len(q.linear), count)

    def step(
        self, prepared: Prepared, m: Moments, chunk: Chunk, drawn: Any
    ) -> tuple[Statistics, Sites]:
        """A pass over the chunk as the drawn classes see it, which is remembered."""
        seen = self.seen_by(chunk, drawn)
        statistics, sites = step_pass(prepared, m, seen)
        self.remember(sites, seen, chunk.y, drawn)
        return statistics, sites

    def gradient(self, prepared: Prepared, m: Moments, chunk: Chunk, drawn: Any) -> Pass:
        """Likewise, with gradients."""
        seen = self.seen_by(chunk, drawn)
        found = gradient_pass(prepared, m, seen)
        self.remember(found.sites, seen, chunk.y, drawn)
        return found

    def narrowed(self, theta: Theta) -> Theta:
        """θ with the likelihood of drawn classes."""
        return Theta(self._with(theta, self.likelihood), theta.Z)

    def widened(self, theta: Theta) -> Theta:
        """θ with the likelihood of all classes."""
        return Theta(self._with(theta, self.likelihood.whole), theta.Z)

    @staticmethod
    def _with(theta: Theta, likelihood: RowBound) -> Model:
        return replace(theta.model, likelihood=likelihood)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Classes, each equally likely, none twice."""
        return np.sort(rng.choice(self.likelihood.n_classes, self.likelihood.drawn, replace=False))

    def seen_by(self, chunk: Chunk, drawn: Any) -> Chunk:
        """The chunk with labels as the drawn classes see them."""
        y, rows = np.asarray(chunk.y), np.asarray(chunk.rows)
        matches = y[:, None] == drawn
        place = np.where(matches.any(axis=1), matches.argmax(axis=1), len(drawn))
        log_total = np.log(self.total[rows]).astype(chunk.X.dtype)
        label = DrawnLabel(jnp.asarray(place), jnp.asarray(log_total))
        return replace(chunk, y=label)

    def remember(self, sites: Sites, chunk: Chunk, y: Any, drawn: Any) -> None:
        """Renew what rows and classes know, from what a pass found of the drawn classes."""
        real = np.asarray(chunk.weight) > 0
        rows, y = np.asarray(chunk.rows)[real], np.asarray(y)[real]
        rest = np.asarray(_rest(self.likelihood, sites, chunk.y), np.float64)[real]
        rest = np.maximum(rest, SMALLEST)
        is_own = y[:, None] == drawn
        mine = is_own.any(axis=1)
        self.own[rows[mine]] = rest[is_own]
        others = np.maximum((~is_own).sum(axis=0), 1)
        mean = np.where(is_own, 0.0, rest).sum(axis=0) / others
        self.usual[drawn] += NEWEST * np.where((~is_own).any(axis=0), mean - self.usual[drawn], 0.0)
        estimate = estimated_total(rest, self.own[rows], self.usual, y, drawn)
        self.looks[rows] += 1
        share = np.maximum(1 / self.looks[rows], NEWEST)
        mixed = self.total[rows] + share * (estimate - self.total[rows])
        n_classes = self.likelihood.n_classes
        self.total[rows] = np.clip(mixed, SMALLEST * n_classes, n_classes)

    def memory(self) -> tuple:
        """What rows and classes know."""
        return self.own, self.usual, self.total, self.looks

    def go_on(self, memory: tuple) -> None:
        """From what others knew."""
        self.own, self.usual, self.total, self.looks = memory

    def target(self, target: Natural) -> Natural:
        """Where a step of the drawn classes goes: their own sites, not C/K times those."""
        eye = np.eye(target.linear.shape[1])
        precision = (target.precision - eye) / self.factor + eye
        return Natural(target.linear / self.factor, precision)
