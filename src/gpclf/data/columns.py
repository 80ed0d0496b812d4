"""Columns that hold levels (words, truth values, codes) instead of numbers, and their codes.

A table is a frame (pandas, polars, Arrow and others, through narwhals) or an array. Its codes are
an array of float64: numbers as they are, NaN where one is missing, and a level as its place among
those of the training rows, of which a missing entry is the last; NaN for a level that these do not
have.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, time, timedelta
from numbers import Real
from reprlib import repr as shortened
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

Names = Sequence[str] | np.ndarray | None

LEVELS = (nw.Categorical, nw.Enum, nw.String, nw.Boolean)
DATES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)
MOST_LEVELS = 1000  # of one column
MOST_WIDTH = 5000  # columns that levels become, all together
PROBLEMS = (TypeError, ValueError, OverflowError)  # of what is no number
FEW = 0.1  # of the values of a column, which make a column of numbers look like one of words


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


def refuse_dates(frame: nw.DataFrame, names: Names) -> None:
    """One sentence that names the first column of dates, times or durations."""
    for column, kind in enumerate(frame.schema.values()):
        if isinstance(kind, DATES):
            raise _no_dates(column, names)


def _no_dates(column: int, names: Names) -> ValueError:
    return ValueError(
        f"Input X holds dates or durations in {name_of(column, names)}: convert them to numbers, "
        "for example to days since the first of them."
    )


def all_numbers(frame: nw.DataFrame) -> bool:
    """Whether every column is of a type of numbers."""
    return all(kind.is_numeric() for kind in frame.schema.values())


def _objects(values: Any) -> np.ndarray:
    """An array of Python's objects, one for each entry, whatever these are."""
    entries = values.tolist() if isinstance(values, np.ndarray) else values
    return np.fromiter(entries, object, len(entries))


def _levels(X: Any, column: int, names: Names) -> tuple[np.ndarray, np.ndarray]:
    """A column's levels where it has one, and which rows these are.

    Words are objects, numbers and truth values an array. One sentence where types mix.
    """
    if not isinstance(X, nw.DataFrame) and X.dtype.kind in "biu":
        return X[:, column], np.ones(len(X), bool)
    values = _objects(X[:, column].to_list() if isinstance(X, nw.DataFrame) else X[:, column])
    there = np.array([not _is_missing(value) for value in values.tolist()], bool)
    values = values[there]
    kinds = sorted({type(value).__name__ for value in values.tolist()})
    if len(kinds) > 1:
        raise ValueError(
            f"Input X mixes {' and '.join(kinds)} in {name_of(column, names)}: choose one."
        )
    if len(values) and isinstance(values[0], str | bytes):
        return values, there  # an array of words gives each the length of the longest
    if len(values) and isinstance(values[0], date | time | timedelta):
        raise _no_dates(column, names)
    if len(values) and not isinstance(values[0], Real | np.bool_):
        raise ValueError(
            f"Input X has categories of type {kinds[0]} in {name_of(column, names)}: convert them "
            "to strings."
        )
    return np.array(values.tolist()), there


