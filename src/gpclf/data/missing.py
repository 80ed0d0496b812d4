"""Missing numbers: their mean given the other numbers of the row, under a Gaussian.

The Gaussian N(m, P⁻¹) of the standardised columns is found by EM on training rows, which may have
gaps themselves. With d = x − m, 0 in the gaps, those of a row are filled by

    x_gaps = m_gaps − (P_gaps,gaps)⁻¹ (P d)_gaps,

which asks only for systems of the size of the gaps. A row of nothing but gaps gets the mean. Here
a number far out counts as at most `FARTHEST`, so that it throws no other far out.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

MOST_ROWS = 5000  # that the Gaussian is learned from
MOST_COLUMNS = 1000  # above, every gap gets the mean of its column
FARTHEST = 4.0  # standard deviations
RIDGE = 1e-3  # added to variances, which are about 1
PRIOR = 0.1  # rows for each column, as if seen, in which columns are independent
MOST_STEPS, FEWEST_STEPS = 50, 8
TOLERANCE = 1e-3  # of a mean or covariance, at which EM ends
WORK = 1e10  # products of numbers that EM may take: some seconds
AT_ONCE = 2**20  # numbers of systems that are solved together


class Missing(NamedTuple):
    """Mean m and precision P of the standardised columns; of too many P has no entry."""

    mean: np.ndarray
    precision: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, weight: np.ndarray) -> "Missing":
        """Of standardised rows, their gaps NaN; the same rows give the same Gaussian."""
        width = Z.shape[1]
        if width > MOST_COLUMNS:
            return cls.by_means(np.zeros(width))
        products = float(np.mean(np.isnan(Z).sum(axis=1) ** 3.0)) + width**2  # a row and step
        rows = evenly(len(Z), int(np.clip(WORK / FEWEST_STEPS / products, 1, MOST_ROWS)))
        Z, weight = np.clip(Z[rows], -FARTHEST, FARTHEST), weight[rows]
        steps = np.clip(WORK / (products * len(Z)), FEWEST_STEPS, MOST_STEPS)
        mean, covariance = np.zeros(width), np.eye(width)
        for _ in range(int(steps) if np.isnan(Z).any() else 1):  # it is known at once
            before = mean, covariance
            mean, covariance = _step(cls(mean, np.linalg.inv(covariance)), Z, weight)
            if all(
                np.max(np.abs(new - old)) < TOLERANCE
                for new, old in zip((mean, covariance), before, strict=True)
            ):
                break
        return cls(mean, np.linalg.inv(covariance))

    @classmethod
    def by_means(cls, mean: np.ndarray) -> "Missing":
        """Every gap gets the mean of its column."""
        return cls(mean, np.empty((0, 0)))

    def filled(self, Z: np.ndarray) -> np.ndarray:
        """Standardised rows with a number in every gap; Z itself if it has none."""
        gaps = np.isnan(Z)
        if not gaps.any():
            return Z
        if not self.precision.size:
            return np.where(gaps, self.mean, Z)
        Z = Z.copy()
        for rows, columns in _of_equal_size(gaps):
            slope, own = self._system(Z[rows], columns)
            moves = np.linalg.solve(own, slope[..., None])[..., 0]
            Z[rows[:, None], columns] = self.mean[columns] - moves
        return Z

    def _system(self, Z: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(P d)_gaps and P_gaps,gaps of rows with gaps in these columns of each."""
        near = np.clip(Z, -FARTHEST, FARTHEST) - self.mean
        slope = np.where(np.isnan(Z), 0.0, near) @ self.precision
        own = self.precision[columns[:, :, None], columns[:, None, :]]
        return np.take_along_axis(slope, columns, axis=1), own


def evenly(n_rows: int, most: int) -> np.ndarray:
    """The indices of all rows, or of at most so many with equal steps between them."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int)


def _step(last: Missing, Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of rows filled in, with what each gap leaves open."""
    total, width = weight.sum(), Z.shape[1]
    full, left_open = Z.copy(), np.zeros(width**2)
    for rows, columns in _of_equal_size(np.isnan(Z)):
        slope, own = last._system(Z[rows], columns)
        spread = np.linalg.inv(own)
        full[rows[:, None], columns] = last.mean[columns] - (spread @ slope[..., None])[..., 0]
        places = columns[:, :, None] * width + columns[:, None, :]
        parts = weight[rows, None, None] * spread
        left_open += np.bincount(places.ravel(), parts.ravel(), width**2)
    mean = weight @ full / total
    far = full - mean
    sums = far.T @ (weight[:, None] * far) + left_open.reshape(width, width)
    prior = PRIOR * width
    return mean, (sums + prior * np.eye(width)) / (total + prior) + RIDGE * np.eye(width)


def _of_equal_size(gaps: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows with as many gaps as each other, and the columns of these, some at a time."""
    counts = gaps.sum(axis=1)
    for count in np.unique(counts[counts > 0]):
        alike = np.flatnonzero(counts == count)
        size = max(1, AT_ONCE // int(count) ** 2)
        for first in range(0, len(alike), size):
            rows = alike[first : first + size]
            yield rows, np.nonzero(gaps[rows])[1].reshape(len(rows), count)
