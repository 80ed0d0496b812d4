"""Block: labelled rows in memory, as numbers."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpclf.data.fingerprint import fingerprint
from gpclf.data.rows import ArrayRows
from gpclf.data.scaling import Scaling
from gpclf.data.survey import Survey


class Block(NamedTuple):
    """Rows that count: inputs, classes, weights, and the errors of inputs if there are some.

    `std` has one row where those of all rows are alike.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    std: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """How many."""
        return len(self.y)

    @property
    def inputs(self) -> np.ndarray:
        """What stands for X where places to begin are looked for."""
        return self.X

    def fingerprints(self) -> dict[str, str]:
        """What tells them from others."""
        names = ("the entries of X", "the labels", "the weights", "the entries of X_std")
        return {name: fingerprint(part) for name, part in zip(names, self, strict=True)}

    def part(self, rows: Any) -> "Block":
        """Some of them."""
        std = self.std if self.std is None or len(self.std) == 1 else self.std[rows]
        return Block(self.X[rows], self.y[rows], self.weight[rows], std)

    def survey(self, levels: np.ndarray, n_classes: int) -> Survey:
        """What one pass finds."""
        return Survey.of(self.X, self.weight, levels > 0, self.y, self.std, n_classes)

    def rows(self, scaling: Scaling | None, dtype: Any, redraw: bool) -> ArrayRows:
        """As inference sees them."""
        X, y, weight, std = self
        return ArrayRows(X, y, weight, scaling=scaling, dtype=dtype, std=std, redraw=redraw)


def joined(blocks: Sequence[Block]) -> Block:
    """One block of several, which have errors all or none."""
    X, y, weight, std = zip(*blocks, strict=True)
    errors = None if std[0] is None else np.concatenate(std)
    return Block(np.concatenate(X), np.concatenate(y), np.concatenate(weight), errors)


def rebatched(blocks: Iterator[Block], size: int) -> Iterator[Block]:
    """The same rows in blocks of equal size; the last has what is left."""
    waiting: list[Block] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += block.n_rows
        if count < size:
            continue
        whole, first = waiting[0] if len(waiting) == 1 else joined(waiting), 0
        while count - first >= size:
            yield whole.part(slice(first, first + size))
            first += size
        waiting, count = [whole.part(slice(first, None))] if count > first else [], count - first
    if count:
        yield joined(waiting)
