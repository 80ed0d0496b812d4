"""What an Arrow column holds, by its type; and whether several files hold the same."""

from typing import Any

import pyarrow as pa
import pyarrow.compute

compute: Any = pyarrow.compute  # made at its import, where no checker of types sees them

NUMBERS, WORDS, TRUTH, DATES = "numbers", "words", "truth values", "dates or durations"
NOTHING = "nothing"  # every value is missing


def kind_of(kind: pa.DataType) -> str:
    """Numbers, words and so on; the name of the type where it is none of them."""
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBERS
    if pa.types.is_boolean(kind):
        return TRUTH
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return WORDS
    if pa.types.is_temporal(kind):
        return DATES
    return NOTHING if pa.types.is_null(kind) else str(kind)


def agreed(known: pa.Schema, other: pa.Schema, names: tuple[str, str], only: Any) -> pa.Schema:
    """The columns of both; one sentence where they differ, in those of `only` if given.

    `names` are those of the two. A column of which one has no value gets the type of the other.
    """
    first, second = names
    for here, there, schema in ((first, second, other), (second, first, known)):
        mine = known.names if here == first else other.names
        absent = [c for c in mine if c not in schema.names and (only is None or c in only)]
        if absent:
            raise ValueError(
                f"The columns of the files differ: {there} has no column {absent[0]!r}, as {here} "
                "has. Name those that are to be read by columns=."
            )
    for place, name in enumerate(known.names):
        if name not in other.names or (only is not None and name not in only):
            continue
        kinds = [kind_of(schema.field(name).type) for schema in (known, other)]
        if kinds[0] == NOTHING:
            known = known.set(place, other.field(name))
        elif kinds[1] not in (kinds[0], NOTHING):
            raise ValueError(
                f"Column {name!r} holds {kinds[1]} in {second}, where {first} has {kinds[0]}: "
                "convert one of them."
            )
    return known
