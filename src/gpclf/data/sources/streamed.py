"""Streamed: labelled rows that are read in every pass, with what the first pass found.

The same questions as of a `Block`, which is in memory: a survey, some rows by their numbers, rows
as inference sees them. Rows are numbered in the order of the pieces, those of weight 0 left out.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from gpclf.data.block import Block, joined, rebatched
from gpclf.data.columns import as_frame, chosen, refuse_dates
from gpclf.data.fingerprint import fingerprint
from gpclf.data.scaling import Scaling
from gpclf.data.sources.base import Pieces, Table
from gpclf.data.sources.coding import Coder, label_counts
from gpclf.data.sources.rows import SourceRows
from gpclf.data.survey import AT_ONCE, Drawing, Sample, Survey


class Streamed:
    """The rows of some pieces, as numbers, in as many passes as are asked for."""

    def __init__(self, pieces: Pieces, coder: Coder, found: Survey, sizes: list[int]):
        self.pieces, self.coder, self.found = pieces, coder, found
        self.sizes = sizes  # rows of each piece that count
        self._ends = np.cumsum(sizes)

    @property
    def n_rows(self) -> int:
        """How many count."""
        return self.found.n_rows

    @property
    def inputs(self) -> "Inputs":
        """What stands for X where places to begin are looked for."""
        return Inputs(self)

    def survey(self, levels: np.ndarray, n_classes: int) -> Survey:
        """What the first pass found."""
        return self.found

    def fingerprints(self) -> dict[str, str]:
        """What tells them from others: the files, and what the first pass found."""
        found, roles = self.found, (self.coder.roles, self.coder.names)
        seen = [found.counts, found.of_classes, found.sample.X, found.sample.weight]
        return {
            "the files": fingerprint(repr(self.pieces.fingerprint)),
            "the columns": fingerprint(repr(roles)),
            "the rows": fingerprint([fingerprint(part) for part in seen]),
        }

    def rows(self, scaling: Scaling, dtype: Any, redraw: bool) -> SourceRows:
        """As inference sees them."""
        return SourceRows(self, scaling, dtype, redraw)

    def blocks(self) -> Iterator[Block]:
        """All rows, forwards."""
        for number, block in self._of_pieces(None):
            del number
            yield block

    def pieces_in_order(self, which: np.ndarray) -> Iterator[Block]:
        """The rows of all pieces, in an order of these."""
        for _, block in self._of_pieces(which):
            yield block

    def _of_pieces(self, which: np.ndarray | None) -> Iterator[tuple[int, Block]]:
        order = None if which is None else [int(number) for number in which]
        seen = 0
        for piece in self.pieces.read(self.coder.columns, order):
            count = 0
            for block in self.coder.blocks(piece):
                count += block.n_rows
                yield piece.number, block
            if piece.number >= len(self.sizes) or count != self.sizes[piece.number]:
                raise self.pieces.change()
            seen += 1
        if seen != (len(self.sizes) if order is None else len(order)):
            raise self.pieces.change()

    def take(self, rows: np.ndarray) -> Block:
        """Some rows by their numbers, in this order; pieces without one of them are not read."""
        order = np.argsort(rows, kind="stable")
        wanted = np.asarray(rows)[order]
        holding = np.unique(np.searchsorted(self._ends, wanted, side="right"))
        parts: list[Block] = []
        now, first, number = -1, 0, 0
        for number, block in self._of_pieces(holding):
            if number != now:
                now, first = number, int(self._ends[number]) - self.sizes[number]
            low, high = np.searchsorted(wanted, [first, first + block.n_rows])
            if high > low:
                parts.append(block.part(wanted[low:high] - first))
            first += block.n_rows
        back = np.empty(len(order), np.intp)
        back[order] = np.arange(len(order))
        return joined(parts).part(back)


class Inputs:
    """X of streamed rows, for those who look at some of them."""

    def __init__(self, source: Streamed):
        self._source = source

    def __len__(self) -> int:
        """How many rows."""
        return self._source.n_rows

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Some of them, or all for `...`."""
        if rows is ...:
            return np.concatenate([block.X for block in self._source.blocks()])
        return self._source.take(rows).X


def first_pass(table: Table, categorical: Any, class_weight: Any) -> tuple[Streamed, list[str]]:
    """Look at every row once: types, levels, classes, what scaling needs; and the features."""
    pieces, coder = begun(table, categorical, class_weight, _counts)
    found, sizes = _surveyed(pieces, coder)
    check_labels(coder, found, pieces.name)
    return Streamed(pieces, coder, found, sizes), coder.names


