"""Heavy tails, bent: a few values far out should neither set the scale nor lie alone out there.

z = (x − median) / (interquartile range / 1.349) is about N(0, 1) where x is normal, and
z / √(1 + z²/9) is about z there, but never beyond ±3. It keeps the order of values.
"""

import numpy as np

from gpclf.data.survey import Sample

REACH = 3.0
FARTHEST = 1e6  # z beyond: bent to the last digit, and without overflow
OF_NORMAL = 1.349  # the interquartile range of N(0, 1)


def middle_and_unit(sample: Sample, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and robust standard deviation of columns of `numbers`; 0 and ∞ of those not bent.

    Quantiles of the weighted distribution of rows itself, so that a row of weight two is two rows.
    The usual standard deviation where half of the values are one.
    """
    middle, unit = np.zeros(len(numbers)), np.full(len(numbers), np.inf)
    for column in np.flatnonzero(numbers):
        values, counts = sample.column(int(column)), sample.weight
        there = ~np.isnan(values)
        if not there.any():
            continue
        values, counts = values[there], np.asarray(counts[there], np.float64)
        largest = float(np.max(np.abs(values))) or 1.0
        values = values / largest  # squares of the largest numbers would overflow
        low, median, high = np.quantile(
            values, [0.25, 0.5, 0.75], weights=counts, method="inverted_cdf"
        )
        mean = np.average(values, weights=counts)
        usual = np.sqrt(np.average((values - mean) ** 2, weights=counts))
        found = (high - low) / OF_NORMAL or usual
        if usual > 1e-12:  # rounding is no spread
            middle[column], unit[column] = median * largest, found * largest
    return middle, unit


def bent(X: np.ndarray, middle: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Rows with their tails bent; columns of infinite unit, and NaN, as they are."""
    bends = np.isfinite(unit)
    if not bends.any():
        return X
    with np.errstate(over="ignore"):  # of what is clipped
        z = np.clip((X - middle) / unit, -FARTHEST, FARTHEST)
    return np.where(bends, z / np.sqrt(1 + (z / REACH) ** 2), X)


def bent_errors(std: np.ndarray, X: np.ndarray, middle: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Half of the way from what x less its error becomes to what x and its error become.

    That is the error times the slope where it is small. A missing x counts as the median.
    """
    bends = np.isfinite(unit)
    if not bends.any():
        return std
    x = np.where(np.isnan(X), middle, X)
    way = bent(x + std, middle, unit) - bent(x - std, middle, unit)
    return np.where(bends, way / 2, std)


def straightened(B: np.ndarray, middle: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The reverse; what lies beyond the reach of any number becomes the farthest of all."""
    bends = np.isfinite(unit)
    farthest = FARTHEST / np.sqrt(1 + (FARTHEST / REACH) ** 2)
    within = np.clip(B, -farthest, farthest)
    z = within / np.sqrt(1 - np.where(bends, within / REACH, 0.0) ** 2)
    return np.where(bends, middle + z * np.where(bends, unit, 0.0), B)
