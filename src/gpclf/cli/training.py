"""A training table: which columns are used for what, and what is said of each before a fit."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpclf.cli.errors import Mistake
from gpclf.cli.findings import (
    Finding,
    finding,
    gives_away,
    judged,
    refuse_amounts,
    refuse_label,
)
from gpclf.cli.kinds import CATEGORY, DATE, NUMBER, TRUTH, Place, kind_of, values_of, words_of
from gpclf.cli.options import names, pairs
from gpclf.cli.tables import (
    INTEGER,
    WORD,
    Layout,
    Rows,
    listed,
    meant,
    missing_labels,
    rows_of,
)
from gpclf.data.sources.kinds import compute as pc

MOST_WIDE = 400  # columns, above which they are not asked one by one whether they tell the label


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for, as options say it."""

    label: str
    features: str | None = None
    drop: str | None = None
    categories: str | None = None
    errors: str | None = None
    errors_suffix: str | None = None
    weight: str | None = None
    group: str | None = None
    time: str | None = None
    drop_unlabelled: bool = False


class Training(NamedTuple):
    """A table, ready to be learned from."""

    rows: Rows
    y: np.ndarray
    layout: Layout
    findings: list[Finding]
    group: np.ndarray | None
    time: np.ndarray | None
    unlabelled: int  # rows that were dropped

    def part(self, chosen: np.ndarray) -> "Training":
        """Some of its rows."""
        rows, take = self.rows, pa.array(chosen)
        some = Rows(
            rows.X.take(take),
            None,
            None if rows.X_std is None else rows.X_std[chosen],
            None if rows.weight is None else rows.weight[chosen],
            rows.block,
            0,
        )
        return self._replace(rows=some, y=self.y[chosen])


def prepared(table: pa.Table, roles: Roles, file: str) -> Training:
    """All that a fit needs, or one sentence about what is wrong with the table."""
    errors = _check_names(table, roles, file)
    table, unlabelled = _labelled(table, roles, file)
    label, y = _labels(table, roles, file)
    chosen = _candidates(table, roles, errors)
    as_words = set(names(roles.categories))
    named = roles.features is not None
    found = []
    for name in chosen:
        place = Place(file, name)
        one = judged(finding(table[name], place, name in as_words), table[name], named)
        found.append(one)
    _, index = np.unique(y, return_inverse=True)
    found = [_asked(each, table, file, index, named) for each in found]
    used = [each for each in found if not each.out]
    if not used:
        raise Mistake(f"{file} has no column left to learn from beside the label {roles.label!r}.")
    layout = Layout(
        tuple((each.name, each.kind) for each in used),
        {name: column for name, column in errors.items() if name in {u.name for u in used}},
        (roles.label, label),
        roles.weight,
    )
    _check_errors(layout, errors, found, file)
    rows = rows_of(table, layout, file)
    return Training(
        rows, y, layout, found, _groups(table, roles), _times(table, roles, file), unlabelled
    )


def _asked(found: Finding, table: pa.Table, file: str, index: np.ndarray, named: bool) -> Finding:
    """Whether it gives the label away, unless it is out already or the table is wide."""
    if found.out or table.num_columns > MOST_WIDE:
        return found
    values = values_of(table[found.name], found.kind, Place(file, found.name))
    return gives_away(found, values, index, named)


def _check_names(table: pa.Table, roles: Roles, file: str) -> dict[str, str]:
    """One sentence on the first option that names a column which is not there; else the errors."""
    present = table.column_names
    errors = pairs(roles.errors, "--errors")
    if roles.errors_suffix:
        for name in present:
            column = name + roles.errors_suffix
            if column in present:
                errors.setdefault(name, column)
        if not errors:
            raise Mistake(f"{file} has no columns that end in {roles.errors_suffix!r}.")
    asked = {"--label": [roles.label], "--drop": names(roles.drop)}
    asked |= {"--categories": names(roles.categories), "--errors": [*errors, *errors.values()]}
    asked |= {"--features": [n for n in names(roles.features) if not set("*?[") & set(n)]}
    for option in ("weight", "group", "time"):
        value = getattr(roles, option)
        asked[f"--{option}"] = [] if value is None else [value]
    for option, wanted in asked.items():
        absent = [name for name in wanted if name not in present]
        if absent:
            raise Mistake(
                f"{file} has no {listed(absent)} ({option}){meant(absent, None, present)}"
            )
    if roles.group is not None and roles.time is not None:
        raise Mistake("--group and --time are two ways to split rows: give one of them.")
    return errors


