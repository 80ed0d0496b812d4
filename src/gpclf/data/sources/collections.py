"""Dask's arrays and frames as tables: their partitions are the pieces."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from dask.delayed import Delayed, delayed

from gpclf.data.sources.base import Piece, Pieces, Table


def is_array(X: Any) -> bool:
    """Whether it is one of Dask's."""
    return hasattr(X, "dask") and hasattr(X, "numblocks")


def is_frame(X: Any) -> bool:
    """Whether it is a frame or a series of Dask's."""
    return hasattr(X, "dask") and hasattr(X, "divisions")


def width_of(X: Any) -> int:
    """The columns of an array, or one sentence."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axis, where it needs two: rows and columns.")
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns: call X.compute_chunk_sizes().")
    return int(X.shape[1])


def sizes_of(X: Any) -> tuple[Any, ...]:
    """How many rows each partition of an array has; NaN where that is not known."""
    return tuple(X.blocks[number].shape[0] for number in range(X.numblocks[0]))


def parts_of(X: Any) -> list[Delayed]:
    """Partitions, each with all columns."""
    if is_array(X) and X.ndim == 2:
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed()))


class CollectionTable(Table):
    """X, y and weights whose partitions belong together one by one; y may be a column of X."""

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        if not (is_array(X) or is_frame(X)):
            raise TypeError(
                f"X must be an array or a frame of Dask's, or name Parquet files, got "
                f"{type(X).__name__}: GPClassifier takes what is in memory."
            )
        self.X, self.beside = X, {"y": y, "sample_weight": sample_weight}
        label, weight = (self._column(name) for name in self.beside)
        super().__init__(label, weight, None, None)

    @property
    def names(self) -> list[str]:
        """Of the columns of X."""
        if is_frame(self.X):
            return [str(name) for name in self.X.columns]
        return [f"x{column}" for column in range(width_of(self.X))]

    def _column(self, name: str) -> str | None:
        """Its column in the pieces."""
        given = self.beside[name]
        if given is None or isinstance(given, str):
            return given
        while name in self.names:
            name += "_"
        return name

    def open(self) -> "CollectionPieces":
        """Look at types; partitions are counted where they are known."""
        roles, parts = self.roles, parts_of(self.X)
        beside: dict[str, list[Delayed]] = {}
        for (name, given), column in zip(
            self.beside.items(), (roles.label, roles.weight), strict=True
        ):
            if column is not None and not isinstance(given, str):
                beside[column] = _partitions(name, given, self.X, len(parts))
        schema = _schema(self.X, self.names)
        for column in beside:
            schema = schema.append(pa.field(column, pa.null()))
        make = delayed(assembled)
        pieces = [
            make(number, self.names, part, {name: own[number] for name, own in beside.items()})
            for number, part in enumerate(parts)
        ]
        return CollectionPieces(schema, pieces)


def _partitions(name: str, given: Any, X: Any, count: int) -> list[Delayed]:
    """Those of y or weights, as many as X has; one sentence where they do not fit."""
    if not (is_array(given) or is_frame(given)):
        raise TypeError(
            f"{name} must be an array or a series of Dask's with the partitions of X, or the name "
            f"of a column of a frame, got {type(given).__name__}."
        )
    if is_frame(given) and given.ndim == 2 and len(given.columns) != 1:
        raise ValueError(f"{name} has {len(given.columns)} columns, where it needs one.")
    if is_array(given) and is_array(X):
        rows, own = X.shape[0], given.shape[0]
        if not (np.isnan(rows) or np.isnan(own)):
            if rows != own:
                raise ValueError(f"X has {rows} rows and {name} has {own}: one for each is needed.")
            given = given.rechunk({0: sizes_of(X)})
    found = parts_of(given)
    if len(found) != count:
        raise ValueError(
            f"X has {count} partitions and {name} has {len(found)}: give it those of X, for "
            "example as a column of the same frame."
        )
    return found


def _schema(X: Any, names: list[str]) -> pa.Schema:
    """By the types that columns have where there is no row; objects are words, until one is not."""
    if is_frame(X):
        import pandas as pd  # which frames of Dask's are made of

        kinds = [pa.array(pd.Series([], dtype=kind)).type for kind in X.dtypes]
    else:
        kinds = [pa.array(np.empty(0, X.dtype)).type] * len(names)
    words = [pa.string() if pa.types.is_null(kind) else kind for kind in kinds]
    return pa.schema(list(zip(names, words, strict=True)))


def assembled(number: int, names: list[str], X: Any, beside: dict[str, Any]) -> Piece:
    """A partition as Arrow has it, y and weights as further columns."""
    where = f"partition {number}"
    rows = as_arrow(X, names, where)
    for name, own in beside.items():
        values = np.asarray(own)
        if len(values) != rows.num_rows or values.size != len(values):
            raise ValueError(
                f"Partition {number} has {rows.num_rows} rows of X, and of {name} the shape "
                f"{values.shape}: one for each row is needed."
            )
        rows = rows.append_column(name, _column(values.ravel(), name, where))
    return Piece(number, where, rows)


def as_arrow(X: Any, names: list[str], where: str) -> pa.Table:
    """A partition of X."""
    if hasattr(X, "columns"):
        try:
            return pa.Table.from_pandas(X, preserve_index=False).rename_columns(names)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(f"{where} mixes types: {' '.join(map(str, error.args))}.") from None
    columns = [_column(column, name, where) for column, name in zip(X.T, names, strict=True)]
    return pa.table(columns, names=names) if len(X) else _no_rows(X, names)


def _no_rows(X: np.ndarray, names: list[str]) -> pa.Table:
    return pa.schema([(name, pa.null()) for name in names]).empty_table()


def _column(values: np.ndarray, name: str, where: str) -> pa.Array:
    try:
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        text = str(error).rstrip(".")
        raise ValueError(f"Column {name!r} of {where} mixes types or has none: {text}.") from None


class CollectionPieces(Pieces):
    """Delayed pieces."""

    name = "X"

    def __init__(self, schema: pa.Schema, pieces: Sequence[Delayed]):
        self.schema, self.pieces = schema, list(pieces)

    @property
    def rows(self) -> None:
        """Only computing tells."""

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """The keys of the graph."""
        return tuple(str(piece.key) for piece in self.pieces)

    def part(self, which: Sequence[int]) -> "CollectionPieces":
        """Some partitions."""
        return CollectionPieces(self.schema, [self.pieces[number] for number in which])

    def read(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Piece]:
        """One after the other, here."""
        numbers = range(len(self.pieces)) if which is None else which
        for number in numbers:
            piece: Any = self.pieces[number].compute()
            yield piece._replace(number=number, rows=piece.rows.select(list(columns)))
