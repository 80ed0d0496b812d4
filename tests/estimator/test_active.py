"""Active learning: the loop keeps its books, and asks where it does not know."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpclf import GPClassifier
from gpclf.active import Learner

SMALL = GPClassifier(kernel="rbf", n_inducing=10, max_epochs=5, random_state=0)


def pool(rows=60):
    """Rows of a line, of two classes that meet at 0."""
    x = np.random.default_rng(0).uniform(-1, 1, rows)
    return x[:, None], np.where(x > 0, "right", "left")


@pytest.mark.parametrize("by", ["entropy", "margin", "bald", "random"])
def test_the_loop_keeps_its_books(by):
    X, y = pool()
    learner = Learner(SMALL, X, by=by, random_state=0, growth=1.5)
    for k in (6, 1, 2, 3):
        rows = learner.query(k)
        assert len(np.unique(rows)) == k
        assert not np.isin(rows, learner.labelled_).any()
        learner.label(rows, y[rows])
    assert len(learner.labelled_) == 12
    np.testing.assert_array_equal(learner.labels_, y[learner.labelled_])
    assert learner.classifier_.n_samples_seen_ == 12


def test_it_asks_near_the_boundary():
    X, y = pool()
    learner = Learner(SMALL, X, by="entropy", random_state=0)
    ends = np.argsort(X[:, 0])[[0, 1, 2, -1, -2, -3]]
    learner.label(ends, y[ends])
    asked = learner.query(3)
    assert np.max(np.abs(X[asked, 0])) < np.median(np.abs(X))


def test_one_class_is_not_enough_and_a_new_one_begins_anew():
    X, y = pool()
    learner = Learner(SMALL, X, random_state=0, X_std=0.05)
    left = np.flatnonzero(y == "left")
    learner.label(left[:2], y[left[:2]])
    assert learner.classifier_ is None
    assert len(learner.query(2)) == 2  # random ones
    right = np.flatnonzero(y == "right")
    learner.label(right[0], y[right[0]])
    assert list(learner.classifier_.classes_) == ["left", "right"]


@pytest.mark.parametrize(
    ("rows", "labels", "sentence"),
    [
        ([1, 2], ["left"], "2 rows have 1 labels"),
        ([0], ["left"], "Row 0 has a label already"),
        ([5, 7, 7], ["left"] * 3, "Row 7 is named twice"),
        ([99], ["left"], "rows must be indices of X, from 0 to 59"),
        ([1.5], ["left"], "rows must be indices of X, from 0 to 59"),
    ],
)
def test_labels_that_make_no_sense_are_refused(rows, labels, sentence):
    X, _ = pool()
    learner = Learner(SMALL, X).label([0, 3], ["left", "left"])
    with pytest.raises(ValueError, match=sentence):
        learner.label(rows, labels)
    assert len(learner.labelled_) == 2


def test_queries_that_make_no_sense_are_refused():
    X, _ = pool()
    with pytest.raises(ValueError, match="by must be one of"):
        Learner(SMALL, X, by="luck")
    with pytest.raises(ValueError, match="growth must be at least 1"):
        Learner(SMALL, X, growth=0.5)
    with pytest.raises(ValueError, match="from 1 to the rows without a label, 60"):
        Learner(SMALL, X).query(61)


ORDERS = {
    "longer, then shorter": (["fsrq"] * 5, ["bll"] * 5),
    "shorter, then longer": (["bll"] * 5, ["fsrq"] * 5),
    "small numbers, then large": (np.arange(5, dtype=np.int8) % 2, 1000 + np.arange(5) % 2),
    "words as objects, then as words": (np.array(["no", "maybe"] * 2, object), ["perhaps"] * 3),
    "truth values": ([True] * 3, [False] * 3),
}


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_labels_come_back_as_they_were_given(order):
    X, _ = pool()
    first, second = ORDERS[order]
    learner = Learner(SMALL, X)
    learner.label(range(len(first)), first)
    learner.label(range(len(first), len(first) + len(second)), second)
    given = [*first, *second]
    assert learner.labels_.tolist() == given
    assert [type(value) for value in learner.labels_.tolist()] == [
        type(np.asarray(value).item()) for value in given
    ]
    assert learner.classifier_.classes_.tolist() == sorted(set(given))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([1, 0], "labels of type int, but those before are str"),
        (["left", 1], r"labels mix different types \(int, str\)"),
        ([True, 1], r"labels mix different types \(bool, int\)"),
        (["left", None], "missing label in row 1"),
        ([["left"], ["right"]], "labels must be a list with one label for each row"),
    ],
)
def test_labels_of_mixed_types_are_refused_and_nothing_is_changed(labels, sentence):
    X, y = pool()
    learner = Learner(SMALL, X).label(range(10), y[:10])
    before, probabilities = learner.classifier_, learner.classifier_.predict_proba(X)
    with pytest.raises(ValueError, match=sentence) as error:
        learner.label([10, 11], labels)
    assert "\n" not in str(error.value)
    assert learner.labelled_.tolist() == list(range(10))
    np.testing.assert_array_equal(learner.labels_, y[:10])
    assert learner.classifier_ is before
    np.testing.assert_array_equal(before.predict_proba(X), probabilities)


@pytest.mark.parametrize("growth", [1.0, 9.0])  # by a new fit, or by taking the new rows in
def test_a_row_that_cannot_be_learned_from_leaves_the_learner_as_it_was(growth):
    X, y = pool()
    X = X.copy()
    X[20] = np.inf
    learner = Learner(SMALL, X, growth=growth).label(range(10), y[:10])
    with pytest.raises(ValueError, match="infinity in row"):
        learner.label([20], y[[20]])
    assert learner.labelled_.tolist() == list(range(10))
    assert len(learner.labels_) == 10
    assert learner.classifier_.n_samples_seen_ == 10


def test_no_labels_change_nothing():
    X, y = pool()
    learner = Learner(SMALL, X, growth=9.0).label(range(10), y[:10])
    assert learner.label([], []).classifier_.n_samples_seen_ == 10


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_rows_and_their_errors_may_be_frames(kind):
    """And are what they are as arrays: queries, labels, fits and later pieces."""
    X, y = pool()
    std = 0.05 + 0.1 * np.abs(X)
    frame, errors = kind({"x": X[:, 0]}), kind({"x": std[:, 0]})
    learners = [
        Learner(SMALL, rows, X_std=their_errors, random_state=0, growth=1.5)
        for rows, their_errors in ((frame, errors), (X, std))
    ]
    for k in (6, 2, 4):
        asked, same = (learner.query(k) for learner in learners)
        np.testing.assert_array_equal(asked, same)
        for learner in learners:
            learner.label(asked, y[asked])
    framed = learners[0].classifier_.predict_proba(frame)
    plain = learners[1].classifier_.predict_proba(X)
    np.testing.assert_array_equal(framed, plain)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_errors_in_a_frame_keep_their_names(kind):
    X, y = pool()
    learner = Learner(SMALL, kind({"x": X[:, 0]}), X_std=kind({"z": np.abs(X[:, 0])}))
    with pytest.raises(ValueError, match="X_std has a column 'z', which X has not"):
        learner.label(range(10), y[:10])
    assert len(learner.labels_) == 0
