"""Standardisation: every column to mean 0 and standard deviation 1, so that units never matter.

Numbers have their tails bent before, unless they are to be standardised and no more, or left as
they are.

A column without spread (all its values equal, up to rounding) becomes 0. Any finite column will
do: sums are taken in units of the largest entry, so that neither 1e300 nor 1e-300 overflows.

A column of more than two levels becomes one column per level, 1 where a row has it; together they
have variance 1, as a number has. An unseen level is encoded as the average of those seen.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from gpclf.data.missing import MOST_ROWS, Missing, evenly
from gpclf.data.survey import Moments, Survey
from gpclf.data.tails import bent, bent_errors, middle_and_unit, straightened

Kind = Literal["robust", "standard"] | None  # of numbers; None: as they are

BLOCK_ROWS = 2**14
ROUNDING = 1e-12  # no spread, in units of the largest entry
IN_CACHE = 2**11  # rows that are worked on several times


def blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover all rows, for work that should not need memory for all of them at once."""
    return (slice(first, first + size) for first in range(0, n_rows, size))


def widths(levels: np.ndarray) -> np.ndarray:
    """How many columns each feature becomes, from its number of levels (0: numbers)."""
    return np.where(levels > 2, levels, 1)


def _wide(X: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """X with a column for each level; X itself where no feature has more than two."""
    if not np.any(levels > 2):
        return X
    parts = []
    for column, count in zip(X.T, levels, strict=True):
        part = column[:, None]
        if count > 2:
            part = np.where(np.isnan(part), np.nan, part == np.arange(count))
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _of_numbers(
    survey: Survey, column: int, middle: float, unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread of a column of numbers."""
    if np.isfinite(unit):
        values = survey.sample.column(column)
        there = ~np.isnan(values)
        own = Moments(1)
        own.add(
            bent(values[there, None], *np.array([[middle], [unit]])), survey.sample.weight[there]
        )
        mean, deviation, largest = own.found(0)
    else:
        mean, deviation, largest = survey.numbers.found(column)
    spread = deviation * largest if deviation > ROUNDING else np.inf
    return np.array([mean * largest]), np.array([spread])


def _of_levels(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of columns of 0 and 1, one a level, which have variance 1 together; of up to two one."""
    if len(shares) > 2:
        centre, variance = shares, np.sum(shares * (1 - shares))
    else:
        places = np.arange(len(shares))
        centre = np.array([shares @ places])
        variance = shares @ (places - centre) ** 2
    spread = np.sqrt(variance)
    return centre, np.full(len(centre), spread if spread > ROUNDING else np.inf)


class Scaling(NamedTuple):
    """x ↦ (bent(x) − centre) / spread, column by column, once levels have columns of their own."""

    centre: np.ndarray
    spread: np.ndarray
    levels: np.ndarray  # of each feature, 0 for numbers
    middle: np.ndarray
    unit: np.ndarray  # infinite where nothing is bent
    missing: Missing

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weight: np.ndarray,
        levels: np.ndarray | None = None,
        kind: Kind = "robust",
    ) -> "Scaling":
        """Of the weighted rows of X; no copy of X is made."""
        levels = np.zeros(X.shape[1], int) if levels is None else levels
        return cls.found(Survey.of(X, weight, levels > 0), levels, kind)

    @classmethod
    def found(cls, survey: Survey, levels: np.ndarray, kind: Kind) -> "Scaling":
        """Of what one pass has found.

        Medians and quartiles are those of the survey's sample, and so are mean and spread of
        columns whose tails are bent; those of others, and shares of levels, are of all rows.
        """
        sample = survey.sample
        middle, unit = middle_and_unit(sample, (levels == 0) & (kind == "robust"))
        parts = [
            _of_levels(survey.shares(column, int(count)))
            if count
            else _of_numbers(survey, column, middle[column], unit[column])
            for column, count in enumerate(levels)
        ]
        centre, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
        middle, unit = (np.repeat(part, widths(levels)) for part in (middle, unit))
        if kind is None:
            numbers = np.repeat(levels == 0, widths(levels))
            own = Missing.by_means(np.where(numbers, centre, 0.0))
            centre, spread = np.where(numbers, 0.0, centre), np.where(numbers, 1.0, spread)
            return cls(centre, spread, levels, middle, unit, own)
        units = cls(centre, spread, levels, middle, unit, Missing.by_means(np.zeros(len(centre))))
        some = evenly(sample.n_rows, MOST_ROWS)
        Z = units._with_gaps(sample.part(some))
        return units._replace(missing=Missing.of(Z, np.asarray(sample.weight[some], np.float64)))

    def _with_gaps(self, X: np.ndarray) -> np.ndarray:
        """Rows from the user's units; NaN where a number is missing, 0 for a level not known."""
        rows = bent(_wide(X, self.levels), self.middle, self.unit)
        rows = (rows - self.centre) / self.spread
        if not self.levels.any():
            return rows
        of_levels = np.repeat(self.levels > 0, widths(self.levels))
        return np.where(np.isnan(rows) & of_levels, 0.0, rows)

    @property
    def width(self) -> int:
        """How many columns rows have once they are standardised."""
        return len(self.centre)

    def forward(self, X: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """From the user's units, or places of levels; NaN: a number missing, a level not known."""
        Z = np.empty((len(X), self.width), dtype)
        for block in blocks(len(X), IN_CACHE):
            Z[block] = self.missing.filled(self._with_gaps(X[block]))
        return Z

    def errors(self, std: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Standard deviations of the errors of X, from the user's units; those of levels are 0.

        One row where `std` is one and nothing is bent, as nothing is after a fit with errors.
        """
        std = np.repeat(std, widths(self.levels), axis=-1)
        if np.isfinite(self.unit).any():
            wide = _wide(np.asarray(X, np.float64), self.levels)
            std = bent_errors(std, wide, self.middle, self.unit)
        return std / self.spread

    def backward(self, X: np.ndarray) -> np.ndarray:
        """To the user's units; a column without spread comes back as its one value."""
        rows = self.centre + X * np.where(np.isfinite(self.spread), self.spread, 0.0)
        return straightened(rows, self.middle, self.unit)

    def by_feature(self, of_columns: np.ndarray) -> np.ndarray:
        """One number per feature: of levels the mean, each with its part in their variance.

        A feature without spread has 0: nothing can depend on it.
        """
        several = np.repeat(self.levels > 2, widths(self.levels))
        p = np.where(several, self.centre, 0.5)  # the share of rows that have the level
        parts = np.where(np.isfinite(self.spread), p * (1 - p), 0.0)
        sums = np.array([part.sum() for part in _split(parts * of_columns, self.levels)])
        totals = np.array([part.sum() for part in _split(parts, self.levels)])
        return sums / np.where(totals > 0, totals, 1.0)


def _split(of_columns: np.ndarray, levels: np.ndarray) -> list[np.ndarray]:
    """What belongs to columns, feature by feature."""
    return np.split(of_columns, np.cumsum(widths(levels))[:-1])
