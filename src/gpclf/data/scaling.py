"""Standardisation: every column to mean 0 and standard deviation 1, so that units never matter.

A column without spread (all its values equal, up to rounding) becomes 0. Any finite column will
do: sums are taken in units of the largest entry, so that neither 1e300 nor 1e-300 overflows.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

BLOCK_ROWS = 2**14


def blocks(n_rows: int) -> Iterator[slice]:
    """Slices that cover all rows, for work that should not need memory for all of them at once."""
    return (slice(first, first + BLOCK_ROWS) for first in range(0, n_rows, BLOCK_ROWS))


class Scaling(NamedTuple):
    """x ↦ (x − centre) / spread, column by column."""

    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray) -> "Scaling":
        """Of the weighted rows of X, in three passes over blocks: no copy of X is made."""
        total = float(weight.sum())
        unit = np.max([np.max(np.abs(X[b]), axis=0) for b in blocks(len(X))], axis=0)
        unit = np.where(unit > 0, unit, 1.0).astype(np.float64)
        centre = sum(weight[b] / total @ (X[b] / unit) for b in blocks(len(X)))
        squares = (weight[b] / total @ (X[b] / unit - centre) ** 2 for b in blocks(len(X)))
        spread = np.sqrt(sum(squares))
        spread = np.where(spread > 1e-12, spread, np.inf)  # rounding is no spread
        return cls(centre * unit, spread * unit)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """From the user's units."""
        return (X - self.centre) / self.spread

    def backward(self, X: np.ndarray) -> np.ndarray:
        """To the user's units; a column without spread comes back as its one value."""
        return self.centre + X * np.where(np.isfinite(self.spread), self.spread, 0.0)
