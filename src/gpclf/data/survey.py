"""Survey: what one pass over rows finds before any of them is learned from.

Rows come block by block, forwards, once. The same rows in the same order give the same numbers,
whether they come from arrays or from files, and however long the blocks are that they come in:
sums are over blocks of `AT_ONCE` rows, and the rows that are looked at more closely are drawn by
their numbers alone.
"""

from typing import NamedTuple

import numpy as np

LOOKED_AT = 2**16  # rows whose quantiles stand for those of all
AT_ONCE = 2**13


def lots(first: int, count: int) -> np.ndarray:
    """A number for each row from `first` on, by which some are drawn: it looks random.

    SplitMix64 of the row's own number, so that neither the length of a table nor where it is cut
    matters, and rows that alternate are not drawn alike, as with equal steps.
    """
    with np.errstate(over="ignore"):
        z = np.arange(first + 1, first + 1 + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Drawing:
    """The `most` rows with the lowest lots, and what was given with them, in the rows' order."""

    def __init__(self, most: int = LOOKED_AT):
        self.most, self.seen = most, 0
        self._limit = np.uint64(2**64 - 1)
        self._lots: list[np.ndarray] = []
        self._values: list[tuple[np.ndarray, ...]] = []

    def add(self, *values: np.ndarray) -> None:
        """Further rows, each with its entry of every array."""
        own = lots(self.seen, len(values[0]))
        self.seen += len(own)
        which = own <= self._limit
        self._lots.append(own[which])
        self._values.append(tuple(part[which] for part in values))
        if sum(map(len, self._lots)) > 2 * self.most:
            self._reduce()

    def _reduce(self) -> None:
        own = np.concatenate(self._lots)
        values = [np.concatenate(part) for part in zip(*self._values, strict=True)]
        if len(own) > self.most:
            self._limit = np.partition(own, self.most - 1)[self.most - 1]
            which = own <= self._limit
            own, values = own[which], [part[which] for part in values]
        self._lots, self._values = [own], [tuple(values)]

    def drawn(self) -> tuple[np.ndarray, ...]:
        """What was given with the rows that were drawn."""
        self._reduce()
        return self._values[0]


def drawn(n_rows: int, most: int = LOOKED_AT) -> np.ndarray | None:
    """The numbers of the rows that are drawn from so many; None: all of them."""
    if n_rows <= most:
        return None
    drawing = Drawing(most)
    for first in range(0, n_rows, AT_ONCE):
        drawing.add(np.arange(first, min(first + AT_ONCE, n_rows)))
    return drawing.drawn()[0]


class Sample(NamedTuple):
    """Rows that stand for all: some of X, or all where `rows` is None."""

    X: np.ndarray
    weight: np.ndarray
    rows: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """How many."""
        return len(self.weight)

    def column(self, column: int) -> np.ndarray:
        """One column, as floats."""
        found = self.X[:, column] if self.rows is None else self.X[self.rows, column]
        return np.asarray(found, np.float64)

    def part(self, some: np.ndarray) -> np.ndarray:
        """Some of the rows, as floats."""
        return np.asarray(self.X[some if self.rows is None else self.rows[some]], np.float64)


class Moments:
    """Weighted mean and squares about it of each column, gaps left out, in one pass.

    In units of the largest entry so far, so that neither 1e300 nor 1e-300 overflows.
    """

    def __init__(self, width: int):
        self.unit = np.zeros(width)
        self.total, self.mean, self.squares = np.zeros(width), np.zeros(width), np.zeros(width)

    def add(self, X: np.ndarray, weight: np.ndarray) -> None:
        """Further rows, as floats."""
        there = ~np.isnan(X)
        largest = np.max(np.abs(X), axis=0, initial=0.0, where=there)
        unit = np.maximum(self.unit, largest)
        safe = np.where(unit > 0, unit, 1.0)
        Z = np.where(there, X, 0.0) / safe
        total = weight @ there
        mean = weight @ Z / np.where(total > 0, total, 1.0)
        squares = weight @ np.where(there, Z - mean, 0.0) ** 2
        self._merge(unit, total, mean, squares)

    def _merge(
        self, unit: np.ndarray, total: np.ndarray, mean: np.ndarray, squares: np.ndarray
    ) -> None:
        """With those of other rows, in a unit at least as large."""
        ratio = self.unit / np.where(unit > 0, unit, 1.0)
        old, far = self.total, mean - ratio * self.mean
        self.unit, self.total = unit, old + total
        share = total / np.where(self.total > 0, self.total, 1.0)
        self.mean = ratio * self.mean + share * far
        self.squares = ratio**2 * self.squares + squares + old * share * far**2

    def join(self, other: "Moments") -> None:
        """With those of other rows."""
        unit = np.maximum(self.unit, other.unit)
        ratio = other.unit / np.where(unit > 0, unit, 1.0)
        self._merge(unit, other.total, ratio * other.mean, ratio**2 * other.squares)

    def found(self, column: int) -> tuple[float, float, float]:
        """Mean and standard deviation in units of the largest entry, and that."""
        if not self.total[column] > 0:  # no number at all
            return 0.0, 0.0, 1.0
        variance = self.squares[column] / self.total[column]
        unit = self.unit[column] if self.unit[column] > 0 else 1.0
        return float(self.mean[column]), float(np.sqrt(variance)), float(unit)


class Survey:
    """Counts, weights and moments of rows, and a sample of them.

    `of_levels` has the weight of each level of a column of levels; a missing one is −1 while
    levels are still being found, and is counted by `of_gaps`.
    """

    def __init__(self, is_level: np.ndarray):
        width = len(is_level)
        self.is_level = is_level
        self.n_rows, self.total, self.even, self.uneven = 0, 0.0, True, False
        self.numbers = Moments(width)
        self.of_levels = {int(c): np.zeros(0) for c in np.flatnonzero(is_level)}
        self.of_gaps = np.zeros(width)
        self.of_classes = np.zeros(0)
        self.counts = np.zeros(0, np.int64)  # rows of each class
        self.typical: np.ndarray | None = None  # error of each column
        self.sample = Sample(np.empty((0, width)), np.empty(0))

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weight: np.ndarray,
        is_level: np.ndarray,
        y: np.ndarray | None = None,
        std: np.ndarray | None = None,
        n_classes: int = 0,
    ) -> "Survey":
        """Of arrays, which are not copied."""
        found = cls(is_level)
        for first in range(0, len(X), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            found.add(X[block], weight[block], None if y is None else y[block])
        found.of_classes = grown(found.of_classes, n_classes)
        found.counts = grown(found.counts, n_classes)
        rows = drawn(len(X))
        found.sample = Sample(X, weight if rows is None else weight[rows], rows)
        if std is not None:
            errors = std if len(std) == 1 or rows is None else std[rows]
            found.typical = np.median(errors, axis=0)
        return found

    def add(self, X: np.ndarray, weight: np.ndarray, y: np.ndarray | None) -> None:
        """Further rows: `AT_ONCE`, or the last ones."""
        X = np.asarray(X, np.float64)  # the least of int8 has no absolute value
        self.n_rows += len(X)
        self.total += float(weight.sum(dtype=np.float64))
        self.even = self.even and bool(np.all(weight == 1))
        self.uneven = self.uneven or bool(np.any(weight < 1))
        self.numbers.add(X, weight)
        for column, before in self.of_levels.items():
            places = X[:, column].astype(np.intp) + 1  # a gap, while levels are found, is −1
            counts = np.bincount(places, weight)
            self.of_gaps[column] += counts[0]
            self.of_levels[column] = grown(before, len(counts) - 1)
            self.of_levels[column][: len(counts) - 1] += counts[1:]
        if y is not None:
            of_classes, counts = np.bincount(y, weight), np.bincount(y)
            self.of_classes = grown(self.of_classes, len(counts))
            self.counts = grown(self.counts, len(counts))
            self.of_classes[: len(counts)] += of_classes
            self.counts[: len(counts)] += counts

    def join(self, other: "Survey") -> None:
        """With the counts and moments of other rows; levels and classes are no concern of this."""
        self.n_rows += other.n_rows
        self.total += other.total
        self.even, self.uneven = self.even and other.even, self.uneven or other.uneven
        self.numbers.join(other.numbers)

    def shares(self, column: int, count: int) -> np.ndarray:
        """The share of each of `count` levels."""
        return grown(self.of_levels[column], count)[:count] / self.total


def grown(known: np.ndarray, count: int) -> np.ndarray:
    """At least so many entries, those that are new 0."""
    return np.concatenate([known, np.zeros(max(0, count - len(known)), known.dtype)])
