"""Scores with intervals by the bootstrap: how far other rows of the same kind would move them.

Of 4,096 rows and fewer each is drawn on its own; more go by random groups, drawn as wholes, which
has the same variance and takes no longer. An area under a curve is then followed to first order,
by its placements (DeLong et al. 1988).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int
from scipy.stats import norm

from gpclf.report import ranking
from gpclf.report.metrics import BINS, accuracy, brier, checked, ece, nll

MOST_UNITS = 4096  # drawn again and again: rows, or groups of them
MOST_EXACT = 50  # classes whose areas are followed exactly
MOST_WORK, FEWEST_SAMPLES = 2**28, 100  # of many classes fewer samples are drawn
LEVEL = 0.95
FUNCTIONS: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], float]] = {
    "nll": nll,
    "brier": brier,
    "accuracy": accuracy,
    "auc": ranking.auc,
    "ece": ece,
}
METRICS = tuple(FUNCTIONS)
MOST = {"nll": np.inf, "brier": 2.0, "accuracy": 1.0, "auc": 1.0, "ece": 1.0}

Weights = Float[np.ndarray, "n G"]


class Interval(NamedTuple):
    """A score, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def intervals(
    log_p: npt.ArrayLike,
    y: npt.ArrayLike,
    metrics: Sequence[str] = METRICS,
    n: int = 1000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Each score of log-probabilities (N, C) and class indices (N,) with its 95 % interval.

    Quantiles of `n` bootstrap samples, moved so that their median is the score itself: the
    calibration error of a sample is that of the rows and more.
    """
    wrong = [name for name in metrics if name not in FUNCTIONS]
    if wrong:
        raise ValueError(f"metrics must be among {', '.join(METRICS)}, got {wrong[0]!r}.")
    if n < 1:
        raise ValueError(f"n must be a whole number of at least 1, got {n!r}.")
    logs, index = checked(log_p, y)
    rng = np.random.default_rng(seed)
    group, count = _groups(len(index), rng)
    weights = _drawn(count, n, rng)
    found = {}
    for name in metrics:
        value = FUNCTIONS[name](logs, index)
        with np.errstate(invalid="ignore"):  # an infinite score has no interval
            samples = _SAMPLES[name](logs, index, group, weights)
            found[name] = _interval(value, samples, MOST[name])
    return found


def wilson(hits: npt.ArrayLike, count: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of a share, `hits` of `count` (Wilson 1927): whole without any row."""
    hits, count = np.asarray(hits, np.float64), np.asarray(count, np.float64)
    z = norm.ppf((1 + LEVEL) / 2)
    share = hits / np.maximum(count, 1)
    middle = (hits + z**2 / 2) / (count + z**2)
    half = z / (count + z**2) * np.sqrt(count * share * (1 - share) + z**2 / 4)
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def ece_by_chance(
    log_p: npt.ArrayLike, y: npt.ArrayLike, n: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The calibration error that probabilities as good as can be would show in so many rows.

    Its mean, and what it stays below 95 times in 100: labels are drawn from the probabilities, and
    the number of hits in each bin is taken as normal where it is large.
    """
    logs, _ = checked(log_p, y)
    confidence = np.minimum(np.exp(logs.max(axis=1)), 1.0)
    place = _bin_of(confidence)
    rng = np.random.default_rng(seed)
    if len(logs) <= MOST_UNITS:
        hits = rng.random((n, len(logs))) < confidence
        gap = (hits - confidence) @ (place[:, None] == np.arange(BINS)).astype(np.float64)
    else:
        variance = np.bincount(place, confidence * (1 - confidence), BINS)
        gap = np.sqrt(variance) * rng.standard_normal((n, BINS))
    errors = np.abs(gap).sum(axis=1) / len(logs)
    return float(errors.mean()), float(np.quantile(errors, LEVEL))


def _groups(n_rows: int, rng: np.random.Generator) -> tuple[Int[np.ndarray, "N"], int]:
    """The unit that each row is drawn with, and how many there are."""
    if n_rows <= MOST_UNITS:
        return np.arange(n_rows), n_rows
    return rng.permutation(n_rows) % MOST_UNITS, MOST_UNITS


def _drawn(count: int, n: int, rng: np.random.Generator) -> Weights:
    """How often each unit is in each of n samples."""
    chosen = rng.integers(0, count, (n, count)) + count * np.arange(n)[:, None]
    return np.bincount(chosen.ravel(), minlength=n * count).reshape(n, count).astype(np.float64)


def _interval(value: float, samples: np.ndarray, most: float) -> Interval:
    samples = samples[np.isfinite(samples)]
    if not np.isfinite(value) or not len(samples):
        return Interval(value, float("nan"), float("nan"))
    low, middle, high = np.quantile(samples, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    ends = np.clip([value + low - middle, value + high - middle], 0.0, most)
    return Interval(value, min(float(ends[0]), value), max(float(ends[1]), value))


def _mean(values: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    """The mean of `values` (N,) in every sample."""
    count = weights.shape[1]
    sums, rows = np.bincount(group, values, count), np.bincount(group, minlength=count)
    return (weights @ sums) / (weights @ rows)


def _nll(logs: np.ndarray, y: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    return _mean(-np.take_along_axis(logs, y[:, None], axis=1)[:, 0], group, weights)


def _brier(logs: np.ndarray, y: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    p = np.exp(logs)
    own = np.take_along_axis(p, y[:, None], axis=1)[:, 0]
    return _mean(np.sum(p**2, axis=1) - 2 * own + 1, group, weights)


def _accuracy(logs: np.ndarray, y: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    return _mean((logs.argmax(axis=1) == y).astype(np.float64), group, weights)


def _bin_of(confidence: np.ndarray) -> np.ndarray:
    return np.ceil(confidence * BINS).astype(np.intp) - 1


def _ece(logs: np.ndarray, y: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    confidence = np.minimum(np.exp(logs.max(axis=1)), 1.0)
    gap = (logs.argmax(axis=1) == y) - confidence
    count = weights.shape[1]
    cells = np.bincount(group * BINS + _bin_of(confidence), gap, count * BINS)
    rows = np.bincount(group, minlength=count)
    return np.abs(weights @ cells.reshape(count, BINS)).sum(axis=1) / (weights @ rows)


def _auc(logs: np.ndarray, y: np.ndarray, group: np.ndarray, weights: Weights) -> np.ndarray:
    every = -(-logs.size // ranking.MOST_NUMBERS)
    logs, y, group = logs[::every], y[::every], group[::every]
    count, units = logs.shape[1], weights.shape[1]
    weights = weights[: max(FEWEST_SAMPLES, MOST_WORK // (units * count))]
    of_class = _auc_of_groups if len(y) > units or count > MOST_EXACT else _auc_of_rows
    areas = []
    for c in range(logs.shape[1]):
        positive = y == c
        if 0 < positive.sum() < len(y):
            areas.append(of_class(logs[:, c], positive, group, weights))
    if not areas:
        return np.array([])
    there = ~np.isnan(areas)  # a sample may have no row of a class
    return np.where(there, areas, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)


def _auc_of_rows(
    score: np.ndarray, positive: np.ndarray, group: np.ndarray, weights: Weights
) -> np.ndarray:
    """Each sample's own area, from the weights of its rows in the order of their scores."""
    order = np.argsort(score, kind="stable")
    score, positive, weights = score[order], positive[order], weights[:, group[order]]
    first = np.flatnonzero(np.append(True, np.diff(score) > 0))  # of each score
    up = np.add.reduceat(weights * positive, first, axis=1)
    down = np.add.reduceat(weights * ~positive, first, axis=1)
    below = np.cumsum(down, axis=1) - down / 2
    pairs = up.sum(axis=1) * down.sum(axis=1)
    return np.sum(up * below, axis=1) / np.where(pairs > 0, pairs, np.nan)


def _auc_of_groups(
    score: np.ndarray, positive: np.ndarray, group: np.ndarray, weights: Weights
) -> np.ndarray:
    """The same to first order: the area is a mean over positives, and one over negatives."""
    of_positives, of_negatives = ranking.placements(score, positive)
    area = of_positives.mean()
    moved = np.zeros(len(weights))
    for values, chosen in ((of_positives, positive), (of_negatives, ~positive)):
        sums = np.bincount(group[chosen], values - area, weights.shape[1])
        rows = weights @ np.bincount(group[chosen], minlength=weights.shape[1])
        moved += (weights @ sums) / np.where(rows > 0, rows, np.nan)
    return np.clip(area + moved, 0.0, 1.0)


_SAMPLES = {"nll": _nll, "brier": _brier, "accuracy": _accuracy, "auc": _auc, "ece": _ece}