def _is_missing(value: Any) -> bool:
    """None, or what does not equal itself; pandas' own missing value does not even say so."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return not np.ndim(value)


def _refuse_numbers(frame: nw.DataFrame, column: int, names: Names) -> None:
    """One sentence on the first word of a column in which nearly all others are numbers."""
    values = frame[:, column].to_list()
    counts = Counter(value for value in values if isinstance(value, str))
    words = {value for value in counts if not _is_number(value)}
    if not 0 < sum(counts[word] for word in words) <= FEW * counts.total():
        return
    row = next(row for row, value in enumerate(values) if value in words)
    raise ValueError(
        f"Input X has {shortened(values[row])} in row {row}, {name_of(column, names)}, "
        "where nearly all values are numbers: make it a missing value and the column one of "
        "numbers, or name the column in categorical_features if it holds categories."
    )


def _is_number(value: Any) -> bool:
    """Whether it is a finite number, or the word for one."""
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _numbers(X: Any, column: int, names: Names) -> np.ndarray:
    """A column of numbers; one sentence on the first entry that is none."""
    values = X[:, column].to_numpy() if isinstance(X, nw.DataFrame) else X[:, column]
    if values.dtype.kind in "mM":
        raise _no_dates(column, names)
    try:
        return np.asarray(values, dtype=np.float64)
    except PROBLEMS:
        values = _objects([np.nan if _is_missing(v) else v for v in values.tolist()])
    try:
        return np.asarray(values, dtype=np.float64)
    except PROBLEMS:
        raise _no_number(values, column, names) from None


def _no_number(values: np.ndarray, column: int, names: Names) -> ValueError | TypeError:
    """What to say of the first entry that is no number."""
    row, problem = next(found for found in enumerate(map(_problem, values)) if found[1] is not None)
    if isinstance(values[row], date | time | timedelta):
        return _no_dates(column, names)
    where = f"Input X has {shortened(values[row])} in row {row}, {name_of(column, names)}"
    if isinstance(problem, TypeError):
        return TypeError(f"{where}, which is not a number: {problem}.")
    also = " or give X as a frame" if names is None else ""
    return ValueError(
        f"{where}, which is not a number: replace it, or, if the column holds categories, name it "
        f"in categorical_features{also}."
    )


def _problem(value: Any) -> Exception | None:
    """Why a value is no number; None if it is one."""
    try:
        if np.ndim(value):
            raise TypeError("it is a list or an array")
        float(value)
        return None
    except PROBLEMS as problem:
        return problem


class Columns(NamedTuple):
    """For each column its sorted levels, or None where it holds numbers.

    And whether a missing entry is one more level, because the training rows have one.
    """

    levels: tuple[np.ndarray | None, ...]
    gaps: tuple[bool, ...]

    @classmethod
    def of(cls, X: Any, wanted: Any, names: Names) -> "Columns":
        """As the rows of X have them."""
        frame = as_frame(X)
        kinds = [] if frame is None else list(frame.schema.values())
        guessed = isinstance(wanted, str)  # by the types of the columns
        levels: list[np.ndarray | None] = [None] * np.shape(X)[1]
        gaps = [False] * len(levels)
        for column in chosen(X, wanted, names):
            if frame is not None and guessed and isinstance(kinds[column], nw.String):
                _refuse_numbers(frame, column, names)
            values, there = _levels(X if frame is None else frame, column, names)
            levels[column] = _distinct(values, column, names)
            gaps[column] = not there.all()
        found = cls(tuple(levels), tuple(gaps))
        refuse_width(found.counts, names)
        return found

    @classmethod
    def numbers(cls, width: int) -> "Columns":
        """No levels anywhere."""
        return cls((None,) * width, (False,) * width)

    def same(self, other: "Columns") -> bool:
        """Whether both have the same columns, with the same levels."""
        pairs = zip(self.levels, other.levels, strict=False)
        return self.gaps == other.gaps and all(
            (two is None) if one is None else (two is not None and np.array_equal(one, two))
            for one, two in pairs
        )

    @property
    def counts(self) -> np.ndarray:
        """The number of levels of each column, 0 where it holds numbers."""
        pairs = zip(self.levels, self.gaps, strict=True)
        return np.array([0 if levels is None else len(levels) + gap for levels, gap in pairs])

    def codes(self, X: Any, names: Names) -> np.ndarray:
        """Numbers, and the places of levels; NaN for numbers missing and levels not known."""
        frame = as_frame(X)
        X = X if frame is None else frame
        codes = np.empty(np.shape(X), np.float64)
        for column, levels in enumerate(self.levels):
            if levels is None:
                codes[:, column] = _numbers(X, column, names)
                continue
            values, there = _levels(X, column, names)
            words = values.dtype == object
            if len(values) and len(levels) and words != (levels.dtype.kind in "US"):
                here, before = ("words", "numbers") if words else ("numbers", "words")
                raise ValueError(
                    f"Input X has {here} in {name_of(column, names)}, where the training rows had "
                    f"{before}."
                )
            codes[:, column] = len(levels) if self.gaps[column] else np.nan
            codes[there, column] = _codes(values, levels)
        return codes


def _distinct(values: np.ndarray, column: int, names: Names) -> np.ndarray:
    """The levels, sorted; one sentence where they are too many, before an array has them all."""
    distinct = set(values.tolist() if values.dtype == object else np.unique(values).tolist())
    if len(distinct) > MOST_LEVELS:
        raise ValueError(
            f"Input X has {len(distinct):,} categories in {name_of(column, names)}, each of which "
            f"becomes a column (at most {MOST_LEVELS:,}): drop the column, group its rare "
            "categories, or encode it as numbers, for example with "
            "sklearn.preprocessing.TargetEncoder."
        )
    return np.array(sorted(distinct))


def refuse_width(counts: np.ndarray, names: Names) -> None:
    """One sentence where the levels of all columns become too many columns."""
    if counts.sum() > MOST_WIDTH:
        column = int(np.argmax(counts))
        raise ValueError(
            f"The categories of X become {counts.sum():,} columns (at most {MOST_WIDTH:,}), of "
            f"which {name_of(column, names)} gives the most, {counts[column]:,}: drop columns, "
            "group rare categories, or encode them as numbers."
        )


def _codes(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The place of each value among the levels; NaN for one that is not there."""
    if not len(levels):
        return np.full(len(values), np.nan)
    if values.dtype == object:
        place = {level: float(i) for i, level in enumerate(levels.tolist())}
        return np.array([place.get(value, np.nan) for value in values.tolist()])
    places = np.searchsorted(levels, values).clip(max=len(levels) - 1)
    return np.where(levels[places] == values, places, np.nan)
