"""Scores of predicted probabilities: how often right, how surprised, how well calibrated.

Letters: N rows, C classes, p[n, c] the probability given to class c in row n, y[n] the index of
the true class. All functions take ln p and y; y is an index into the columns, not a label.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int
from scipy.special import logsumexp

BINS = 15


@dataclass(frozen=True)
class Scores:
    """The four figures of a prediction; only of accuracy is more better."""

    accuracy: float
    nll: float
    brier: float
    ece: float


@dataclass(frozen=True)
class ReliabilityCurve:
    """Rows grouped by the probability of their top class, in equal-width bins of (0, 1].

    `confidence` is the mean probability of the top class in a bin and `accuracy` the share of its
    rows where the top class is the true one; both are NaN in bins without rows.
    """

    confidence: Float[np.ndarray, "bins"]
    accuracy: Float[np.ndarray, "bins"]
    count: Int[np.ndarray, "bins"]


def scores(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> Scores:
    """Accuracy, negative log-likelihood, Brier score and expected calibration error together."""
    return Scores(
        accuracy=accuracy(log_probabilities, y_index),
        nll=nll(log_probabilities, y_index),
        brier=brier(log_probabilities, y_index),
        ece=ece(log_probabilities, y_index),
    )


def accuracy(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> float:
    """Share of rows with argmax_c p[n, c] = y[n]; of tied classes the first counts as the top."""
    log_p, y = checked(log_probabilities, y_index)
    return float(np.mean(log_p.argmax(axis=1) == y))


def nll(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> float:
    """Negative log-likelihood per row, −(1/N) Σ_n ln p[n, y[n]]; infinite if any such p is 0."""
    log_p, y = checked(log_probabilities, y_index)
    return float(-np.mean(np.take_along_axis(log_p, y[:, None], axis=1)))


def brier(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike) -> float:
    """Brier score, (1/N) Σ_n Σ_c (p[n, c] − [c = y[n]])²; from 0 to 2, for two classes as well."""
    log_p, y = checked(log_probabilities, y_index)
    truth = np.arange(log_p.shape[1]) == y[:, None]
    return float(np.mean(np.sum((np.exp(log_p) - truth) ** 2, axis=1)))


def ece(log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error of the top class, Σ_b (count_b / N) |accuracy_b − confidence_b|.

    The bins are those of `reliability_curve` (Guo et al. 2017, equation 3).
    """
    curve = reliability_curve(log_probabilities, y_index, bins)
    filled = curve.count > 0
    gap = np.abs(curve.accuracy - curve.confidence)[filled]
    return float(np.average(gap, weights=curve.count[filled]))


def reliability_curve(
    log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike, bins: int = BINS
) -> ReliabilityCurve:
    """Confidence, accuracy and number of rows in each bin ((b − 1)/bins, b/bins], b = 1..bins."""
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}.")
    log_p, y = checked(log_probabilities, y_index)
    # Rounding may carry a top probability past 1, which no bin holds.
    confidence = np.minimum(np.exp(log_p.max(axis=1)), 1.0)
    correct = log_p.argmax(axis=1) == y
    bin_of_row = np.ceil(confidence * bins).astype(np.intp) - 1
    count = np.bincount(bin_of_row, minlength=bins)
    rows = np.where(count > 0, count, np.nan)
    return ReliabilityCurve(
        confidence=np.bincount(bin_of_row, weights=confidence, minlength=bins) / rows,
        accuracy=np.bincount(bin_of_row, weights=correct, minlength=bins) / rows,
        count=count,
    )


def checked(
    log_probabilities: npt.ArrayLike, y_index: npt.ArrayLike
) -> tuple[Float[np.ndarray, "N C"], Int[np.ndarray, "N"]]:
    """Both as arrays, or one sentence about what they are not."""
    log_p, y = np.asarray(log_probabilities, dtype=np.float64), np.asarray(y_index)
    if log_p.ndim != 2 or log_p.shape[0] < 1 or log_p.shape[1] < 2:
        raise ValueError(
            "log_probabilities must have one or more rows and two or more columns, "
            f"got shape {log_p.shape}."
        )
    n_rows, n_classes = log_p.shape
    if not np.allclose(
        np.asarray(logsumexp(log_p, axis=1)), 0.0, atol=1e-3
    ):  # False for NaN as well
        raise ValueError("Each row of log_probabilities must be the logs of numbers that sum to 1.")
    if y.shape != (n_rows,):
        raise ValueError(f"y_index must have shape ({n_rows},), one per row, got {y.shape}.")
    if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= n_classes:
        raise ValueError(f"y_index must hold whole numbers from 0 to {n_classes - 1}.")
    return log_p, y.astype(np.intp)
