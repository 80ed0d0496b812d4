"""How a feature matters: the mean probability of a class if all rows had one value of it.

Partial dependence (Friedman 2001), of rows whose entries count as exact, with how far the model
itself is unsure: the standard deviation of a row's probability under the posterior, averaged.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from gpclf.report.subject import Subject, Table

MOST_FEATURES, MOST_CLASSES, MOST_LEVELS = 6, 4, 12
ROWS, ROWS_OF_SPREAD = 200, 40
POINTS = 21


class Dependence(NamedTuple):
    """One feature: codes along it, and for each the probability of each class and its spread."""

    feature: int
    grid: Float[np.ndarray, "G"]
    classes: Int[np.ndarray, "K"]
    mean: Float[np.ndarray, "G K"]
    spread: Float[np.ndarray, "G K"]
    left_out: int  # levels


def classes_shown(mean: Float[np.ndarray, "G C"]) -> Int[np.ndarray, "K"]:
    """The second of two classes; of more those that change most, in their order."""
    if mean.shape[1] == 2:
        return np.array([1])
    return np.sort(np.argsort(-np.ptp(mean, axis=0), kind="stable")[:MOST_CLASSES])


def dependence(
    subject: Subject, table: Table, feature: int, rng: np.random.Generator
) -> Dependence | None:
    """None where the feature has one value only."""
    grid, left_out = _grid(subject, table, feature)
    if len(grid) < 2:
        return None
    rows, few = table.sample(ROWS, rng).X, table.sample(ROWS_OF_SPREAD, rng).X
    p = np.exp(subject.log_proba(_with(rows, feature, grid), None))
    mean = p.reshape(len(grid), len(rows), -1).mean(axis=1)
    classes = classes_shown(mean)
    spread, _ = subject.spread(_with(few, feature, grid), None)
    return Dependence(
        feature,
        grid,
        classes,
        mean[:, classes],
        spread.reshape(len(grid), len(few), -1).mean(axis=1)[:, classes],
        left_out,
    )


def _grid(subject: Subject, table: Table, feature: int) -> tuple[np.ndarray, int]:
    """Values to ask about, and how many levels are not among them."""
    if subject.columns.levels[feature] is not None:
        shares = subject.summary.shares[feature]
        shown = np.argsort(-shares, kind="stable")[:MOST_LEVELS]
        return np.sort(shown).astype(np.float64), len(shares) - len(shown)
    values = table.X[:, feature]
    values = values[~np.isnan(values)]
    if not len(values):
        return np.array([]), 0
    low, high = np.quantile(values, [0.02, 0.98])
    distinct = np.unique(values[(values >= low) & (values <= high)])
    return (distinct if len(distinct) <= POINTS else np.linspace(low, high, POINTS)), 0


def _with(rows: np.ndarray, feature: int, grid: np.ndarray) -> np.ndarray:
    """All rows with each value in turn."""
    X = np.tile(rows, (len(grid), 1))
    X[:, feature] = np.repeat(grid, len(rows))
    return X
