"""A model file as the command opens it: the classifier, its notes, and the columns it reads."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpclf.cli.errors import Mistake
from gpclf.cli.kinds import CATEGORY, NUMBER
from gpclf.cli.options import Reading
from gpclf.cli.sources import Source, source
from gpclf.cli.tables import FLAG, INTEGER, WORD, Layout, Rows, check_columns, whole
from gpclf.estimators import GPClassifier


class Opened(NamedTuple):
    """A fitted classifier and what is known of its training; `notes` is empty if nothing is."""

    path: str
    clf: Any  # a GPClassifier
    notes: dict[str, Any]

    @property
    def label(self) -> tuple[str, str] | None:
        """The name and kind of the label's column, where they are known."""
        label = self.notes.get("label")
        return None if label is None else (label["name"], label["kind"])

    def takes(self, X: Any) -> Any:
        """X as the classifier knows it: without names, where it learned from an array."""
        if hasattr(self.clf, "feature_names_in_"):
            return X
        return np.column_stack([column.to_numpy() for column in X.columns])


def open_model(path: str) -> Opened:
    """Read it, or one sentence about why that cannot be."""
    if Path(path).is_dir():
        raise Mistake(f"{path} is a folder, not a model file.")
    clf: Any = GPClassifier.load(path)
    return Opened(path, clf, clf.notes_ or {})


def layout_of(opened: Opened, data: Source, label: str | None = None) -> Layout:
    """The columns that a model reads from a table.

    Without notes those of `feature_names_in_`; without names all columns but the label's, in order.
    """
    chosen = None
    if label is not None:
        known = opened.label
        chosen = (label, _label_kind(opened.clf) if known is None else known[1])
    if "features" in opened.notes:
        features = tuple((each["name"], each["kind"]) for each in opened.notes["features"])
        return Layout(features, dict(opened.notes.get("errors") or {}), chosen)
    names = getattr(opened.clf, "feature_names_in_", None)
    if names is None:
        names = [name for name in data.columns if name != label]
        if len(names) != opened.clf.n_features_in_:
            raise Mistake(
                f"{opened.path} was trained on {opened.clf.n_features_in_} columns without names, "
                f"but {data.name} has {len(names)}."
            )
    return Layout(tuple(zip(map(str, names), _kinds(opened.clf), strict=True)), {}, chosen)


def _kinds(clf: Any) -> list[str]:
    """What each feature holds, by the levels that the training rows had."""
    return [
        NUMBER
        if levels is None or levels.dtype.kind in "iuf"
        else FLAG
        if levels.dtype.kind == "b"
        else CATEGORY
        for levels in clf.categories_
    ]


def _label_kind(clf: Any) -> str:
    return {"i": INTEGER, "u": INTEGER, "b": FLAG, "f": NUMBER}.get(clf.classes_.dtype.kind, WORD)


def label_for(opened: Opened, given: str | None) -> str:
    """The label's column: as named now, or as at the fit."""
    if given is not None:
        return given
    if opened.label is None:
        raise Mistake(f"{opened.path} does not say which column is the label: give --label.")
    return opened.label[0]


def labelled_layout(opened: Opened, data: Source, label: str | None) -> Layout:
    """The same with the label; the table must have all of its columns."""
    layout = layout_of(opened, data, label_for(opened, label))
    if data.parts[0].path is not None:
        check_columns(layout, data.columns, data.name)
    return layout


def index_of(opened: Opened, rows: Rows, file: str) -> np.ndarray:
    """Each row's place among the classes; one sentence for a label that training did not have."""
    classes, y = opened.clf.classes_, rows.y
    assert y is not None
    place = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    strange = classes[place] != y
    if strange.any():
        row = int(np.argmax(strange))
        known = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
        raise Mistake(
            f"{file}: the label {str(y[row])!r} in row {rows.first + row + 1:,} is not among the "
            f"classes of {opened.path} ({known})."
        )
    return place


def read_labelled(opened: Opened, data: str, reading: Reading, label: str | None = None) -> Rows:
    """A table with labels, whole: X, y and X_std as `clf` takes them."""
    table = source(data, reading)
    rows = whole(table, labelled_layout(opened, table, label))
    index_of(opened, rows, table.name)
    return rows
