"""Standardisation: every column to mean 0 and standard deviation 1, so that units never matter.

A column without spread (all its values equal, up to rounding) becomes 0. Any finite column will
do: sums are taken in units of the largest entry, so that neither 1e300 nor 1e-300 overflows.
"""

from typing import NamedTuple

import numpy as np


class Scaling(NamedTuple):
    """x ↦ (x − centre) / spread, column by column."""

    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray) -> "Scaling":
        """Of the weighted rows of X."""
        rows = X[weight > 0]
        weight = weight[weight > 0] / weight.sum()
        unit = np.max(np.abs(rows), axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        relative = rows / unit
        centre = weight @ relative
        spread = np.sqrt(weight @ (relative - centre) ** 2)
        spread = np.where(spread > 1e-12, spread, np.inf)  # rounding is no spread
        return cls(centre * unit, spread * unit)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """From the user's units."""
        return (X - self.centre) / self.spread

    def backward(self, X: np.ndarray) -> np.ndarray:
        """To the user's units; a column without spread comes back as its one value."""
        return self.centre + X * np.where(np.isfinite(self.spread), self.spread, 0.0)
