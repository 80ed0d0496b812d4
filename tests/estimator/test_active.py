"""Active learning: the loop keeps its books, and asks where it does not know."""

import numpy as np
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
        ([99], ["left"], "rows must be places in X, from 0 to 59"),
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
