"""A classifier for reports without a fit: logistic in its features, and quick on any number."""

import numpy as np

from gpclf.data import Columns, Summary
from gpclf.report import Subject, Table

RNG = 0


def columns_of(levels):
    """Numbers where None, else levels."""
    return Columns(
        tuple(None if each is None else np.array(each) for each in levels), (False,) * len(levels)
    )


def subject_and_table(
    n_rows=400, names=("first", "second", "idle"), classes=("a", "b", "c"), **more
):
    """Labels drawn from what it predicts, so that it is calibrated; the last feature says nothing.

    `levels` of features, `label`, and `trained`: how many rows of this kind it has learned from.
    """
    rng = np.random.default_rng(RNG)
    levels = more.get("levels", (None,) * len(names))
    columns = columns_of(levels)
    counts = columns.counts
    slopes = 2 * rng.standard_normal((len(names), len(classes)))
    slopes[-1] = 0

    def rows(count):
        X = rng.standard_normal((count, len(names)))
        for column in np.flatnonzero(counts):
            X[:, column] = rng.integers(0, counts[column], count)
        return X

    def log_proba(X, std):
        scores = np.where(np.isnan(X), 0.0, X) @ slopes
        scores = scores - scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def drawn(X):
        edges = np.exp(log_proba(X, None)).cumsum(axis=1)
        return (rng.random((len(X), 1)) > edges).sum(axis=1).clip(max=len(classes) - 1)

    before, now = rows(more.get("trained", 500)), rows(n_rows)
    y = drawn(before)
    subject = Subject(
        names=tuple(names),
        columns=columns,
        classes=np.array(classes),
        label=more.get("label"),
        relevance=np.abs(slopes).sum(axis=1) / np.abs(slopes).sum(),
        summary=Summary.of(before, y, np.ones(len(y)), counts, len(classes)),
        history={
            "stage": np.array(["kernel"] * 5 + ["posterior"]),
            "seconds": np.arange(6.0),
            "elbo": np.array([-2.0, -1.5, -1.2, -1.1, -1.05, -1.0]),
        },
        card={"Versions": {"gpclf": "0.1.0"}},
        log_proba=log_proba,
        spread=lambda X, std: (np.full((len(X), len(classes)), 0.05), np.full(len(X), 0.02)),
    )
    return subject, Table(now, drawn(now), None)
