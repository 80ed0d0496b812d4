"""The features of a table by the columns that a fitted classifier knows, for prediction."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpclf.data.columns import Columns
from gpclf.data.sources.base import Piece
from gpclf.data.sources.coding import AT_ONCE, Distinct, Place, errors_of_column, numbers_of, whole
from gpclf.data.sources.kinds import NOTHING, WORDS, kind_of

STRANGE = -2  # the place of a level that the training rows did not have


class Known(Distinct):
    """Levels of the training rows; others have no place."""

    def __init__(self, levels: np.ndarray):
        super().__init__(len(levels))
        self.words = levels.dtype.kind in "US"
        self.places = {level: place for place, level in enumerate(levels.tolist())}

    def place_of(self, value: Any, place: Place) -> int:
        """That of the level, or none."""
        return self.places.get(value, STRANGE)

    def refuse(self, values: pa.Array, place: Place) -> None:
        """One sentence where words were learned from and these are none, or the reverse."""
        kind = kind_of(values.type)
        if kind != NOTHING and self.places and (kind == WORDS) != self.words:
            before = "words" if self.words else "numbers"
            raise ValueError(
                f"Column {place.column!r} of {place.where} holds {kind}, where the training rows "
                f"had {before}."
            )


class Scored(NamedTuple):
    """Rows as they were read, and as numbers."""

    rows: pa.Table
    X: np.ndarray
    std: np.ndarray | None


class Features:
    """Rows as codes, some thousands at a time."""

    def __init__(self, names: list[str], columns: Columns, std: Mapping[str, str]):
        self.names, self.columns, self.std = names, columns, std
        levels = enumerate(columns.levels)
        self.known = {number: Known(own) for number, own in levels if own is not None}

    def blocks(self, piece: Piece) -> Iterator[Scored]:
        """All rows of a piece."""
        rows = piece.rows.unify_dictionaries()
        for first in range(0, rows.num_rows, AT_ONCE):
            some = rows.slice(first, AT_ONCE)
            X = np.empty((some.num_rows, len(self.names)))
            for number, name in enumerate(self.names):
                X[:, number] = self._codes(
                    number, whole(some[name]), Place(piece.where, first, name)
                )
            std = np.zeros_like(X) if self.std else None
            for feature, name in self.std.items():
                number = self.names.index(feature)
                assert std is not None
                place = Place(piece.where, first, name)
                std[:, number] = errors_of_column(whole(some[name]), X[:, number], feature, place)
            yield Scored(some, X, std)

    def _codes(self, number: int, values: pa.Array, place: Place) -> np.ndarray:
        if number not in self.known:
            return numbers_of(values, place)
        known = self.known[number]
        known.refuse(values, place)
        codes = known.codes(values, place)
        gap = float(len(known.places)) if self.columns.gaps[number] else np.nan
        return np.select([codes == STRANGE, codes < 0], [np.nan, gap], codes)
