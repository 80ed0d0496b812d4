"""What is said of the columns of a training table, and which of them are left out."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpclf.cli.errors import Mistake
from gpclf.cli.kinds import CATEGORY, DATE, NOTHING, NUMBER, OTHER, TRUTH, Place, kind_of, words_of
from gpclf.cli.leaks import explained
from gpclf.data.columns import MOST_LEVELS
from gpclf.data.sources.kinds import compute as pc

FEW_ROWS = 20  # below which nothing can be said of identifiers
COUNTER = 4  # times as many whole numbers as rows: where all differ by chance hardly ever
MANY_LEVELS = 0.5  # of the rows
IDENTIFIER = re.compile(r"(^|[_\W])(id|uuid|guid|index|idx|row|rownum|key)$", re.IGNORECASE)
GIVES_AWAY = 0.97  # of what there is to know of the label, from one column alone
WORDS = {NUMBER: "number", DATE: "date → number", TRUTH: "category", CATEGORY: "category"}


@dataclass(frozen=True)
class Finding:
    """One column: what it holds, and why it is left out, if it is."""

    name: str
    kind: str
    distinct: int
    missing: int
    note: str = ""
    out: bool = False

    @property
    def row(self) -> tuple[str, str, str, str, str]:
        """As the table before a fit shows it."""
        shown = "left out" if self.out else WORDS.get(self.kind, self.kind)
        return (
            self.name,
            shown,
            f"{self.distinct:,}",
            f"{self.missing or '':,}" if self.missing else "",
            self.note,
        )

    def left_out(self, why: str) -> "Finding":
        """The same, not used."""
        return replace(self, out=True, note=why)


def finding(values: pa.ChunkedArray, place: Place, as_category: bool) -> Finding:
    """What a column holds."""
    kind = kind_of(values, place) if not as_category else CATEGORY
    plain = words_of(values) if as_category else values
    if pa.types.is_nested(plain.type):
        return Finding(place.column, OTHER, 0, values.null_count)
    missing = int(pc.sum(pc.is_null(plain, nan_is_null=True)).as_py() or 0)
    distinct = len(pc.unique(plain)) - (1 if missing else 0)
    return Finding(place.column, kind, distinct, missing)


def judged(found: Finding, values: pa.ChunkedArray, named: bool) -> Finding:
    """Whether a column says nothing of the label by its form; those named stay if they can."""
    n_rows = len(values)
    there = n_rows - found.missing
    if found.kind == OTHER:
        return found.left_out(f"holds {values.type}, which no model takes")
    if found.kind == NOTHING:
        return found.left_out("has no value at all")
    if found.distinct == 1 and not (found.missing and found.kind in (CATEGORY, TRUTH)):
        return found.left_out("constant: has one value only")
    suspicion = _identifier(found, values, there)
    if found.kind == CATEGORY and found.distinct > MOST_LEVELS:
        many = f"{found.distinct:,} categories (at most {MOST_LEVELS:,})"
        return found.left_out(suspicion or many)
    if suspicion and not named:
        return found.left_out(f"{suspicion}: --features names it to bring it in")
    return replace(found, note=_note(found, suspicion))


def _note(found: Finding, suspicion: str) -> str:
    parts = [suspicion] if suspicion else []
    if found.kind == DATE:
        parts.append("days since 1970-01-01")
    if found.missing:
        means = "its mean given the others" if found.kind in (NUMBER, DATE) else "a category"
        parts.append(f"missing: {means}")
    return "; ".join(parts)


def _identifier(found: Finding, values: pa.ChunkedArray, there: int) -> str:
    """Why a column looks like one that names rows."""
    if there < FEW_ROWS:
        return ""
    if found.kind == CATEGORY:
        if found.distinct == there:
            return "identifier: every row has a word of its own"
        if found.distinct > MANY_LEVELS * there:
            return "nearly as many words as rows"
        return ""
    if found.kind != NUMBER or found.distinct != there:
        return ""
    numbers = np.asarray(pc.cast(values, pa.float64(), safe=False).drop_null().to_numpy())
    numbers = numbers[~np.isnan(numbers)]
    if not np.array_equal(numbers, np.round(numbers)):
        return ""
    if np.ptp(numbers) + 1 <= COUNTER * there:
        return "identifier: a counter, no two rows alike"
    if IDENTIFIER.search(found.name):
        return "identifier: by its name, no two rows alike"
    return ""


def gives_away(
    found: Finding, column: pa.ChunkedArray | pa.Array, index: np.ndarray, named: bool
) -> Finding:
    """Whether one column alone tells the label."""
    share = explained(column, index)
    if share < GIVES_AWAY:
        return found
    told = f"gives the label away: alone it tells {share:.0%} of it"
    if named:
        return replace(found, note=f"{told}; used, since named")
    return found.left_out(f"{told}: --features names it to bring it in")


def refuse_label(found: Finding, n_rows: int, place: Place) -> None:
    """One sentence on a label that is no class: an amount, an identifier, one value only."""
    name = f"{place.file}: the label {place.column!r}"
    if found.kind in (NOTHING, OTHER):
        raise Mistake(f"{name} has no values.")
    there = n_rows - found.missing
    if found.distinct == 1:
        raise Mistake(f"{name} has one value only: a classifier needs at least two classes.")
    if found.kind == DATE:
        raise Mistake(f"{name} holds dates, which are no classes.")
    what = "an amount" if found.kind == NUMBER else "an identifier"
    if found.distinct > MOST_LEVELS or (found.distinct > 20 and found.distinct > there / 3):
        raise Mistake(
            f"{name} has {found.distinct:,} values in {there:,} rows, as {what} has: a classifier "
            "needs a few classes, so name another column or group its values."
        )


def refuse_amounts(values: pa.ChunkedArray, found: Finding, place: Place) -> None:
    """One sentence on a label of many numbers with a fraction."""
    numbers = pc.cast(values, pa.float64(), safe=False)
    fractions = ~np.equal(np.mod(numbers.drop_null().to_numpy(), 1), 0)
    if fractions.any() and found.distinct > 20:
        raise Mistake(
            f"{place.file}: the label {place.column!r} has {found.distinct:,} numbers with a "
            "fraction, as an amount has: a classifier needs a few classes, so name another column "
            "or group its values."
        )