def _labelled(table: pa.Table, roles: Roles, file: str) -> tuple[pa.Table, int]:
    """The rows that have a label; one sentence where some have none and may not be dropped."""
    missing = missing_labels(table[roles.label])
    count = int(missing.sum())
    if count == 0 or count == len(missing):
        return table, 0
    if not roles.drop_unlabelled:
        row = int(np.argmax(missing))
        more = f" ({count:,} in all)" if count > 1 else ""
        raise Place(file, roles.label).sentence(
            "no label", row, f"{more}: label it, or drop such rows with --drop-unlabelled."
        )
    return table.filter(pa.array(~missing)), count


def _labels(table: pa.Table, roles: Roles, file: str) -> tuple[str, np.ndarray]:
    """What kind of labels they are, and they themselves."""
    place, column = Place(file, roles.label), table[roles.label]
    try:
        kind = kind_of(column, place)
    except Mistake:
        kind = CATEGORY  # words among numbers are labels like others
    refuse_label(finding(column, place, kind == CATEGORY), len(column), place)
    if kind == NUMBER:
        numbers = values_of(column, NUMBER, place)
        refuse_amounts(numbers, finding(numbers, place, False), place)
        plain = np.asarray(numbers.to_numpy())
        if np.array_equal(plain, np.round(plain)):
            return INTEGER, plain.astype(np.int64)
    if kind == TRUTH:
        return TRUTH, np.asarray(values_of(column, TRUTH, place).to_pylist())
    return WORD, np.asarray(words_of(column).to_pylist())


def _candidates(table: pa.Table, roles: Roles, errors: dict[str, str]) -> list[str]:
    """The columns that may be features, in the order of the table."""
    present = table.column_names
    if roles.features is not None:
        wanted = names(roles.features)
        chosen = [n for n in present if any(n == w or fnmatchcase(n, w) for w in wanted)]
        plain = [w for w in wanted if w in present]
        taken = {roles.label, *(set(errors.values()) | {roles.weight, roles.group, roles.time})}
        taken -= set(plain) - {roles.label}
    else:
        chosen = present
        taken = {roles.label, *errors.values(), roles.weight, roles.group, roles.time}
    out = {name for name in taken if name is not None} | set(names(roles.drop))
    if roles.label in names(roles.features):
        raise Mistake(f"--features names the label {roles.label!r}.")
    return [name for name in chosen if name not in out]


def _check_errors(layout: Layout, errors: dict[str, str], found: list[Finding], file: str) -> None:
    """Errors are those of numbers."""
    kinds = dict(layout.features)
    for name in errors:
        if name in kinds and kinds[name] not in (NUMBER, DATE):
            raise Mistake(f"{file}: {name!r} holds words, which have no error ({errors[name]!r}).")
        if name not in kinds and name not in {each.name for each in found}:
            raise Mistake(f"--errors names {name!r}, which is not among the features.")


def _groups(table: pa.Table, roles: Roles) -> np.ndarray | None:
    if roles.group is None:
        return None
    return np.asarray(pc.fill_null(words_of(table[roles.group]), "").to_pylist())


def _times(table: pa.Table, roles: Roles, file: str) -> np.ndarray | None:
    """When each row was, as a number; one sentence where nobody knows."""
    if roles.time is None:
        return None
    place = Place(file, roles.time)
    kind = kind_of(table[roles.time], place)
    if kind not in (NUMBER, DATE):
        raise Mistake(f"{file}: column {roles.time!r} (--time) holds neither dates nor numbers.")
    times = np.asarray(values_of(table[roles.time], kind, place).to_numpy(), np.float64)
    if np.isnan(times).any():
        raise place.sentence("no value", int(np.argmax(np.isnan(times))), ", and --time needs one.")
    return times
