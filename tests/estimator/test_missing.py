"""Missing values: what stands for them, and that they mean the same however they are written."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpclf import GPClassifier
from gpclf.data import Missing, Scaling, missing
from gpclf.data.tails import bent

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}
NAMES = ["a", "b", "c"]


def _holes(rows=80, seed=0, share=0.2):
    """Three columns, the last nearly known from the others, and labels of the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 10.0, 1.0]
    X[:, 2] = X[:, 0] + 0.1 * X[:, 1] + 0.1 * rng.normal(size=rows)
    y = X[:, 0] > 0
    return np.where(rng.random(X.shape) < share, np.nan, X), y, X


def _gaussian(rng, width):
    A = rng.normal(size=(width, width))
    return 0.3 * rng.normal(size=width), A @ A.T / width + 0.1 * np.eye(width)


@given(seed=st.integers(0, 2**31), width=st.integers(1, 6), share=st.floats(0, 1))
def test_a_gap_gets_the_conditional_mean_of_a_gaussian(seed, width, share):
    rng = np.random.default_rng(seed)
    mean, covariance = _gaussian(rng, width)
    Z = rng.uniform(-3, 3, (9, width))
    gaps = rng.random(Z.shape) < share
    gaps[0] = True
    filled = Missing(mean, np.linalg.inv(covariance)).filled(np.where(gaps, np.nan, Z))
    for row, gap, found in zip(Z, gaps, filled, strict=True):
        weights = np.linalg.solve(covariance[np.ix_(~gap, ~gap)], (row - mean)[~gap])
        wanted = mean[gap] + covariance[np.ix_(gap, ~gap)] @ weights
        np.testing.assert_allclose(found[gap], wanted, atol=1e-9)
        assert np.array_equal(found[~gap], row[~gap])
    np.testing.assert_allclose(filled[0], mean)


def test_the_gaussian_is_found_from_rows_with_gaps():
    rng = np.random.default_rng(0)
    mean, covariance = _gaussian(rng, 4)
    Z = rng.multivariate_normal(mean, covariance, 4000)
    Z[rng.random(Z.shape) < 0.2] = np.nan
    Z[Z[:, 0] > mean[0] + 0.3, 3] = np.nan  # not at random, but by what is seen
    found = Missing.of(Z, np.ones(len(Z)))
    np.testing.assert_allclose(found.mean, mean, atol=0.1)
    np.testing.assert_allclose(np.linalg.inv(found.precision), covariance, atol=0.15)


def test_weights_of_two_are_rows_twice():
    X, _, _ = _holes()
    twice = Scaling.of(np.repeat(X, 2, axis=0), np.ones(2 * len(X)))
    weighed = Scaling.of(X, np.full(len(X), 2.0))
    np.testing.assert_allclose(twice.forward(X), weighed.forward(X), rtol=1e-9)


@pytest.mark.parametrize("kind", ["robust", "standard"])
def test_rows_without_gaps_are_handed_on_as_they_are(kind):
    X, _, full = _holes()
    scaling = Scaling.of(X, np.ones(len(X)), kind=kind)
    known, B = (bent(rows, scaling.middle, scaling.unit) for rows in (X, full))
    Z = (B - scaling.centre) / scaling.spread
    assert scaling.missing.filled(Z) is Z
    assert np.array_equal(scaling.forward(full), Z)
    there = ~np.isnan(X)
    assert np.array_equal(scaling.forward(X)[there], Z[there])
    np.testing.assert_allclose(scaling.centre, np.nanmean(known, axis=0), atol=1e-12)
    np.testing.assert_allclose(scaling.spread, np.nanstd(known, axis=0))


def test_what_is_filled_in_is_closer_than_the_mean():
    X, _, full = _holes(300)
    scaling = Scaling.of(X, np.ones(len(X)))
    far = (scaling.forward(X) - scaling.forward(full))[np.isnan(X)]
    assert np.mean(far**2) < 0.6


