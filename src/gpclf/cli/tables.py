"""From blocks of a source to X, y and the errors of X, by the columns that a model knows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpclf.cli.errors import Mistake
from gpclf.cli.kinds import CATEGORY, NUMBER, TRUTH, Place, values_of, words_of
from gpclf.cli.sources import Source
from gpclf.data.sources.kinds import compute as pc

INTEGER, WORD, FLAG = "integer", "word", "flag"  # kinds of labels; a flag is a truth value as such


@dataclass(frozen=True)
class Layout:
    """The columns that a model reads, by name; other columns of a table are left alone."""

    features: tuple[tuple[str, str], ...]  # name and kind
    errors: dict[str, str] = field(default_factory=dict)  # feature: its column of errors
    label: tuple[str, str] | None = None  # name and kind
    weight: str | None = None

    @property
    def columns(self) -> list[str]:
        """All of them."""
        named = [name for name, _ in self.features] + list(self.errors.values())
        more = [None if self.label is None else self.label[0], self.weight]
        return list(dict.fromkeys([*named, *(name for name in more if name is not None)]))


class Rows(NamedTuple):
    """Some rows of a table, as `GPClassifier` takes them."""

    X: pa.Table
    y: np.ndarray | None
    X_std: np.ndarray | None
    weight: np.ndarray | None
    block: pa.Table  # as read
    first: int  # rows before these


def blocks(source: Source, layout: Layout, keep: Sequence[str] = ()) -> Iterator[Rows]:
    """The rows of a source, block by block; `keep` are columns of `block` beside the model's."""
    first = 0
    for block in source.blocks(list(dict.fromkeys([*layout.columns, *keep]))):
        if first == 0:
            _check(layout, block, source, keep)
        if block.num_rows:
            yield rows_of(block, layout, source.name, first)
            first += block.num_rows
    if first == 0:
        raise Mistake(f"{source.name} has no rows.")


def _check(layout: Layout, block: pa.Table, source: Source, keep: Sequence[str]) -> None:
    """One sentence on columns that are not there, from all that are."""
    present = block.column_names
    if any(name not in present for name in (*layout.columns, *keep)):
        once = source.parts[0].path is None
        check_columns(layout, present if once else source.columns, source.name, keep)


def whole(source: Source, layout: Layout) -> Rows:
    """All rows at once."""
    every = list(blocks(source, layout))
    y, std, weight = (
        None if part[0] is None else np.concatenate([np.asarray(p) for p in part])
        for part in ([rows[i] for rows in every] for i in (1, 2, 3))
    )
    X = pa.concat_tables([rows.X for rows in every]).unify_dictionaries()
    return Rows(X, y, std, weight, concatenated([rows.block for rows in every]), 0)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """One table; a column that changes its type, as JSON may, becomes words."""
    tables = [each for each in tables if each.num_rows] or list(tables[:1])
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        names = dict.fromkeys(name for each in tables for name in each.column_names)
        return pa.table({name: _joined([_column(t, name) for t in tables]) for name in names})


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name in table.column_names:
        return table[name]
    return pa.chunked_array([pa.nulls(table.num_rows)])


