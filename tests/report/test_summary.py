"""What a fit keeps of its rows: shares that add up, and the same again from a file."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from gpclf import GPClassifier
from gpclf.data import Summary, survey

QUICK = {"n_inducing": 10, "max_epochs": 2, "inference": "natural", "random_state": 0}


def summary_of(X, levels=None, weight=None):
    X = np.asarray(X, float)
    y = np.arange(len(X)) % 2
    levels = np.zeros(X.shape[1], int) if levels is None else np.array(levels)
    return Summary.of(X, y, np.ones(len(X)) if weight is None else weight, levels, 2)


def test_shares_and_what_is_missing_add_up_to_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), rng.integers(0, 3, 50), np.full(50, np.nan)])
    X[:5, 0] = np.nan
    found = summary_of(X, [0, 3, 0])
    assert_allclose([shares.sum() for shares in found.shares], [0.9, 1, 0])
    assert_allclose(found.missing, [0.1, 0, 1])
    assert_allclose(found.class_shares, [0.5, 0.5])
    assert np.isnan(found.quantiles[1:]).all()


def test_a_row_of_weight_two_is_two_rows():
    X = np.random.default_rng(0).normal(size=(40, 2))
    weight = np.ones(40)
    weight[20:] = 2
    twice = np.concatenate([X, X[20:]])
    ours, theirs = summary_of(X, weight=weight), summary_of(twice)
    assert_allclose(ours.quantiles, theirs.quantiles)
    assert_allclose(ours.shares, theirs.shares)


def test_some_of_many_rows_stand_for_all(monkeypatch):
    monkeypatch.setattr(survey.drawn, "__defaults__", (400,))
    X = np.arange(4000.0)[:, None]
    found = summary_of(X)
    assert found.n_rows == 4000
    assert 0 < np.max(np.abs(found.quantiles[0] - np.linspace(0, 3999, 11))) < 400


@pytest.mark.parametrize("words", [False, True])
def test_it_comes_back_from_a_file(tmp_path, words):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    if words:
        X["c"] = np.array(["red", "green", None], dtype=object)[rng.integers(0, 3, 60)]
    clf = GPClassifier(**QUICK).fit(X, X["a"] > 0)
    clf.save(tmp_path / "model.gpclf")
    same = GPClassifier.load(tmp_path / "model.gpclf").training_summary_
    assert same.n_rows == 60
    for ours, theirs in zip(same, clf.training_summary_, strict=True):
        if isinstance(ours, tuple):
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
        else:
            assert_allclose(ours, theirs)
