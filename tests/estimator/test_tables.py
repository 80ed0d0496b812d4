"""Tables as users hold them: what is taken is taken rightly, the rest gets one sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpclf import GPClassifier
from gpclf.data import Columns, Scaling
from gpclf.estimators.measurement_error import errors_of, mask_of
from gpclf.estimators.tables import labelled_table

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}
NAMES = ["a", "b", "c"]


def _refused(sentence, call, kind=ValueError):
    with pytest.raises(kind, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_errors_in_a_frame_belong_to_the_columns_of_their_names(frame):
    X = np.zeros((4, 3))
    std = {"c": [3.0] * 4, "a": [1.0] * 4, "b": [2.0] * 4}
    found = errors_of(frame(std), X, Columns.numbers(3), NAMES)
    assert np.array_equal(found, [[1.0, 2.0, 3.0]] * 4)
    by_position = errors_of(frame(std), X, Columns.numbers(3), None)
    assert np.array_equal(by_position, [[3.0, 1.0, 2.0]] * 4)


def test_one_error_a_feature_belongs_to_the_feature_of_its_name():
    series = pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})
    found = errors_of(series, np.zeros((4, 3)), Columns.numbers(3), NAMES)
    assert np.array_equal(found, [[1.0, 2.0, 3.0]])
    nameless = pd.Series([3.0, 1.0, 2.0])
    found = errors_of(nameless, np.zeros((4, 3)), Columns.numbers(3), NAMES)
    assert np.array_equal(found, [[3.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("std", "sentence"),
    [
        (pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "other"]), "column 'other', which X has"),
        (pl.DataFrame({"a": [1.0] * 4, "b": [1.0] * 4}), "X_std has no column 'c'"),
        (pd.DataFrame(np.ones((4, 3))), "column '0', which X has not"),
        (pd.DataFrame(np.ones((4, 3)), columns=["a", "a", "b"]), "X_std has two .* named 'a'"),
        (pd.Series({"a": 1.0, "b": 1.0, "d": 1.0}), "column 'd', which X has not"),
        (pd.DataFrame({"a": ["x"] * 4, "b": 1.0, "c": 1.0}), "X_std must hold numbers"),
        (pl.DataFrame({"a": [1.0, None, 1, 1], "b": [1.0] * 4, "c": [1.0] * 4}), "column 'a' in"),
    ],
)
def test_errors_that_do_not_fit_the_columns_get_one_sentence(std, sentence):
    _refused(sentence, lambda: errors_of(std, np.zeros((4, 3)), Columns.numbers(3), NAMES))


def test_the_order_of_the_columns_of_errors_does_not_matter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = X["a"] + 0.3 * rng.normal(size=60) > 0
    std = pd.DataFrame({"a": np.full(60, 0.05), "b": np.full(60, 0.9)})
    straight = GPClassifier(**QUICK).fit(X, y, X_std=std)
    swapped = GPClassifier(**QUICK).fit(X, y, X_std=std[["b", "a"]])
    assert np.array_equal(swapped.input_noise_std_, [0.05, 0.9])
    p = straight.predict_proba(X, X_std=std)
    assert np.array_equal(swapped.predict_proba(X, X_std=std[["b", "a"]]), p)


def test_features_with_errors_are_those_that_are_named():
    for wanted in ([0, 2], ["c", "a"], [True, False, True], np.array([2, 0])):
        assert np.array_equal(mask_of(wanted, 3, NAMES), [False, True, False])
    assert not mask_of(None, 3, NAMES).any()
    for wanted, sentence in (
        ([True, False], "noisy_features is a mask of 2 columns, but X has 3"),
        ("a", "noisy_features must be a list"),
        ([1.5], "noisy_features names 1.5"),
        ([-1], "noisy_features names column -1, but X has columns 0 to 2"),
        (["d"], "noisy_features names 'd', which is no column of X"),
    ):
        _refused(sentence, lambda wanted=wanted: mask_of(wanted, 3, NAMES))


@pytest.mark.parametrize("parameters", [{}, {"share": "none"}, {"kernel": "linear + rbf"}])
def test_a_column_without_spread_has_no_relevance_and_the_others_share_it(parameters):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 2] = 7
    clf = GPClassifier(**QUICK, **parameters).fit(X, X[:, 0] > 0)
    assert clf.relevance_[2] == 0
    np.testing.assert_allclose(clf.relevance_.sum(), 1)


def test_where_no_column_has_spread_none_has_relevance():
    scaling = Scaling.of(np.array([[1.0, 0.0]] * 4), np.ones(4), np.array([0, 3]))
    assert np.array_equal(scaling.by_feature(np.ones(4)), [0.0, 0.0])


def test_a_masked_entry_is_a_missing_value():
    X, y = np.random.default_rng(0).normal(size=(6, 2)), np.arange(6) % 2
    for values in (X, (9 * X).astype(np.int16), (9 * X).astype(object), (9 * X).astype("f4")):
        masked = np.ma.masked_array(values, mask=np.zeros(X.shape, bool))
        masked[4, 1] = np.ma.masked
        plain = values.astype(np.float64)
        plain[4, 1] = np.nan
        assert np.array_equal(labelled_table(GPClassifier(), masked, y, None)[0], plain, True)
    words = np.ma.masked_array(np.array([["a"], ["b"]] * 3, object), mask=[[True]] + [[False]] * 5)
    codes, _, columns = labelled_table(GPClassifier(), words, y, [0])
    assert columns.counts.tolist() == [3]
    assert codes[:, 0].tolist() == [2, 1, 0, 1, 0, 1]
    labels = np.ma.masked_array(y, mask=y * [0, 1, 0, 0, 0, 1])
    _refused("missing label in row 1 \\(2 in all", lambda: GPClassifier().fit(X, labels))
    weight = np.ma.masked_array(np.ones(6), mask=y)
    _refused("sample_weight has a masked entry in row 1", lambda: GPClassifier().fit(X, y, weight))
    std = np.ma.masked_array(np.ones((6, 2)), mask=np.eye(6, 2))
    _refused("X_std must be finite.*row 0", lambda: GPClassifier().fit(X, y, X_std=std))


def test_a_mask_that_hides_nothing_changes_nothing():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    plain = GPClassifier(**QUICK).fit(X, y)
    masked = GPClassifier(**QUICK).fit(np.ma.masked_array(X), np.ma.masked_array(y))
    assert np.array_equal(masked.predict_proba(np.ma.masked_array(X)), plain.predict_proba(X))
