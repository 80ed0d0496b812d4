"""Tables that are read, not held: what a user says of one, and its pieces as they are read.

A `Table` is a description: where the rows are and what their columns are for. `open` looks at it
once and gives `Pieces`: what can be read at once (a row group of a file, a batch), in a fixed
order, any number of times. Both are small and can be pickled, so that a part of the pieces can be
read by another process; `part` gives some of them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from gpclf.data.sources.paths import changed

INDEX = re.compile(r"__index_level_\d+__")  # that pandas writes beside the columns


class Roles(NamedTuple):
    """What columns are for, by name."""

    label: str | None
    weight: str | None
    std: Mapping[str, str]  # of a feature the column of its errors
    columns: tuple[str, ...] | None  # features; None: all that have no other role

    @property
    def beside(self) -> list[str]:
        """The columns that are no features."""
        named = [self.label, self.weight, *self.std.values()]
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def named(self) -> list[str] | None:
        """All columns that are read; None where those without a role are features."""
        return None if self.columns is None else [*self.columns, *self.beside]


class Piece(NamedTuple):
    """What is read at once."""

    number: int  # among all pieces
    where: str  # as sentences name it
    rows: pa.Table


class Pieces(ABC):
    """A table as it was found, piece by piece."""

    name: str  # as sentences name it
    schema: pa.Schema
    any_order: bool = True  # whether pieces can be read in any order

    @abstractmethod
    def read(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Piece]:
        """These columns of all pieces, or of some by their numbers, in that order."""

    @abstractmethod
    def part(self, which: Sequence[int]) -> "Pieces":
        """Some pieces as a table of their own, whose numbers begin at 0."""

    @property
    @abstractmethod
    def rows(self) -> list[int] | None:
        """How many rows each piece has; None where only reading tells."""

    @property
    @abstractmethod
    def fingerprint(self) -> tuple[Any, ...]:
        """What tells this table from another, or from itself once it has changed."""

    def change(self) -> ValueError:
        """What to say where a later pass finds something else than the first."""
        return changed(self.name)


class OfFiles(Pieces):
    """Pieces of files: each item has its `file` and says `where` it is."""

    def __init__(self, name: str, schema: pa.Schema, items: Sequence[Any]):
        self.name, self.schema, self.items = name, schema, list(items)

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Path, size and time of change of each file."""
        return tuple(dict.fromkeys(item.file for item in self.items))

    def part(self, which: Sequence[int]) -> "OfFiles":
        """Some of the items."""
        return type(self)(self.name, self.schema, [self.items[number] for number in which])


class Table(ABC):
    """Labelled rows on disk or in a stream, for `GPClassifier.fit` and `predict_to`."""

    def __init__(
        self,
        label: str | None,
        weight: str | None,
        X_std: Mapping[str, str] | None,
        columns: Sequence[str] | None,
    ):
        self.roles = _checked_roles(label, weight, X_std, columns)

    @abstractmethod
    def open(self) -> Pieces:
        """Look at the table; one sentence where it is none."""

    def features(self, schema: pa.Schema, name: str) -> list[str]:
        """The columns to learn from; one sentence on what is not there."""
        roles, present = self.roles, schema.names
        twice = next((column for column in present if present.count(column) > 1), None)
        if twice is not None:
            raise ValueError(
                f"{name} has two columns named {twice!r}: give each a name of its own."
            )
        for what, column in (("label", roles.label), ("weight", roles.weight)):
            if column is not None and column not in present:
                raise ValueError(f"{name} has no column {column!r}, the {what}{_others(present)}")
        for feature, column in roles.std.items():
            if column not in present:
                raise ValueError(
                    f"{name} has no column {column!r}, the errors of {feature!r}{_others(present)}"
                )
        beside = roles.beside
        wanted = roles.columns
        free = [c for c in present if c not in beside and not INDEX.fullmatch(c)]
        found = free if wanted is None else list(wanted)
        absent = [column for column in found if column not in present]
        if absent:
            raise ValueError(f"{name} has no column {absent[0]!r}{_others(present)}")
        if not found:
            raise ValueError(f"{name} has no column to learn from beside {', '.join(beside)}.")
        strange = [feature for feature in roles.std if feature not in found]
        if strange:
            raise ValueError(
                f"X_std names {strange[0]!r}, which is no feature: these are {', '.join(found)}."
            )
        return found


def _others(present: Sequence[str], most: int = 12) -> str:
    some = ", ".join(map(repr, present[:most]))
    return f"; its columns are {some}{', …' if len(present) > most else ''}."


def _checked_roles(label: Any, weight: Any, X_std: Any, columns: Any) -> Roles:
    """One sentence on a role that makes no sense."""
    for parameter, value in (("label", label), ("weight", weight)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{parameter} must be the name of a column, got {value!r}.")
    if X_std is not None and not isinstance(X_std, Mapping):
        raise TypeError(
            "X_std of a table must say which column has the errors of which, as "
            f"{{'flux': 'flux_err'}}, got {X_std!r}."
        )
    std = dict(X_std or {})
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
        raise TypeError(f"columns must be a list of names, got {columns!r}.")
    roles = Roles(label, weight, std, None if columns is None else tuple(columns))
    if columns is not None:
        again = [name for name in roles.columns or () if name in roles.beside]
        if again:
            raise ValueError(f"columns names {again[0]!r}, which has another role.")
    if label is not None and label in (weight, *std.values()):
        raise ValueError(f"The label {label!r} has another role, too: give each its own column.")
    return roles
