"""Laws of engines: every one of cases.py ends as the same kind of posterior."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

import cases
from gpclf import GPClassifier

ROWS = make_moons(70, noise=0.2, random_state=0)


@pytest.mark.parametrize("engine", sorted(cases.ENGINES))
def test_a_fit_ends_as_a_posterior_like_any_other(engine, tmp_path):
    X, y = ROWS
    known = {"n_inducing": 12, "max_epochs": 12, "random_state": 0} | cases.ENGINES[engine]
    clf = GPClassifier(inference=engine, **known).fit(X, y)
    probabilities = clf.predict_proba(X)
    assert clf.score(X, y) > 0.9
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(X[::-1])[::-1], probabilities, atol=1e-12)
    again = GPClassifier(inference=engine, **known).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), probabilities)
    clf.save(tmp_path / "model.gpclf")
    same = GPClassifier.load(tmp_path / "model.gpclf")
    np.testing.assert_allclose(same.predict_proba(X), probabilities, atol=1e-9)
    assert np.all(clf.uncertainty(X).total >= 0)
    assert clf.history_["elbo"][-1] > clf.history_["elbo"][0]
    before = clf.n_samples_seen_
    assert clf.partial_fit(X[:5], y[:5]).n_samples_seen_ == before + 5


@pytest.mark.parametrize("engine", sorted(cases.ENGINES))
def test_without_learning_exchanging_the_classes_exchanges_the_probabilities(engine):
    X, y = ROWS
    known = {"n_inducing": 12, "random_state": 0, "optimizer": None} | cases.ENGINES[engine]
    one, other = (GPClassifier(inference=engine, **known).fit(X, labels) for labels in (y, 1 - y))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-6)
