"""Scores of rows left out, under one kernel: what a bound on the rows seen cannot say.

A fold is another set of weights for the same features: its q takes a few steps and no new feature,
so that several of them cost little more than one. Rows left out are scored by the predictive.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.compilation import program
from gpclf.data import Chunk, ChunkRows, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.passes import features_of
from gpclf.inference.rules import Rule
from gpclf.likelihoods import Likelihood
from gpclf.model import Prepared
from gpclf.precision import cast

FOLDS = 5


@program
def _log_probability(prepared: Prepared, q: Moments, chunk: Chunk) -> Float[Array, "B"]:
    """log p(y) of every row, as predicted."""
    prepared, q = cast((prepared, q), chunk.X.dtype)
    mu, nu = prepared.marginals(features_of(prepared, chunk), q)
    likelihood = prepared.model.likelihood
    assert isinstance(likelihood, Likelihood)  # of all classes
    logs = jax.vmap(likelihood.log_probabilities)(mu, nu)
    return jnp.take_along_axis(logs, chunk.y[:, None], axis=1)[:, 0]


def folds_of(rows: Rows, rng: np.random.Generator, count: int = FOLDS) -> Kept[np.ndarray]:
    """A fold for every row, chunk by chunk: each class is spread evenly over all of them."""
    chunks = rows.keep(lambda chunk: np.where(np.asarray(chunk.weight) > 0, chunk.y, -1))
    y = np.concatenate(chunks)
    order = np.argsort(y + rng.random(len(y)), kind="stable")  # by class, at random within it
    fold = np.empty(len(y), np.int64)
    fold[order] = np.arange(len(y)) % count
    return Kept(np.split(fold, len(chunks)))


class FoldScores(NamedTuple):
    """The sum of log-probabilities of the rows left out, fold by fold, and their weights."""

    sums: Float[np.ndarray, "F"]
    weights: Float[np.ndarray, "F"]

    @property
    def mean(self) -> float:
        """That of a row."""
        return float(self.sums.sum() / self.weights.sum())

    def gain(self, other: "FoldScores") -> tuple[float, float]:
        """How much better than another a row is, and the standard error of that over folds."""
        gains = (self.sums - other.sums) / self.weights
        return self.mean - other.mean, float(np.std(gains, ddof=1) / np.sqrt(len(gains)))


def fold_scores(
    rule: Rule,
    prepared: Prepared,
    starts: list[Natural],
    rows: Rows,
    folds: Kept[np.ndarray],
    limits: Limits,
) -> tuple[FoldScores, list[Natural]]:
    """One q for each fold, from where they start, of rows whose features are kept."""
    found, sums, weights = [], [], []
    for fold, start in enumerate(starts):
        out = Kept(own == fold for own in folds)
        seen = _counting(rows, Kept(~own for own in out))
        q = settle(rule, prepared, Start(start), seen, limits).q
        m, _ = moments(q)

        def score(chunk: Chunk, m: Moments = m) -> tuple[np.floating, np.floating]:
            weight = np.asarray(chunk.weight, np.float64)
            logs = np.asarray(_log_probability(prepared, m, chunk), np.float64)
            return np.sum(weight * np.where(weight > 0, logs, 0.0)), np.sum(weight)

        total, weight = _counting(rows, out).sum(score)
        found.append(q)
        sums.append(total)
        weights.append(weight)
    return FoldScores(np.array(sums), np.array(weights)), found


def _counting(rows: Rows, which: Kept[np.ndarray]) -> Rows:
    """The rows with weights of 0 for all but some."""

    def reweighed(chunk: Chunk, own: np.ndarray) -> Chunk:
        weight = jnp.asarray(np.asarray(chunk.weight) * own, chunk.weight.dtype)
        return replace(chunk, weight=weight)

    return ChunkRows(rows, rows.keep(reweighed, which))
