"""What a report is about: a classifier as far as a report asks it, and rows to ask it of.

Tables are codes, as `gpclf.data.columns` has them: numbers, and the places of levels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from gpclf.data import Columns, Summary
from gpclf.report.words import measured

Codes = Float[np.ndarray, "N D"]
Errors = np.ndarray | None  # standard deviations of the errors of X, one row for all or one each
MISSING = "—"


@dataclass(frozen=True)
class Table:
    """Rows X, class indices y if they are known, errors of X if there are some."""

    X: Codes
    y: Int[np.ndarray, "N"] | None
    std: Errors

    def part(self, rows: Any) -> "Table":
        """Some of the rows."""
        std = self.std if self.std is None or len(self.std) == 1 else self.std[rows]
        return replace(self, X=self.X[rows], y=None if self.y is None else self.y[rows], std=std)

    def sample(self, most: int, rng: np.random.Generator) -> "Table":
        """All rows, or so many of them drawn at random, in their order."""
        if len(self.X) <= most:
            return self
        return self.part(np.sort(rng.choice(len(self.X), most, replace=False)))


@dataclass(frozen=True)
class Subject:
    """A fitted classifier: its columns, what it predicts, and what is known of its training."""

    names: tuple[str, ...]
    columns: Columns
    classes: Shaped[np.ndarray, "C"]
    label: str | None
    relevance: Float[np.ndarray, "D"]
    summary: Summary
    history: Mapping[str, np.ndarray]
    card: Mapping[str, Mapping[str, str]]  # headings, and under each what is to be said of it
    log_proba: Callable[[Codes, Errors], np.ndarray]
    spread: Callable[[Codes, Errors], tuple[np.ndarray, np.ndarray]]  # of p, and information

    def class_name(self, index: int) -> str:
        """A class as a sentence names it."""
        return str(self.classes[index])

    def value(self, column: int, code: float) -> str:
        """An entry as its table had it, or nearly."""
        levels = self.columns.levels[column]
        if np.isnan(code) or (levels is not None and code >= len(levels)):
            return MISSING
        return measured(code) if levels is None else str(levels[int(code)])
