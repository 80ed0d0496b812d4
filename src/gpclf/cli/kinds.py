"""What a column holds: numbers, dates, truth values or words; and its values as the model has them.

A number is a float64, a date the days since 1970, a truth value "true" or "false", a category a
word. Rows are counted from 1, without a header.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpclf.cli.errors import Mistake
from gpclf.data.sources.kinds import compute as pc

NUMBER, DATE, TRUTH, CATEGORY = "number", "date", "truth", "category"
NOTHING, OTHER = "nothing", "other"  # no value at all; what no model takes
DAY = 86_400_000_000  # microseconds
NEARLY_ALL = 0.9  # of the values are numbers: the others are taken for mistakes
DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
LEADING_ZERO = r"^0\d"  # of codes, not of numbers


class Place(NamedTuple):
    """Where values stand, for sentences about them."""

    file: str
    column: str
    first: int = 0  # rows before these

    def sentence(self, what: str, index: int, rest: str) -> Mistake:
        """What a value is, where, and what to do."""
        row = self.first + index + 1
        return Mistake(f"{self.file}: column {self.column!r} has {what} in row {row:,}{rest}")


def kind_of(values: pa.ChunkedArray, place: Place) -> str:
    """What a column of a training table holds; one sentence where words are among numbers."""
    kind = values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return NOTHING
    if pa.types.is_boolean(kind):
        return TRUTH
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_temporal(kind):
        return DATE
    if pa.types.is_dictionary(kind):
        return CATEGORY if _is_text(kind.value_type) else OTHER
    return _kind_of_words(words_of(values), place) if _is_text(kind) else OTHER


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def words_of(values: Any) -> Any:
    """A column as words without spaces around them; whole numbers as such; no empty ones."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return pc.cast(values, pa.string())
    if pa.types.is_floating(kind):
        whole = pc.all(pc.equal(values, pc.round(values))).as_py()
        return pc.cast(pc.cast(values, pa.int64()) if whole else values, pa.string())
    words = pc.utf8_trim_whitespace(pc.cast(values, pa.string()))
    return pc.if_else(pc.equal(words, ""), pa.scalar(None, pa.string()), words)


def _kind_of_words(words: pa.ChunkedArray, place: Place) -> str:
    distinct = pc.drop_null(pc.unique(words))
    if not len(distinct):
        return NOTHING
    if set(pc.utf8_lower(distinct).to_pylist()) <= {"true", "false"}:
        return TRUTH
    figures = _are_numbers(distinct)
    if all(figures) and not pc.any(pc.match_substring_regex(distinct, LEADING_ZERO)).as_py():
        return NUMBER
    if _days(distinct) is not None:
        return DATE
    if pc.all(pc.match_substring_regex(distinct, DECIMAL_COMMA)).as_py():
        row = pc.index(pc.is_valid(words), True).as_py()
        raise place.sentence(
            f"{words[row].as_py()!r}",
            row,
            f": give --decimal , if these are numbers, or --categories {place.column!r} if not.",
        )
    if np.mean(figures) > 0 and not all(figures):
        _refuse_few_words(words, distinct.filter(pa.array(~figures)), place)
    return CATEGORY


def _are_numbers(words: pa.Array) -> np.ndarray:
    """Which of the words are numbers."""
    try:
        pc.cast(words, pa.float64())
        return np.ones(len(words), bool)
    except pa.ArrowInvalid:
        return np.array([_is_number(word) for word in words.to_pylist()], bool)


def _is_number(word: str) -> bool:
    try:
        float(word)
        return "_" not in word
    except ValueError:
        return False


def _refuse_few_words(words: pa.ChunkedArray, strange: pa.Array, place: Place) -> None:
    """One sentence on the first word of a column in which nearly all others are numbers."""
    odd = pc.fill_null(pc.is_in(words, value_set=strange), False)
    there = len(words) - words.null_count
    if pc.sum(odd).as_py() > (1 - NEARLY_ALL) * there:
        return
    row = pc.index(odd, True).as_py()
    word = words[row].as_py()
    raise place.sentence(
        f"{word!r}",
        row,
        f", where nearly all values are numbers: give --missing {word!r} if it stands for none, or "
        f"--categories {place.column!r} if the column holds categories.",
    )


def values_of(values: pa.ChunkedArray, kind: str, place: Place) -> pa.Array | pa.ChunkedArray:
    """A column as the model takes it, float64 or words; one sentence where it cannot be."""
    if kind == NUMBER:
        return _numbers(values, place)
    if kind == DATE:
        found = _days(values)
        if found is None:
            row = _first(values, lambda word: _days(pa.array([word])) is None)
            raise place.sentence(f"{values[row].as_py()!r}", row, ", where dates were expected.")
        return found
    if pa.types.is_nested(values.type) or pa.types.is_temporal(values.type):
        raise Mistake(f"{place.file}: column {place.column!r} holds {values.type}, not words.")
    words = words_of(values)
    return pc.utf8_lower(words) if kind == TRUTH else words


def _numbers(values: pa.ChunkedArray, place: Place) -> pa.ChunkedArray:
    kind = values.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        raise Mistake(
            f"{place.file}: column {place.column!r} holds {kind}, where numbers were expected."
        )
    if _is_text(kind) or pa.types.is_dictionary(kind):
        words = words_of(values)
        try:
            found = pc.cast(words, pa.float64())
        except pa.ArrowInvalid:
            row = _first(words, lambda word: not _are_numbers(pa.array([word]))[0])
            raise place.sentence(
                f"{words[row].as_py()!r}", row, ", where numbers were expected."
            ) from None
    else:
        found = pc.cast(values, pa.float64(), safe=False)
    infinite = pc.fill_null(pc.is_inf(found), False)
    if pc.any(infinite).as_py():
        raise place.sentence(
            "infinity",
            pc.index(infinite, True).as_py(),
            ": make it a missing value or drop the row.",
        )
    return found


def _first(words: pa.ChunkedArray, wrong: Any) -> int:
    """The first row with a value that is wrong."""
    return next(i for i, word in enumerate(words.to_pylist()) if word is not None and wrong(word))


def _days(values: Any) -> Any:
    """Dates, times or durations as days, from types of Arrow's or words; None if they are none."""
    kind = values.type
    try:
        if pa.types.is_time(kind):
            micros = pc.cast(pc.cast(values, pa.time64("us"), safe=False), pa.int64())
        elif pa.types.is_duration(kind):
            micros = pc.cast(pc.cast(values, pa.duration("us"), safe=False), pa.int64())
        elif pa.types.is_temporal(kind):
            micros = _micros(values)
        elif _is_text(kind):
            micros = _micros(_dates(values))
        else:
            return None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return pc.divide(pc.cast(micros, pa.float64(), safe=False), float(DAY))


def _dates(words: Any) -> Any:
    """Dates of ISO 8601, with a zone or without."""
    trimmed = words_of(words)
    try:
        return pc.cast(trimmed, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pc.cast(trimmed, pa.timestamp("us", "UTC"))


def _micros(values: Any) -> Any:
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return pc.cast(pc.cast(values, pa.timestamp("us", zone), safe=False), pa.int64())