def _joined(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    kinds = {column.type for column in columns if not pa.types.is_null(column.type)}
    words = len(kinds) > 1
    kind = pa.string() if words or not kinds else kinds.pop()
    parts = [words_of(column) if words else column.cast(kind) for column in columns]
    return pa.chunked_array([chunk for part in parts for chunk in part.iterchunks()], kind)


def check_columns(
    layout: Layout, present: Sequence[str], file: str, keep: Sequence[str] = ()
) -> None:
    """One sentence that names the columns which a table lacks, and those that may be meant."""
    absent = [name for name in (*layout.columns, *keep) if name not in present]
    if not absent:
        return
    raise Mistake(f"{file} has no {listed(absent)}{meant(absent, layout, present)}")


def listed(columns: Sequence[str], most: int = 5) -> str:
    """Columns as a sentence names them."""
    text = ", ".join(repr(name) for name in columns[:most])
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"column{'s' if len(columns) > 1 else ''} {text}{more}"


def meant(absent: Sequence[str], layout: Layout | None, present: Sequence[str]) -> str:
    """What follows: columns that are like the first, or all that there are."""
    known = set() if layout is None else set(layout.columns)
    free = [name for name in present if name not in known]
    same = [name for name in free if name.casefold().strip() == absent[0].casefold().strip()]
    likely = same or get_close_matches(absent[0], free, n=1)
    if likely:
        return f": is it {likely[0]!r}?"
    some = ", ".join(repr(name) for name in present[:12])
    return f"; its columns are {some}{', …' if len(present) > 12 else ''}."


def rows_of(block: pa.Table, layout: Layout, file: str, first: int = 0) -> Rows:
    """A block as `GPClassifier` takes it, or one sentence about a value that cannot be."""
    X = pa.table(
        {
            name: feature(block[name], kind, Place(file, name, first))
            for name, kind in layout.features
        }
    )
    y = None
    if layout.label is not None:
        name, kind = layout.label
        y = labels(block[name], kind, Place(file, name, first))
    weight = None
    if layout.weight is not None:
        weight = weights(block[layout.weight], Place(file, layout.weight, first))
    return Rows(X, y, errors(block, X, layout, file, first), weight, block, first)


def feature(values: pa.ChunkedArray, kind: str, place: Place) -> Any:
    """One column of X: numbers, or words as categories."""
    if kind == FLAG:
        return pc.equal(values_of(values, TRUTH, place), "true")
    found = values_of(values, kind, place)
    return found.dictionary_encode() if kind in (CATEGORY, TRUTH) else found


def labels(values: pa.ChunkedArray, kind: str, place: Place) -> np.ndarray:
    """The labels; one sentence with the row where one is missing."""
    missing = missing_labels(values)
    if missing.any():
        row = int(np.argmax(missing))
        count = int(missing.sum())
        more = f" ({count:,} in all)" if count > 1 else ""
        raise place.sentence(
            "no label", row, f"{more}: label it, or drop such rows with --drop-unlabelled."
        )
    if kind in (INTEGER, NUMBER):
        found = np.asarray(values_of(values, NUMBER, place).to_numpy())
        return found.astype(np.int64) if kind == INTEGER else found
    found = values_of(values, TRUTH if kind in (TRUTH, FLAG) else CATEGORY, place)
    if kind == FLAG:
        return np.asarray(pc.equal(found, "true").to_numpy(zero_copy_only=False), bool)
    return np.asarray(found.to_pylist())


def missing_labels(values: pa.ChunkedArray) -> np.ndarray:
    """Which rows have no label."""
    return np.asarray(pc.is_null(values, nan_is_null=True).to_numpy())


def weights(values: pa.ChunkedArray, place: Place) -> np.ndarray:
    """How much each row counts."""
    found = np.asarray(values_of(values, NUMBER, place).to_numpy(), np.float64)
    wrong = ~(found >= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "no value" if np.isnan(found[row]) else f"{found[row]:g}"
        raise place.sentence(what, row, ": a weight is 0 or more.")
    return found


def errors(
    block: pa.Table, X: pa.Table, layout: Layout, file: str, first: int
) -> np.ndarray | None:
    """The standard deviations of the errors of X, 0 for columns without."""
    if not layout.errors:
        return None
    found = np.zeros((X.num_rows, X.num_columns))
    places = {name: i for i, name in enumerate(X.column_names)}
    for name, column in layout.errors.items():
        place = Place(file, column, first)
        std = np.asarray(values_of(block[column], NUMBER, place).to_numpy(), np.float64)
        gap = np.asarray(X[name].is_null(nan_is_null=True).to_numpy())
        wrong = ~((std >= 0) | gap)
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "no value" if np.isnan(std[row]) else f"{std[row]:g}"
            raise place.sentence(
                what, row, f": the error of {name!r} is 0 or more wherever {name!r} has a value."
            )
        found[:, places[name]] = np.where(gap, 0.0, std)
    return found
