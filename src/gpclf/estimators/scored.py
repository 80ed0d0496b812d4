"""Classes and probabilities as columns; and a table on disk scored into a new file."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpclf.data.sources import ArrowTable, ParquetTable, Pieces, Table
from gpclf.data.sources.arrow import SUFFIXES as OF_ARROW
from gpclf.data.sources.features import Features, Scored
from gpclf.data.sources.writers import SUFFIXES, writer
from gpclf.data.sources.writing import check_place, replaced
from gpclf.estimators.measurement_error import as_the_kernel_sees
from gpclf.estimators.uncertainty import Uncertainty, log_probabilities_and_uncertainty
from gpclf.prediction import log_probabilities

PARTS = Uncertainty._fields


def names_of_scores(classes: np.ndarray) -> set[str]:
    """The columns that predictions have."""
    return {"class", *(f"p_{name}" for name in classes), *(f"uncertainty_{name}" for name in PARTS)}


def scores_of(
    classes: np.ndarray,
    logs: np.ndarray,
    uncertainty: Uncertainty | None,
    first: dict[str, Any],
    chosen: Sequence[int],
) -> pa.Table:
    """The most probable class, the probabilities of the chosen ones, what is not known."""
    columns = dict(first)
    columns["class"] = pa.array(classes).take(pa.array(logs.argmax(axis=1).astype(np.int32)))
    for c in chosen:
        columns[f"p_{classes[c]}"] = np.exp(logs[:, c])
    if uncertainty is not None:
        columns |= {f"uncertainty_{name}": getattr(uncertainty, name) for name in PARTS}
    return pa.table(columns)


def predict_to(clf: Any, table: Any, path: Any, keep: Sequence[str], uncertainty: bool) -> int:
    """Block by block into a file that is there when all is done; how many rows it has."""
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {place}.")
    check_place(place, "path")
    given = _table_of(table)
    pieces = given.open()
    if any(os.path.realpath(file.path) == os.path.realpath(place) for file in pieces.fingerprint):
        raise ValueError(f"{place} is a file of the table that is read: write to another one.")
    done = 0
    with replaced(place) as new, writer(new, place.suffix.lower()) as write:
        for block in _scores(clf, given, pieces, keep, uncertainty):
            write(block)
            done += block.num_rows
    return done


def _table_of(table: Any) -> Table:
    """A description as such, or of files by the end of their name."""
    if isinstance(table, Table):
        return table
    first = table if isinstance(table, str | os.PathLike) or not table else table[0]
    of_arrow = os.fspath(first).lower().endswith(OF_ARROW)
    return ArrowTable(table) if of_arrow else ParquetTable(table)


def _scores(
    clf: Any, given: Table, pieces: Pieces, keep: Sequence[str], uncertainty: bool
) -> Iterator[pa.Table]:
    names, keep = _features(clf, given, pieces), list(keep)
    twice = [name for name in keep if name in names_of_scores(clf.classes_)]
    absent = [name for name in keep if name not in pieces.schema.names]
    if twice or absent:
        why = "predictions have themselves" if twice else f"{pieces.name} has not"
        raise ValueError(f"keep names column {(twice or absent)[0]!r}, which {why}.")
    features = Features(names, clf._columns, given.roles.std)
    columns = list(dict.fromkeys([*names, *given.roles.std.values(), *keep]))
    empty = True
    for piece in pieces.read(columns):
        for block in features.blocks(piece):
            empty = False
            yield _scored(clf, block, keep, uncertainty)
    if empty:
        raise ValueError(f"{pieces.name} has no rows.")


def _features(clf: Any, given: Table, pieces: Pieces) -> list[str]:
    """The columns that were learned from; one sentence where they are not there."""
    known = getattr(clf, "feature_names_in_", None)
    names = given.features(pieces.schema, pieces.name) if known is None else list(map(str, known))
    absent = [name for name in names if name not in pieces.schema.names]
    if absent:
        raise ValueError(f"{pieces.name} has no column {absent[0]!r}, from which was learned.")
    if len(names) != clf.n_features_in_:
        raise ValueError(
            f"{pieces.name} has {len(names)} features, but {clf.n_features_in_} were learned from: "
            "name them by columns=."
        )
    return names


def _scored(clf: Any, block: Scored, keep: list[str], uncertainty: bool) -> pa.Table:
    """Some rows; without errors of their own they have the usual ones."""
    usual = clf.input_noise_std_
    std = block.std if block.std is not None or usual is None else usual[None]
    rows = clf._scaling.forward(block.X, clf.posterior_.row_dtype)
    seen = rows, as_the_kernel_sees(std, block.X, clf._scaling)
    if uncertainty:
        logs, parts = log_probabilities_and_uncertainty(clf.posterior_, *seen)
    else:
        logs, parts = log_probabilities(clf.posterior_, *seen), None
    first = {name: block.rows[name] for name in keep}
    return scores_of(clf.classes_, logs, parts, first, range(len(clf.classes_)))
