"""How far a table is from the training rows, column by column.

The population stability index Σ (q − p) ln(q / p) over the cells of a column: tenths of the
training rows' numbers or their levels, and one cell for what is missing or unknown. p are shares of
training rows, q those of the table. It is compared with what chance alone would give.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from gpclf.data.missing import evenly
from gpclf.data.summary import shares_of
from gpclf.data.survey import LOOKED_AT
from gpclf.report.subject import Subject

LEAST_SHARE = 1e-4  # of a cell without rows, whose logarithm is wanted
SOME, MUCH = 0.1, 0.25  # the usual marks of the index
SURE = 0.99
MOST_NUMBERS = 2e7


class ColumnDrift(NamedTuple):
    """One column: its index, what chance would give, and shares before and now."""

    column: int
    psi: float
    chance: float
    missing_before: float
    missing_now: float
    unseen: float  # levels that the training rows did not have, or gaps where they had none
    reading: str


def index_of(before: np.ndarray, now: np.ndarray) -> float:
    """The population stability index of two lists of shares; 0 where they are alike."""
    p, q = np.maximum(before, LEAST_SHARE), np.maximum(now, LEAST_SHARE)
    return float(np.sum((q - p) * np.log(q / p)))


def by_chance(before: np.ndarray, now: np.ndarray, sizes: tuple[int, int], columns: int) -> float:
    """What the indices of so many columns stay below 99 times in 100, the largest included.

    That is where both are samples of the same, of these `sizes`.
    """
    cells = int(np.sum((before > 0) | (now > 0)))
    scale = sum(1 / size for size in sizes)
    return float(chi2.isf((1 - SURE) / columns, max(cells - 1, 1)) * scale)


def reading(psi: float, chance: float) -> str:
    """The index in plain words."""
    if psi <= max(chance, 1e-12):
        return "as in training"
    return "slightly different" if psi < SOME else "different" if psi < MUCH else "very different"


def drift(subject: Subject, X: np.ndarray) -> list[ColumnDrift]:
    """All columns, the one that differs most first."""
    most = int(np.clip(MOST_NUMBERS / X.shape[1], 2000, LOOKED_AT))
    X = X[evenly(len(X), most)]
    counts = subject.columns.counts
    found = [
        _column(subject, X[:, column], column, int(counts[column])) for column in range(len(counts))
    ]
    return sorted(found, key=lambda each: (-each.psi, each.column))


def _column(subject: Subject, values: np.ndarray, column: int, count: int) -> ColumnDrift:
    summary = subject.summary
    gone = float(np.isnan(values).mean())
    before = np.append(summary.shares[column], summary.missing[column])
    now = np.append(shares_of(values, summary.quantiles[column], count), gone)
    if np.isnan(summary.quantiles[column]).all() and count == 0:  # nothing but gaps in training
        before, now = before[-2:], np.array([1 - gone, gone])
    psi = index_of(before, now)
    sizes = min(summary.n_rows, LOOKED_AT), len(values)
    chance = by_chance(before, now, sizes, len(summary.missing))
    gap = subject.columns.gaps[column]  # then the last level is the missing one
    missing_before = before[-2] if gap else before[-1]
    missing_now = now[-2] if gap else gone if count == 0 else 0.0
    unseen = gone if count > 0 else 0.0
    return ColumnDrift(
        column, psi, chance, float(missing_before), float(missing_now), unseen, reading(psi, chance)
    )
