"""How well probabilities put rows in order: areas and curves of one class against the others.

Letters: N rows, C classes, p[n, c] the probability given to class c in row n, y[n] the index of
the true class. A positive of class c is a row with y[n] = c; all others are negatives.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float

from gpclf.report.metrics import checked

MOST_NUMBERS = 2**25  # probabilities that are sorted; of more, rows evenly spaced stand for all


@dataclass(frozen=True)
class Curve:
    """Points (x, y) of a curve and the area below it."""

    x: Float[np.ndarray, "P"]
    y: Float[np.ndarray, "P"]
    area: float


def auc_by_class(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> np.ndarray:
    """The share of pairs, a positive and a negative of each class, in the right order: (C,).

    Ties count one half. NaN where a class has no row, or every row.
    """
    log_p, y = checked(log_probabilities, y_index)
    every = -(-log_p.size // MOST_NUMBERS)
    log_p, y = log_p[::every], y[::every]
    return np.array([_auc(log_p[:, c], y == c) for c in range(log_p.shape[1])])


def auc(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> float:
    """The mean over classes of `auc_by_class`, of those that have one; NaN if none has."""
    areas = auc_by_class(log_probabilities, y_index)
    return float(np.mean(areas[~np.isnan(areas)])) if np.any(~np.isnan(areas)) else float("nan")


def _auc(score: Float[np.ndarray, "N"], positive: Bool[np.ndarray, "N"]) -> float:
    above, _ = placements(score, positive)
    return float(above.mean()) if 0 < len(above) < len(score) else float("nan")


def placements(
    score: Float[np.ndarray, "N"], positive: Bool[np.ndarray, "N"]
) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "Q"]]:
    """Of each positive the share of negatives below it; of each negative that of positives above.

    Both have the area as their mean (DeLong et al. 1988); ties count one half.
    """
    up, down = np.sort(score[positive]), np.sort(score[~positive])
    n_up, n_down = max(len(up), 1), max(len(down), 1)
    of_positives = (
        np.searchsorted(down, score[positive]) + np.searchsorted(down, score[positive], "right")
    ) / (2 * n_down)
    of_negatives = (
        np.searchsorted(up, score[~positive]) + np.searchsorted(up, score[~positive], "right")
    ) / (2 * n_up)
    return of_positives, 1 - of_negatives


def roc_curve(score: Float[np.ndarray, "N"], positive: Bool[np.ndarray, "N"]) -> Curve:
    """False positives against true positives, from (0, 0) to (1, 1); one point a score."""
    hits, taken = _steps(score, positive)
    misses = taken - hits
    x, y = misses / max(misses[-1], 1), hits / max(hits[-1], 1)
    return Curve(x, y, float(np.trapezoid(y, x)))


def precision_recall_curve(score: Float[np.ndarray, "N"], positive: Bool[np.ndarray, "N"]) -> Curve:
    """Recall against precision, from recall 0 to 1; its area is the average precision.

    The precision of no row at all is 1. The area is a sum of steps, as scikit-learn's is.
    """
    hits, taken = _steps(score, positive)
    recall, precision = hits / max(hits[-1], 1), np.append(1.0, hits[1:] / taken[1:])
    return Curve(recall, precision, float(np.sum(np.diff(recall) * precision[1:])))


def thinned(curve: Curve, points: int = 200) -> Curve:
    """The same curve by fewer points, evenly spaced along it; its ends and its area are kept."""
    length = np.concatenate([[0], np.cumsum(np.abs(np.diff(curve.x)) + np.abs(np.diff(curve.y)))])
    wanted = np.searchsorted(length, np.linspace(0, length[-1], points))
    kept = np.unique(np.append(wanted, [0, len(length) - 1]))
    return Curve(curve.x[kept], curve.y[kept], curve.area)


def _steps(score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positives, and rows, among those above each score, the highest first; both begin with 0."""
    order = np.argsort(-score, kind="stable")
    score, positive = score[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # of each score
    return np.append(0, np.cumsum(positive)[last]), np.append(0, last + 1)