def _counts(pieces: Pieces, label: str) -> dict[Any, int]:
    return label_counts(pieces.read([label]), label)


def begun(
    table: Table,
    categorical: Any,
    class_weight: Any,
    counts: Callable[[Pieces, str], Mapping[Any, int]],
) -> tuple[Pieces, Coder]:
    """The pieces of a table, and what makes numbers of them; `counts` are those of labels."""
    pieces = table.open()
    names = table.features(pieces.schema, pieces.name)
    if table.roles.label is None:
        raise ValueError("fit needs labels: name their column, as ParquetTable(paths, label=…).")
    empty = pieces.schema.empty_table().select(names)
    frame = as_frame(empty)
    assert frame is not None
    refuse_dates(frame, names)
    levels = chosen(empty, categorical, names)
    weights = class_weight or {}
    if not isinstance(weights, Mapping):  # "balanced": a pass over the labels alone
        of_classes = counts(pieces, table.roles.label)
        total = sum(of_classes.values())
        weights = {value: total / (len(of_classes) * n) for value, n in of_classes.items()}
    return pieces, Coder(table.roles, names, levels, isinstance(categorical, str), weights)


def _surveyed(pieces: Pieces, coder: Coder) -> tuple[Survey, list[int]]:
    """The first pass; then levels and classes are sorted, in what it found, too."""
    found, drawing, sizes = Survey(coder.is_level), Drawing(), []

    def read() -> Iterator[Block]:
        for piece in pieces.read(coder.columns):
            sizes.append(0)
            for block in coder.blocks(piece):
                sizes[-1] += block.n_rows
                yield block

    for block in rebatched(read(), AT_ONCE):
        found.add(block.X, block.weight, block.y)
        errors = () if block.std is None else (block.std,)
        drawing.add(block.X, block.weight, *errors)
    orders = settled(coder, found, pieces.name)
    X, weight, *errors = drawing.drawn()
    for column, order in orders.items():
        codes = X[:, column].astype(np.intp)
        rank = np.empty(len(order) + 1)
        rank[order], rank[-1] = np.arange(len(order)), coder.gaps.get(column, np.nan)
        X[:, column] = rank[codes]
    found.sample = Sample(X, weight)
    if errors:
        found.typical = np.median(errors[0], axis=0)
    return found, sizes


def settled(coder: Coder, found: Survey, name: str) -> dict[int, np.ndarray]:
    """Sort levels and classes, here and there; the places that levels had."""
    if found.n_rows < 2:
        rows = "no row" if found.n_rows == 0 else "1 row"
        raise ValueError(f"{name} has {rows} that counts; a fit needs at least 2.")
    orders, classes = coder.settle(found.of_levels)
    _sort(found, orders, classes)
    return orders


def _sort(found: Survey, orders: dict[int, np.ndarray], classes: np.ndarray) -> None:
    """Levels and classes of a survey that had them as they came; a gap is the last level."""
    for column, order in orders.items():
        known = np.zeros(len(order))
        known[: len(found.of_levels[column])] = found.of_levels[column]
        found.of_levels[column] = np.append(known[order], found.of_gaps[column])
    weights, counts = np.zeros(len(classes)), np.zeros(len(classes), np.int64)
    weights[: len(found.of_classes)] = found.of_classes
    counts[: len(found.counts)] = found.counts
    found.of_classes, found.counts = weights[classes], counts[classes]


def check_labels(coder: Coder, found: Survey, name: str) -> None:
    """One sentence for labels that make no classes."""
    classes, label, weights = coder.labels.values, coder.roles.label, coder.class_weight
    check_classification_targets(np.repeat(classes, 2))
    if len(classes) < 2:
        raise ValueError(
            f"Column {label!r} of {name} has 1 class only ({classes[0]}); a classifier needs rows "
            "of at least 2 classes."
        )
    strange = [value for value in weights if value not in coder.labels.places]
    if strange:
        raise ValueError(f"class_weight names {strange[0]!r}, which is no class of {label!r}.")
    empty = np.flatnonzero(found.counts == 0)
    if len(empty):
        raise ValueError(
            f"Every row of class {classes[empty[0]]} has weight 0: leave these rows out."
        )
