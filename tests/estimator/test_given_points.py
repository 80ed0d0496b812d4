"""Inducing points that the user gives: in the units of X, at first where they were put."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpclf import GPClassifier
from gpclf.inference.engines import Natural

FIXED = Natural(optimizer=None)
QUICK = {"max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 100.0] + [0.0, 1e3]
    return X, (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)


@pytest.mark.parametrize("share", ["both", "kernel", "points", "none"])
def test_they_are_where_they_were_put_if_nothing_is_learned(rows, share):
    X, y = rows
    Z = X[7::6] + 0.1
    clf = GPClassifier(n_inducing=Z, inference=FIXED, share=share, **QUICK).fit(X, y)
    found = clf.inducing_points_ if share in ("both", "points") else clf.inducing_points_[0]
    np.testing.assert_allclose(found, Z, rtol=1e-12)


def test_they_move_when_the_kernel_is_learned_and_lists_will_do(rows):
    X, y = rows
    Z = X[7::6]
    clf = GPClassifier(n_inducing=Z.tolist(), **QUICK).fit(X, y)
    assert clf.inducing_points_.shape == Z.shape
    assert np.all(np.any(np.abs(clf.inducing_points_ - Z) > 1e-3, axis=1))
    assert clf.score(X, y) > 0.85


def test_all_rows_as_points_are_the_full_process(rows):
    X, y = rows
    fits = (GPClassifier(n_inducing=Z, inference=FIXED, **QUICK).fit(X, y) for Z in (X, None))
    given, full = (clf.predict_proba(X) for clf in fits)
    np.testing.assert_allclose(given, full, atol=1e-5)


def test_a_frame_of_points_has_levels_and_may_have_its_columns_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": list("xyzw") * 15})
    clf = GPClassifier(n_inducing=frame[:9], inference=FIXED, **QUICK).fit(frame, np.arange(60) % 2)
    expected = np.column_stack([frame["a"][:9], [[v == w for w in "wxyz"] for v in frame["b"][:9]]])
    np.testing.assert_allclose(clf.inducing_points_, expected.astype(float), atol=1e-12)


def test_they_are_kept_by_clones_and_files_and_are_no_more_after_further_rows(rows, tmp_path):
    X, y = rows
    clf = clone(GPClassifier(n_inducing=X[::6], **QUICK)).fit(X, y)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    assert np.array_equal(other.n_inducing, X[::6])
    other.partial_fit(np.tile(X, (4, 1)), np.tile(y, 4))
    assert len(other.inducing_points_) == 10


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (np.zeros((4, 3)), "n_inducing has points of 3 features, but X has 2"),
        (np.full((4, 2), np.inf), "n_inducing contains infinity"),
        (np.zeros(4), "n_inducing must be a number, or points"),
        (np.zeros((0, 2)), "minimum of 1 is required"),
        (2.5, "The 'n_inducing' parameter of GPClassifier must be"),
    ],
)
def test_what_are_no_points_are_refused(rows, bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        GPClassifier(n_inducing=bad).fit(*rows)
