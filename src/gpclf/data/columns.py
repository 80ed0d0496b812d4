"""Columns that hold levels (words, truth values, codes) instead of numbers, and their codes.

A table is a frame (pandas, polars, Arrow and others, through narwhals) or an array. Its codes are
an array of float64: numbers as they are, a level as its place among those of the training rows, and
NaN for a level that these do not have.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

Names = Sequence[str] | np.ndarray | None

LEVELS = (nw.Categorical, nw.Enum, nw.String, nw.Boolean)


def as_frame(X: Any, called: str = "X") -> nw.DataFrame | None:
    """X as a frame of narwhals, or None if it is none; one sentence where two columns are alike."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        return frame if isinstance(frame, nw.DataFrame) else None
    except ValueError:
        labels = X.columns if hasattr(X, "iloc") else X.column_names  # pandas, or Arrow
        names = [str(name) for name in labels]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is None:
            raise
        raise ValueError(
            f"{called} has two columns named {twice!r}: give each a name of its own."
        ) from None


def name_of(column: int, names: Names) -> str:
    """A column as a sentence names it."""
    return f"column {column}" if names is None else f"column {names[column]!r}"


def chosen(X: Any, wanted: Any, names: Names) -> list[int]:
    """The columns that hold levels: by type in a frame, or as indices, names or a mask say."""
    if wanted is None:
        return []
    if isinstance(wanted, str):
        if wanted != "from_dtype":
            raise ValueError(
                'categorical_features must be "from_dtype", None, or a list of indices, names or '
                f"truth values, got {wanted!r}."
            )
        frame = as_frame(X)
        if frame is None:
            return []
        return [i for i, kind in enumerate(frame.schema.values()) if isinstance(kind, LEVELS)]
    return listed(wanted, np.shape(X)[1], names, "categorical_features")


def listed(wanted: Any, width: int, names: Names, parameter: str) -> list[int]:
    """The columns that a parameter lists, as indices, names or a mask."""
    given = np.asarray(wanted)
    if given.ndim != 1:
        raise ValueError(f"{parameter} must be a list with one entry a column.")
    if given.dtype.kind == "b":
        if len(given) != width:
            raise ValueError(f"{parameter} is a mask of {len(given)} columns, but X has {width}.")
        return np.flatnonzero(given).tolist()
    if given.dtype.kind in "iu":
        wrong = [int(i) for i in given if not 0 <= i < width]
        if wrong:
            raise ValueError(
                f"{parameter} names column {wrong[0]}, but X has columns 0 to {width - 1}."
            )
        return sorted({int(i) for i in given})
    known = [] if names is None else list(names)
    wrong = [name for name in given.tolist() if name not in known]
    if wrong:
        raise ValueError(
            f"{parameter} names {wrong[0]!r}, which is no column of X"
            + (": give X as a frame with names." if names is None else ".")
        )
    return sorted({known.index(name) for name in given.tolist()})


def _values(X: Any, column: int, names: Names) -> np.ndarray:
    """The levels of a column, all of one type; one sentence where one is missing or types mix."""
    frame = as_frame(X)
    if frame is None:
        values = X[:, column]
        if values.dtype.kind in "biuUS":
            return values
        missing = np.array([value is None or value != value for value in values.tolist()], bool)
    else:
        series = frame[:, column]
        missing = np.asarray(series.is_null().to_numpy(), bool)
        values = np.array(series.to_list(), dtype=object)
    if missing.any():
        raise ValueError(
            f"Input X has no value in row {int(np.argmax(missing))}, {name_of(column, names)} "
            f"({int(missing.sum())} such entries): give these a level of their own, for example "
            'with sklearn.impute.SimpleImputer(strategy="constant", fill_value="missing").'
        )
    if values.dtype == object:
        kinds = sorted({type(value).__name__ for value in values})
        if len(kinds) > 1:
            raise ValueError(
                f"Input X mixes {' and '.join(kinds)} in {name_of(column, names)}: choose one."
            )
        values = np.array(values.tolist())
    return values


def _numbers(X: Any, column: int, names: Names) -> np.ndarray:
    frame = as_frame(X)
    values = X[:, column] if frame is None else frame[:, column].to_numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Input X has values in {name_of(column, names)} that are no numbers: convert them, or "
            "name the column in categorical_features."
        ) from None


class Columns(NamedTuple):
    """For each column its sorted levels, or None where it holds numbers."""

    levels: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, X: Any, wanted: Any, names: Names) -> "Columns":
        """As the rows of X have them."""
        categorical = set(chosen(X, wanted, names))
        return cls(
            tuple(
                np.unique(_values(X, column, names)) if column in categorical else None
                for column in range(np.shape(X)[1])
            )
        )

    @classmethod
    def numbers(cls, width: int) -> "Columns":
        """No levels anywhere."""
        return cls((None,) * width)

    def same(self, other: "Columns") -> bool:
        """Whether both have the same columns, with the same levels."""
        pairs = zip(self.levels, other.levels, strict=False)
        return len(self.levels) == len(other.levels) and all(
            (two is None) if one is None else (two is not None and np.array_equal(one, two))
            for one, two in pairs
        )

    @property
    def counts(self) -> np.ndarray:
        """The number of levels of each column, 0 where it holds numbers."""
        return np.array([0 if levels is None else len(levels) for levels in self.levels])

    def codes(self, X: Any, names: Names) -> np.ndarray:
        """Numbers, and the places of levels; NaN for levels not known."""
        codes = np.empty(np.shape(X), np.float64)
        for column, levels in enumerate(self.levels):
            if levels is None:
                codes[:, column] = _numbers(X, column, names)
                continue
            values = _values(X, column, names)
            if (values.dtype.kind in "US") != (levels.dtype.kind in "US"):
                raise ValueError(
                    f"Input X has {values.dtype.name} in {name_of(column, names)}, where the "
                    f"training rows had {levels.dtype.name}."
                )
            places = np.searchsorted(levels, values).clip(max=len(levels) - 1)
            codes[:, column] = np.where(levels[places] == values, places, np.nan)
        return codes