def test_a_number_far_out_throws_no_other_far_out():
    X, _, _ = _holes(300)
    X[7] = [1e9, np.nan, np.nan]
    assert np.all(np.abs(Scaling.of(X, np.ones(300)).forward(X)[7, 1:]) < 10)


def test_too_many_columns_get_their_means(monkeypatch):
    X, _, _ = _holes()
    monkeypatch.setattr(missing, "MOST_COLUMNS", 2)
    Z = Scaling.of(X, np.ones(len(X))).forward(X)
    assert np.all(Z[np.isnan(X)] == 0)


def test_little_work_is_enough_for_a_number_in_every_gap(monkeypatch):
    X, _, _ = _holes()
    monkeypatch.setattr(missing, "WORK", 1.0)
    monkeypatch.setattr(missing, "AT_ONCE", 1)
    assert np.all(np.isfinite(Scaling.of(X, np.ones(len(X))).forward(X)))


def _forms(X):
    """The same gaps as people write them."""
    frame = pd.DataFrame(X, columns=NAMES)
    lists = {name: [None if v != v else v for v in X[:, i]] for i, name in enumerate(NAMES)}
    return {
        "None": np.where(np.isnan(X), None, X.astype(object)),
        "NA": np.where(np.isnan(X), pd.NA, X.astype(object)),
        "masked": np.ma.masked_invalid(X),
        "frame": frame,
        "nullable": frame.astype("Float64"),
        "objects": frame.astype(object).where(frame.notna(), None),
        "polars null": pl.DataFrame(lists),
        "polars NaN": pl.DataFrame(X, schema=NAMES, orient="row"),
    }


@pytest.mark.parametrize("form", list(_forms(np.full((1, 3), np.nan))))
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_gap_is_the_same_however_it_is_written(form):
    X, y, _ = _holes()
    clf = GPClassifier(**QUICK).fit(X, y)
    written = _forms(X)[form]
    assert np.array_equal(clf._rows(written), clf._rows(X))
    other = GPClassifier(**QUICK).fit(written, y)
    np.testing.assert_allclose(other.predict_proba(written), clf.predict_proba(X), atol=1e-9)


def test_predictions_depend_neither_on_the_other_rows_nor_on_their_order():
    X, y, _ = _holes()
    clf = GPClassifier(**QUICK).fit(X, y)
    p = clf.predict_proba(X)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(clf.predict_proba(X[order]), p[order], rtol=1e-9)
    one_by_one = np.concatenate([clf.predict_proba(X[[row]]) for row in range(20)])
    np.testing.assert_allclose(one_by_one, p[:20], rtol=1e-9)


def test_gaps_may_come_at_prediction_only_and_in_further_pieces():
    X, y, full = _holes(200)
    clf = GPClassifier(**QUICK).partial_fit(full, y, classes=[False, True])
    known = np.isnan(X[:, 0]) & ~np.isnan(X[:, 1:]).any(axis=1)
    assert np.mean(clf.predict(X[known]) == y[known]) > 0.9
    clf.partial_fit(X, y)
    assert clf.n_samples_seen_ == 400
    assert np.all(np.isfinite(clf.predict_proba(X)))


def test_rows_and_columns_of_nothing_but_gaps():
    X, y, _ = _holes()
    X[3] = np.nan
    X = np.c_[X, np.full(len(X), np.nan)]
    clf = GPClassifier(**QUICK).fit(X, y)
    assert np.all(np.isfinite(clf.predict_proba(X)))
    assert clf.relevance_[3] == 0
    assert np.all(np.isfinite(clf.inducing_points_))
    np.testing.assert_allclose(clf._rows(X)[3], clf._scaling.missing.mean, atol=1e-12)
    assert np.all(clf._rows(np.nan_to_num(X, nan=9.0))[:, 3] == 0)


