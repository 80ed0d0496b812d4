"""From Arrow columns to numbers: levels and classes by their places, bad values by theirs.

In the first pass levels and classes are found as they come and have provisional places; once all
are known they are sorted. A later pass that finds another one finds another table.
"""

from collections.abc import Iterable, Iterator, Mapping
from reprlib import repr as shortened
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpclf.data.block import Block
from gpclf.data.columns import FEW, MOST_LEVELS, Columns, refuse_width
from gpclf.data.sources.base import Piece, Roles
from gpclf.data.sources.kinds import NUMBERS, TRUTH, WORDS, compute, kind_of

MOST_CLASSES = 10_000
AT_ONCE = 2**15  # rows that are numbers at once


class Place(NamedTuple):
    """Where the values of a column stand, for sentences."""

    where: str
    first: int  # rows of the piece before these
    column: str

    def of(self, row: int) -> str:
        """In words; rows are counted from 0 within the piece."""
        return f"column {self.column!r} of row {self.first + row} of {self.where}"


class Distinct:
    """The values of a column, by their places: as they come, then sorted."""

    def __init__(self, most: int):
        self.most = most
        self.places: dict[Any, int] = {}
        self.first: list[Place] = []  # where each value was first
        self.rank: np.ndarray | None = None

    def codes(self, values: pa.Array, place: Place) -> np.ndarray:
        """Places, −1 for a missing value."""
        dictionary, indices = _as_dictionary(values)
        used = np.unique(indices[indices >= 0])
        table = np.full(len(dictionary) + 1, -1, np.intp)  # the last for what is missing
        for index in used.tolist():
            value = dictionary[index]
            if value != value:  # NaN is none
                continue
            here = self.places.get(value)
            if here is None:
                row = int(np.argmax(indices == index))
                here = self.place_of(value, place._replace(first=place.first + row))
            table[index] = here
        found = table[indices]
        return found if self.rank is None else np.where(found < 0, -1, self.rank[found])

    def place_of(self, value: Any, place: Place) -> int:
        """That of a value which was not there before."""
        if self.rank is not None:
            raise ValueError(
                f"There is {shortened(value)} in {place.of(0)}, which the first pass did not find: "
                "fit a table that stays as it is."
            )
        self.places[value] = len(self.places)
        self.first.append(place)
        return self.places[value]

    @property
    def full(self) -> bool:
        """Whether there are too many."""
        return len(self.places) > self.most

    def settle(self) -> np.ndarray:
        """All values, sorted; which places they had."""
        values = list(self.places)
        order = sorted(range(len(values)), key=values.__getitem__)
        self.rank = np.empty(len(values), np.intp)
        self.rank[order] = np.arange(len(values))
        return np.array(order, np.intp)

    @property
    def values(self) -> np.ndarray:
        """Sorted."""
        return np.array(sorted(self.places))


def _as_dictionary(values: pa.Array) -> tuple[list[Any], np.ndarray]:
    """Distinct values as Python has them, and their places; −1 where one is missing."""
    if pa.types.is_null(values.type):
        return [], np.full(len(values), -1, np.intp)
    if not pa.types.is_dictionary(values.type):
        values = compute.dictionary_encode(values)
    indices = compute.fill_null(compute.cast(values.indices, pa.int64()), -1)
    places = np.asarray(indices.to_numpy(zero_copy_only=False), np.intp)
    dictionary = values.dictionary.to_pylist()
    empty = [index for index, value in enumerate(dictionary) if value is None]
    if empty:
        places = np.where(np.isin(places, empty), -1, places)
    return dictionary, places


def numbers_of(values: pa.Array, place: Place) -> np.ndarray:
    """A column of numbers as float64, NaN where one is missing; one sentence on what is none."""
    kind = kind_of(values.type)
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind not in (NUMBERS, TRUTH, WORDS):
        raise ValueError(
            f"Column {place.column!r} of {place.where} holds {kind}: convert it to numbers."
        )
    try:
        found = compute.cast(values, pa.float64(), safe=False)
    except pa.ArrowInvalid:
        raise _no_number(values, place) from None
    X = np.asarray(compute.fill_null(found, np.nan).to_numpy(zero_copy_only=False))
    infinite = np.isinf(X)
    if infinite.any():
        raise ValueError(
            f"There is infinity in {place.of(int(np.argmax(infinite)))}: make it a missing value, "
            "or leave the row out."
        )
    return X


