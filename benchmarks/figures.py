"""The four figures of a prediction, for every racer and method alike. Needs NumPy only.

The formulas are those of `gpclf.report.metrics`, written again because the rivals' Pythons do not
hold gpclf.
"""

import numpy as np

FLOOR = (
    1e-15  # A probability of zero would cost an infinite NLL: no method is given less than this.
)
BINS = 15


def figures(log_p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """NLL, accuracy, Brier score and calibration error of ln p (N, C) and classes y (N,).

    A prediction that is not a number makes figures that are not numbers.
    """
    log_p = np.maximum(np.asarray(log_p, np.float64), np.log(FLOOR))
    truth = np.arange(log_p.shape[1]) == y[:, None]
    return {
        "nll": float(-np.mean(log_p[truth])),
        "accuracy": float(np.mean(log_p.argmax(axis=1) == y)),
        "brier": float(np.mean(np.sum((np.exp(log_p) - truth) ** 2, axis=1))),
        "ece": calibration_error(log_p, y),
    }


def calibration_error(log_p: np.ndarray, y: np.ndarray) -> float:
    """Σ_b (count_b / N) |accuracy_b − confidence_b| over bins ((b − 1)/15, b/15] of the top p."""
    confidence = np.minimum(np.exp(log_p.max(axis=1)), 1.0)
    if not np.isfinite(confidence).all():
        return float("nan")
    correct = log_p.argmax(axis=1) == y
    bin_of_row = np.ceil(confidence * BINS).astype(int) - 1
    gap = np.bincount(bin_of_row, weights=correct - confidence, minlength=BINS)
    return float(np.sum(np.abs(gap)) / len(y))