def test_infinity_is_refused_beside_gaps_and_scikit_learn_hears_that_these_are_taken():
    X, y, _ = _holes()
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity in row 5, column 1 \(1 such entries"):
        GPClassifier().fit(X, y)
    assert GPClassifier().__sklearn_tags__().input_tags.allow_nan


def _words(gap, rows=90):
    """A colour that decides the label, also by being missing."""
    colour = np.random.default_rng(0).choice(["blue", "green", "none"], rows)
    words = [gap if word == "none" else word for word in colour.tolist()]
    return words, np.where(colour == "none", "no", "yes")


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_a_missing_category_is_one_more(gap, tmp_path):
    words, y = _words(gap)
    number = np.random.default_rng(1).normal(size=len(y))
    number[4] = np.nan
    frame = pd.DataFrame({"colour": pd.Series(words, dtype=object), "size": number})
    clf = GPClassifier(**QUICK, categorical_features=["colour"]).fit(frame, y)
    assert clf.inducing_points_.shape[1] == 4
    assert clf.score(frame, y) == 1
    p = clf.predict_proba(frame)
    named = frame.assign(colour=[w if isinstance(w, str) else "zzz" for w in words])
    other = GPClassifier(**QUICK, categorical_features=["colour"]).fit(named, y)
    np.testing.assert_allclose(other.predict_proba(named), p, atol=1e-9)
    clf.save(tmp_path / "model.gpclf")
    assert np.array_equal(GPClassifier.load(tmp_path / "model.gpclf").predict_proba(frame), p)


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_a_null_of_polars_is_a_category_too(kind):
    words, y = _words(None)
    frame = pl.DataFrame({"colour": words}).with_columns(pl.col("colour").cast(kind))
    assert GPClassifier(**QUICK).fit(frame, y).score(frame, y) == 1
    yes = pl.DataFrame({"large": [None, True, False] * 4})
    clf = GPClassifier(**QUICK).fit(yes, ["?", "yes", "no"] * 4)
    assert clf.predict(yes[:3]).tolist() == ["?", "yes", "no"]


def test_a_category_that_is_missing_at_prediction_only_is_as_one_never_seen():
    words, y = _words("none")
    X = np.array(words, object)[:, None]
    clf = GPClassifier(**QUICK, categorical_features=[0]).fit(X, y)
    gap = np.array([[None], ["violet"], [np.nan]], object)
    assert np.all(clf._rows(gap) == 0)
    codes = np.unique(words, return_inverse=True)[1].astype(float)[:, None]
    clf = GPClassifier(**QUICK, categorical_features=[0]).fit(codes, y)
    assert np.all(clf._rows([[np.nan], [9.0]]) == 0)


def test_a_column_of_categories_may_be_missing_altogether():
    X = np.array([[None, value] for value in range(12)], object)
    clf = GPClassifier(**QUICK, categorical_features=[0]).fit(X, np.arange(12) > 5)
    assert clf.relevance_.tolist() == [0, 1]
    X[0, 0] = "a"
    assert np.all(clf._rows(X)[:, 0] == 0)


def test_the_error_of_a_missing_number_counts_as_none():
    X, y, _ = _holes()
    std = np.full(X.shape, 0.1)
    p = []
    for there in (0.0, np.nan, 5.0):
        errors = np.where(np.isnan(X), there, std)
        clf = GPClassifier(**QUICK, input_noise="first-order").fit(X, y, X_std=errors)
        p.append(clf.predict_proba(X, X_std=errors))
    assert np.array_equal(p[0], p[1])
    assert np.array_equal(p[0], p[2])
    with pytest.raises(ValueError, match="X_std must be finite"):
        GPClassifier().fit(np.nan_to_num(X), y, X_std=np.where(np.isnan(X), np.nan, std))


def test_inducing_points_may_have_gaps():
    X, y, _ = _holes()
    clf = GPClassifier(n_inducing=X[:12], max_epochs=8).fit(X, y)
    assert np.all(np.isfinite(clf.inducing_points_))
