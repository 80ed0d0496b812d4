"""The loop of active learning: query, label, update."""

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from gpclf.data import refuse_missing
from gpclf.data.columns import as_frame
from gpclf.estimators import GPClassifier
from gpclf.estimators.uncertainty import CRITERIA

BY = (*CRITERIA, "random")


class Learner:
    """A classifier that asks for the labels of the rows it wants.

    >>> learner = Learner(GPClassifier(), X)          # doctest: +SKIP
    >>> rows = learner.query(10)                      # doctest: +SKIP
    >>> learner.label(rows, [ask(row) for row in rows])  # doctest: +SKIP

    Parameters
    ----------
    classifier : GPClassifier
        What to learn with; it is copied.
    X : array or frame (N, D)
        The rows that can be asked for.
    by : "entropy", "margin", "bald" or "random"
        Which rows to ask for: see `GPClassifier.most_uncertain`.
    X_std : None, number, array or frame
        The standard deviations of the errors of X, as for `GPClassifier.fit`.
    growth : float
        The kernel is learned anew when the labels are so many times as many as the last time; in
        between, new rows are taken in under the kernel as it is, in a fraction of the time.
    random_state : None, int or RandomState
        Seeds random queries: the first ones, or all with by="random".

    Attributes
    ----------
    classifier_ : None or GPClassifier
        The classifier of all labels so far; None before two classes are known.
    labelled_ : array (n,)
        Indices of the rows that have a label, in the order in which they were given.
    labels_ : array (n,)
        Their labels.
    """

    def __init__(
        self,
        classifier: GPClassifier,
        X: Any,
        *,
        by: str = "entropy",
        X_std: Any = None,
        growth: float = 1.2,
        random_state: Any = None,
    ):
        if by not in BY:
            raise ValueError(f"by must be one of {', '.join(map(repr, BY))}, got {by!r}.")
        if not growth >= 1:
            raise ValueError(f"growth must be at least 1, got {growth!r}.")
        self.classifier = classifier
        self.X = X
        self.by = by
        self.X_std = X_std
        self.growth = growth
        self.classifier_: GPClassifier | None = None
        self.labelled_ = np.empty(0, int)
        self.labels_ = np.empty(0, object)
        self._random = check_random_state(random_state)
        self._learned_from = 0

    @property
    def n_rows(self) -> int:
        """How many rows there are to ask for, labelled or not."""
        return len(self.X)

    def query(self, k: int = 1) -> np.ndarray:
        """Indices in X of the k rows whose labels are wanted most; at first random ones."""
        free = np.setdiff1d(np.arange(self.n_rows), self.labelled_)
        if not 1 <= k <= len(free):
            raise ValueError(
                f"k must be a whole number from 1 to the rows without a label, {len(free)}, "
                f"got {k!r}."
            )
        if self.classifier_ is None or self.by == "random":
            return self._random.choice(free, k, replace=False)
        rows, errors = _rows(self.X, free), self._errors(free)
        return free[self.classifier_.most_uncertain(rows, k, by=self.by, X_std=errors)]

    def label(self, rows: Any, labels: Any) -> "Learner":
        """Take in the labels of rows, by their indices in X, and learn from them.

        All labels are of one type. What cannot be learned from raises, and changes nothing.
        """
        rows = np.atleast_1d(np.asarray(rows))
        values, kind = _values(labels)
        if len(rows) != len(values):
            raise ValueError(f"{len(rows)} rows have {len(values)} labels: give one for each.")
        if not len(rows):
            return self
        self._check(rows)
        before = self.labels_.tolist()
        known = {type(value).__name__ for value in before} or {kind}
        if kind not in known:
            raise ValueError(
                f"These are labels of type {kind}, but those before are {', '.join(known)}: "
                "give all labels in one type."
            )
        self._update(np.concatenate([self.labelled_, rows]), np.array(before + values), len(rows))
        return self

    def _check(self, rows: np.ndarray) -> None:
        """Refuse what are no rows, and rows whose labels are known."""
        if rows.dtype.kind not in "iu" or not np.all((rows >= 0) & (rows < self.n_rows)):
            raise ValueError(f"rows must be indices of X, from 0 to {self.n_rows - 1}.")
        known = np.isin(rows, self.labelled_)
        if known.any():
            raise ValueError(f"Row {rows[known][0]} has a label already.")
        found, counts = np.unique(rows, return_counts=True)
        if counts.max() > 1:
            raise ValueError(f"Row {found[counts > 1][0]} is named twice: give it one label.")

    def _update(self, rows: np.ndarray, labels: np.ndarray, new: int) -> None:
        """Learn from all labels, of which the last are new; then keep the books."""
        classes = np.unique(labels)
        last, learned_from = self.classifier_, self._learned_from
        if len(classes) < 2:
            learned = None
        elif (
            last is not None
            and np.array_equal(last.classes_, classes)
            and len(labels) < self.growth * learned_from
        ):
            learned = copy(last)  # an error half-way leaves the last as it is
            added = rows[-new:]
            learned.partial_fit(_rows(self.X, added), labels[-new:], X_std=self._errors(added))
        else:
            fresh: Any = clone(self.classifier)
            learned = fresh.fit(_rows(self.X, rows), labels, X_std=self._errors(rows))
            learned_from = len(labels)
        self.labelled_, self.labels_ = rows, labels
        self.classifier_, self._learned_from = learned, learned_from

    def _errors(self, rows: np.ndarray) -> Any:
        if self.X_std is None or np.ndim(self.X_std) < 2:
            return self.X_std
        return _rows(self.X_std, rows)


def _values(labels: Any) -> tuple[list, str]:
    """Labels as a list of Python's own values, and the name of their one type."""
    refuse_missing(labels)
    if not isinstance(labels, list | tuple):  # of these an array would make one type of several
        labels = np.atleast_1d(np.asarray(labels)).tolist()
    values = [value.item() if isinstance(value, np.generic) else value for value in labels]
    if any(np.ndim(value) for value in values):
        raise ValueError("labels must be a list with one label for each row.")
    kinds = sorted({type(value).__name__ for value in values})
    if len(kinds) > 1:
        raise ValueError(f"labels mix different types ({', '.join(kinds)}): choose one.")
    return values, "".join(kinds)


def _rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or a frame."""
    frame = as_frame(X)
    return np.asarray(X)[rows] if frame is None else frame[rows].to_native()