def _no_number(values: pa.Array, place: Place) -> ValueError:
    for row, value in enumerate(values.to_pylist()):
        try:
            float("nan" if value is None else value)
        except ValueError:
            return ValueError(
                f"There is {shortened(value)} in {place.of(row)}, which is not a number: replace "
                "it, or, if the column holds categories, name it in categorical_features."
            )
    return ValueError(f"Column {place.column!r} of {place.where} holds what is not a number.")


class Coder:
    """What the columns of a table are, and its rows as blocks of numbers."""

    def __init__(
        self,
        roles: Roles,
        names: list[str],
        levels: list[int],
        guessed: bool,
        class_weight: Mapping[Any, float],
    ):
        self.roles, self.names, self.guessed = roles, names, guessed
        self.levels = {column: Distinct(MOST_LEVELS) for column in levels}
        self.labels = Distinct(MOST_CLASSES)
        self.gaps: dict[int, float] = {}  # of columns of levels, the place of a missing one
        self.class_weight = class_weight

    @property
    def is_level(self) -> np.ndarray:
        """For each feature whether it holds levels."""
        return np.isin(np.arange(len(self.names)), list(self.levels))

    @property
    def columns(self) -> list[str]:
        """All that are read."""
        return list(dict.fromkeys([*self.names, *self.roles.beside]))

    def blocks(self, piece: Piece) -> Iterator[Block]:
        """The rows that count, some thousands at a time."""
        rows = piece.rows.unify_dictionaries()
        for first in range(0, rows.num_rows, AT_ONCE):
            yield self._block(rows.slice(first, AT_ONCE), piece.where, first)

    def _block(self, rows: pa.Table, where: str, first: int) -> Block:
        def column(name: str) -> tuple[pa.Array, Place]:
            return whole(rows[name]), Place(where, first, name)

        X = np.empty((rows.num_rows, len(self.names)))
        for number, name in enumerate(self.names):
            if number in self.levels:
                X[:, number] = self._level_codes(number, *column(name))
            else:
                X[:, number] = numbers_of(*column(name))
        assert self.roles.label is not None
        y = self._classes(*column(self.roles.label))
        weight = np.ones(len(y))
        if self.roles.weight is not None:
            weight = weights_of(*column(self.roles.weight))
        if self.class_weight:
            weight = weight * self._of_classes()[y]
        std = self._errors(X, column) if self.roles.std else None
        block = Block(X, y.astype(np.int32), weight, std)
        return block if np.all(weight > 0) else block.part(weight > 0)

    def _level_codes(self, number: int, values: pa.Array, place: Place) -> np.ndarray:
        known = self.levels[number]
        kind = kind_of(values.type)
        if kind not in (NUMBERS, TRUTH, WORDS) and not pa.types.is_null(values.type):
            raise ValueError(
                f"Column {place.column!r} of {place.where} holds {kind}: convert it to words."
            )
        codes = known.codes(values, place)
        self.refuse_many(number)
        missing = codes < 0
        if known.rank is None:
            self.gaps.setdefault(number, -1.0) if missing.any() else None
            return codes.astype(np.float64)
        if missing.any() and number not in self.gaps:
            raise ValueError(
                f"A value is missing in {place.of(int(np.argmax(missing)))}, where the first pass "
                "found all: fit a table that stays as it is."
            )
        return np.where(missing, self.gaps.get(number, np.nan), codes)

    def _refuse_numbers(self, number: int, weights: np.ndarray | None = None) -> None:
        """One sentence on the first word of a column in which nearly all others are numbers."""
        known = self.levels[number]
        words = [
            value for value in known.places if isinstance(value, str) and not _is_number(value)
        ]
        share = len(words) / max(1, len(known.places))
        if weights is not None and len(weights):
            share = sum(weights[known.places[word]] for word in words) / max(weights.sum(), 1e-300)
        if self.guessed and words and share <= FEW:
            place = known.first[known.places[words[0]]]
            raise ValueError(
                f"There is {shortened(words[0])} in {place.of(0)}, where nearly all values are "
                "numbers: make it a missing value and the column one of numbers, or name the "
                "column in categorical_features if it holds categories."
            )

    def _classes(self, values: pa.Array, place: Place) -> np.ndarray:
        kind = kind_of(values.type)
        if kind not in (NUMBERS, TRUTH, WORDS) and not pa.types.is_null(values.type):
            raise ValueError(f"The label {place.column!r} holds {kind}: convert it to words.")
        y = self.labels.codes(values, place)
        if np.any(y < 0):
            count = int(np.sum(y < 0))
            more = f" ({count} in all in these rows)" if count > 1 else ""
            raise ValueError(
                f"A label is missing in {place.of(int(np.argmax(y < 0)))}{more}: drop such rows or "
                "label them."
            )
        self.refuse_many_classes()
        return y

    def refuse_many(self, number: int) -> None:
        """One sentence where a column has too many levels."""
        if self.levels[number].full:
            self._refuse_numbers(number)
            raise ValueError(
                f"Column {self.names[number]!r} has more than {MOST_LEVELS:,} categories, each of "
                "which becomes a column: drop it, group its rare categories, or encode it as "
                "numbers."
            )

    def refuse_many_classes(self) -> None:
        """One sentence where labels are no classes."""
        if self.labels.full:
            raise ValueError(
                f"The label {self.roles.label!r} has more than {MOST_CLASSES:,} different values: "
                "it must hold classes."
            )

    def _of_classes(self) -> np.ndarray:
        """The weight of each class, by its present place."""
        found = np.ones(len(self.labels.places))
        for value, place in self.labels.places.items():
            at = place if self.labels.rank is None else self.labels.rank[place]
            found[at] = self.class_weight.get(value, 1.0)
        return found

    def _errors(self, X: np.ndarray, column: Any) -> np.ndarray:
        """Standard deviations of the errors of X, 0 where a number is missing."""
        std = np.zeros_like(X)
        for feature, name in self.roles.std.items():
            number = self.names.index(feature)
            values, place = column(name)
            std[:, number] = errors_of_column(values, X[:, number], feature, place)
        return std

    def settle(self, weights: dict[int, np.ndarray]) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Sort levels and classes; the places that they had. `weights` are those of levels."""
        for number in self.levels:
            self._refuse_numbers(number, weights[number])
        orders = {number: known.settle() for number, known in self.levels.items()}
        self.gaps = {number: float(len(self.levels[number].places)) for number in self.gaps}
        refuse_width(self.known_columns.counts, self.names)
        return orders, self.labels.settle()

    @property
    def known_columns(self) -> Columns:
        """As the classifier keeps them."""
        width = range(len(self.names))
        levels = tuple(self.levels[n].values if n in self.levels else None for n in width)
        return Columns(levels, tuple(n in self.gaps for n in width))


def weights_of(values: pa.Array, place: Place) -> np.ndarray:
    """How much each row counts."""
    weight = numbers_of(values, place)
    wrong = ~(weight >= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "no value" if np.isnan(weight[row]) else f"{weight[row]:g}"
        raise ValueError(f"There is {what} in {place.of(row)}: a weight is 0 or more.")
    return weight


def errors_of_column(values: pa.Array, X: np.ndarray, feature: str, place: Place) -> np.ndarray:
    """The errors of a feature X, 0 where that is missing."""
    own = np.where(np.isnan(X), 0.0, numbers_of(values, place))
    wrong = ~(own >= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "no value" if np.isnan(own[row]) else f"{own[row]:g}"
        raise ValueError(
            f"There is {what} in {place.of(row)}: the error of {feature!r} is 0 or more wherever "
            "there is a value."
        )
    return own


def whole(values: pa.ChunkedArray) -> pa.Array:
    """One array of all chunks."""
    found: Any = values.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _is_number(value: str) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def label_counts(pieces: Iterable[Piece], label: str) -> dict[Any, int]:
    """How many rows each class has, by the label alone."""
    known, counts = Distinct(MOST_CLASSES), np.zeros(0, np.int64)
    for piece in pieces:
        rows = piece.rows.unify_dictionaries()
        y = known.codes(whole(rows[label]), Place(piece.where, 0, label))
        if known.full:
            break  # the first pass has a word on it
        found = np.bincount(y[y >= 0], minlength=len(known.places))
        counts = found + np.concatenate([counts, np.zeros(len(found) - len(counts), np.int64)])
    return dict(zip(known.places, counts.tolist(), strict=False))
