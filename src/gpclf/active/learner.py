"""The loop of active learning: query, label, update."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from gpclf.estimators import GPClassifier
from gpclf.estimators.knowing import CRITERIA

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
    X : the rows that can be asked for (N, D), or a frame.
    by : "entropy", "margin", "bald" or "random"
        Which rows to ask for: see `GPClassifier.most_uncertain`.
    X_std : the standard deviations of the errors of X, as for `GPClassifier.fit`.
    growth : float
        The kernel is learned anew when the labels are so many times as many as the last time; in
        between, new rows are taken in under the kernel as it is, in a fraction of the time.
    random_state : None, int or RandomState
        Seeds random queries: the first ones, or all with by="random".

    Attributes
    ----------
    classifier_ : the classifier of all labels so far; None before two classes are known.
    labelled_, labels_ : the rows that were asked for, in that order, and their labels.
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
        """The places in X of the k rows whose labels are wanted most; at first random ones."""
        free = np.setdiff1d(np.arange(self.n_rows), self.labelled_)
        if not 1 <= k <= len(free):
            raise ValueError(
                f"k must be a whole number from 1 to the rows without a label, {len(free)}, "
                f"got {k!r}."
            )
        if self.classifier_ is None or self.by == "random":
            return self._random.choice(free, k, replace=False)
        return free[self.classifier_.most_uncertain(_rows(self.X, free), k, by=self.by)]

    def label(self, rows: Any, labels: Any) -> "Learner":
        """Take in the labels of rows, by their places in X, and learn from them."""
        rows, labels = np.atleast_1d(np.asarray(rows)), np.atleast_1d(np.asarray(labels))
        if len(rows) != len(labels):
            raise ValueError(f"{len(rows)} rows have {len(labels)} labels: give one for each.")
        known = np.isin(rows, self.labelled_)
        if known.any() or len(np.unique(rows)) < len(rows):
            raise ValueError(
                f"Row {rows[known][0] if known.any() else rows[0]} has a label already."
            )
        if not np.all((rows >= 0) & (rows < self.n_rows)):
            raise ValueError(f"rows must be places in X, from 0 to {self.n_rows - 1}.")
        self.labelled_ = np.concatenate([self.labelled_, rows])
        joined = [*self.labels_, *labels]
        self.labels_ = np.array(joined, dtype=np.asarray(labels).dtype)
        self._update(len(rows))
        return self

    def _update(self, new: int) -> None:
        classes = np.unique(self.labels_)
        if len(classes) < 2:
            return
        before = self.classifier_
        same = before is not None and np.array_equal(before.classes_, classes)
        if before is not None and same and len(self.labels_) < self.growth * self._learned_from:
            rows = self.labelled_[-new:]
            before.partial_fit(_rows(self.X, rows), self.labels_[-new:], X_std=self._errors(rows))
            return
        fresh: Any = clone(self.classifier)
        fresh.fit(_rows(self.X, self.labelled_), self.labels_, X_std=self._errors(self.labelled_))
        self.classifier_, self._learned_from = fresh, len(self.labels_)

    def _errors(self, rows: np.ndarray) -> Any:
        if self.X_std is None or np.ndim(self.X_std) < 2:
            return self.X_std
        return _rows(self.X_std, rows)


def _rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or a frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) or hasattr(X, "columns") else np.asarray(X)[rows]
