"""Scores of rows left out, under one kernel: what a bound on the rows seen cannot say.

A fold is another set of weights for the same features, so its q takes a few steps and no new
feature. Rows left out are scored by the predictive.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from gpclf.compilation import program
from gpclf.data import Chunk, ChunkRows, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.passes import features_of, kernel_free, with_features
from gpclf.inference.predictive import log_probabilities
from gpclf.inference.rules import Rule
from gpclf.likelihoods import Likelihood
from gpclf.model import Prepared
from gpclf.precision import rounded

FOLDS = 5
SCORED = 1000  # rows are enough to tell two kernels apart: then not every fold is fitted
CLEARLY = 2.0  # standard errors by which other scores are higher: then not even those

Marginals = tuple[Float[Array, "B C"], Float[Array, "B C"]]


@program
def _marginals(prepared: Prepared, q: Moments, chunk: Chunk) -> Marginals:
    return prepared.marginals(features_of(prepared, chunk), q)


def folds_of(
    rows: Rows, rng: np.random.Generator, count: int = FOLDS
) -> tuple[Kept[np.ndarray], np.ndarray]:
    """A fold for every row, chunk by chunk, and how many different rows each fold has.

    Each class is spread evenly over all of them. Rows that are the same go together: else one would
    be known by the other. So a row that counts twice, and one that occurs twice, are the same, too.
    """

    def told(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(chunk.X), np.where(np.asarray(chunk.weight) > 0, chunk.y, -1)

    chunks = rows.keep(told)
    X, y = map(np.concatenate, zip(*chunks, strict=True))
    counted = y >= 0
    distinct, same = np.unique(X[counted], axis=0, return_inverse=True)
    label = np.full(len(distinct), np.inf)
    np.minimum.at(label, same.ravel(), y[counted])
    order = np.argsort(label + rng.random(len(label)), kind="stable")  # at random within a class
    fold_of = np.empty(len(label), np.int64)
    fold_of[order] = np.arange(len(label)) % count
    fold = np.full(len(y), -1)
    fold[counted] = fold_of[same.ravel()]
    return Kept(np.split(fold, len(chunks))), np.bincount(fold_of, minlength=count)


def folds_enough(n_rows: int, count: int = FOLDS) -> int:
    """How many of the folds are fitted: all, or as many as have enough rows, two at least."""
    return int(np.clip(-(-SCORED * count // n_rows), 2, count))


class RowScores(NamedTuple):
    """log p(y) of rows left out, how much each counts, and how many of them are different."""

    logs: Float[np.ndarray, "N"]
    weights: Float[np.ndarray, "N"]
    distinct: int

    @property
    def mean(self) -> float:
        """That of a row; −∞ where one is no number."""
        mean = float(self.weights @ self.logs / self.weights.sum())
        return mean if np.isfinite(mean) else -np.inf

    def gain(self, other: "RowScores") -> tuple[float, float]:
        """How much better a row is than under another, and the standard error of that.

        On the rows that both have scored: folds come in the same order. What is no number is no
        gain, −∞.
        """
        count = min(len(self.logs), len(other.logs))
        share = self.weights[:count] / self.weights[:count].sum()
        with np.errstate(invalid="ignore"):
            each = self.logs[:count] - other.logs[:count]
        gain = float(share @ each)
        if not np.isfinite(gain):
            return -np.inf, 0.0
        error = np.sqrt(share @ (each - gain) ** 2 / min(self.distinct, other.distinct))
        return gain, float(error)


NOTHING = RowScores(np.zeros(0), np.zeros(0), 0)


class Folds(NamedTuple):
    """Rows, with features under one kernel, the fold of each, and what is to be fitted."""

    rows: Rows
    fold: Kept[np.ndarray]
    distinct: np.ndarray  # how many different rows each fold has
    fitted: int  # so many of the folds; none where rows are too few

    @classmethod
    def of(cls, rows: Rows, rng: np.random.Generator) -> "Folds":
        """Drawn at random."""
        fold, distinct = folds_of(rows, rng)
        return cls(rows, fold, distinct, folds_enough(int(distinct.sum())) if all(distinct) else 0)

    def under(self, prepared: Prepared) -> "Folds":
        """The same folds with the features of a kernel, which are few enough to be kept."""
        kept = self.rows.keep(lambda chunk: with_features(prepared, chunk))
        return self._replace(rows=ChunkRows(self.rows, kept))


def fold_scores(
    rule: Rule,
    prepared: Prepared,
    folds: Folds,
    starts: list[Natural],
    limits: Limits,
    beaten_by: RowScores | None = None,
) -> tuple[RowScores, list[Natural]]:
    """Every row that is left out once, and the q of each fold, from where they start.

    Features are kept with the rows. No further fold is fitted once other scores are clearly higher.
    """
    logs, weights, ends, found = [], [], [], NOTHING
    for number in range(folds.fitted):
        out = Kept(own == number for own in folds.fold)
        seen = _counting(folds.rows, Kept(~own for own in out))
        ends.append(settle(rule, prepared, Start(starts[number]), seen, limits).q)
        of_fold, weight = _scored(prepared, ends[-1], folds.rows, out)
        logs.append(of_fold)
        weights.append(weight)
        distinct = int(folds.distinct[: number + 1].sum())
        found = RowScores(np.concatenate(logs), np.concatenate(weights), distinct)
        if beaten_by is not None:
            gain, error = found.gain(beaten_by)
            if not gain >= -CLEARLY * error:
                break
    return found, ends


def _scored(
    prepared: Prepared, q: Natural, rows: Rows, out: Kept[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """log p(y) of the rows that are out, and their weights."""
    m, _ = moments(q)

    def chosen(chunk: Chunk, own: np.ndarray) -> tuple[np.ndarray, ...]:
        weight = np.asarray(chunk.weight, np.float64)
        which = own & (weight > 0)
        ready = rounded((kernel_free(prepared, chunk), m), chunk.X.dtype)
        mu, nu = _marginals(*ready, chunk)
        parts = (mu, nu, chunk.y)
        return *(np.asarray(part)[which] for part in parts), weight[which]

    mu, nu, y, weight = map(np.concatenate, zip(*rows.keep(chosen, out), strict=True))
    likelihood = prepared.model.likelihood
    assert isinstance(likelihood, Likelihood)  # of all classes
    logs = log_probabilities(likelihood, mu, nu)
    return logs[np.arange(len(y)), y], weight


def _counting(rows: Rows, which: Kept[np.ndarray]) -> Rows:
    """The rows with weights of 0 for all but some."""

    def reweighed(chunk: Chunk, own: np.ndarray) -> Chunk:
        weight = np.asarray(chunk.weight) * own
        return replace(chunk, weight=jax.device_put(weight.astype(chunk.weight.dtype)))

    return ChunkRows(rows, rows.keep(reweighed, which))
