"""Laws of engines: every one of cases.py ends as the same kind of posterior."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

import cases
from gpclf import GPClassifier
from gpclf.inference.engines import Natural, PowerEP

ROWS = make_moons(70, noise=0.2, random_state=0)


@pytest.mark.parametrize("case", sorted(cases.ENGINES))
def test_a_fit_ends_as_a_posterior_like_any_other(case, tmp_path):
    X, y = ROWS
    engine, parameters = cases.ENGINES[case]
    options = engine.get_params()
    known = {"n_inducing": 12, "max_epochs": 12, "random_state": 0} | parameters
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
    assert type(same.inference) is type(engine)
    assert same.inference.get_params() == engine.get_params() == options  # and a fit changes none
    assert np.all(clf.uncertainty(X).total >= 0)
    assert clf.history_["elbo"][-1] > clf.history_["elbo"][0]
    before = clf.n_samples_seen_
    assert clf.partial_fit(X[:5], y[:5]).n_samples_seen_ == before + 5


@pytest.mark.parametrize("case", sorted(cases.ENGINES))
def test_without_learning_exchanging_the_classes_exchanges_the_probabilities(case):
    X, y = ROWS
    engine, parameters = cases.ENGINES[case]
    engine = clone(engine).set_params(optimizer=None)
    known = {"n_inducing": 12, "random_state": 0} | parameters
    one, other = (GPClassifier(inference=engine, **known).fit(X, labels) for labels in (y, 1 - y))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-6)


@pytest.mark.parametrize("case", sorted(cases.ENGINES))
def test_a_clone_has_an_engine_of_its_own_with_the_same_options(case):
    engine, _ = cases.ENGINES[case]
    options = engine.get_params()
    copy = clone(GPClassifier(inference=engine)).inference
    assert type(copy) is type(engine)
    assert copy is not engine
    assert copy.get_params() == options
    copy.set_params(optimizer=None)
    assert engine.get_params() == options


def test_the_options_of_an_engine_can_be_searched_over():
    engine = PowerEP(optimizer=None)
    clf = GPClassifier("probit", inference=engine, n_inducing=8, random_state=0)
    grid = {"inference__alpha": [0.3, 1.0]}
    found = GridSearchCV(clf, grid, cv=2, scoring="neg_log_loss").fit(*ROWS)
    scores = found.cv_results_["mean_test_score"]
    assert np.all(np.isfinite(scores))
    assert scores[0] != scores[1]
    best = grid["inference__alpha"][int(np.argmax(scores))]
    assert found.best_estimator_.inference.alpha == found.best_params_["inference__alpha"] == best
    assert engine.alpha == 1.0


def test_an_engine_without_batches_refuses_inputs_that_need_them():
    class Whole(Natural):
        name = "whole"

        def __init__(self, optimizer="auto", learn_inducing=True):
            self.optimizer, self.learn_inducing = optimizer, learn_inducing

    with pytest.raises(ValueError, match='inference="whole" takes all rows at once'):
        Whole().on_batches(50)
