"""Beside the rest of scikit-learn's world: searches, pipelines, threads, other files, notebooks."""

from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import skops.io
from sklearn import config_context
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpclf import GPClassifier

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(iris):
    return GPClassifier(**QUICK).fit(*iris)


def test_searches_pipelines_and_scores_in_several_processes(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), GPClassifier(**QUICK))
    search = GridSearchCV(
        pipeline, {"gpclassifier__kernel": ["rbf", "matern32"]}, cv=2, n_jobs=2, error_score="raise"
    )
    assert search.fit(X, y).best_score_ > 0.8
    assert cross_val_score(GPClassifier(**QUICK), X, y, cv=2, n_jobs=2).mean() > 0.8


def test_weights_are_routed_through_a_pipeline(moons):
    X, y = moons
    weight = np.where(y == 0, 1.0, 20.0)
    with config_context(enable_metadata_routing=True):
        classifier = GPClassifier(**QUICK).set_fit_request(sample_weight=True, X_std=True)
        routed = make_pipeline(classifier).fit(X, y, sample_weight=weight)
    alone = GPClassifier(**QUICK).fit(X, y, weight)
    assert np.array_equal(routed.predict_proba(X), alone.predict_proba(X))


def test_skops_and_joblib_keep_a_classifier(fitted, iris, tmp_path):
    X, _ = iris
    whole = fitted.predict_proba(X)
    joblib.dump(fitted, tmp_path / "model.joblib")
    assert np.array_equal(joblib.load(tmp_path / "model.joblib").predict_proba(X), whole)
    content = skops.io.dumps(fitted)
    other = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    assert np.array_equal(other.predict_proba(X), whole)


def test_it_shows_itself_in_a_notebook(fitted):
    page = fitted._repr_html_()
    assert "GPClassifier" in page
    assert "n_inducing" in page


def test_predictions_from_several_threads_are_those_from_one(iris, tmp_path):
    X, y = iris
    GPClassifier(**{**QUICK, "n_inducing": 14}).fit(X, y).save(tmp_path / "model")
    pieces = [np.resize(X, (rows, 4)) for rows in (1, 40, 600, 3000)] * 3
    alone = [GPClassifier.load(tmp_path / "model").predict_proba(piece) for piece in pieces]
    clf = GPClassifier.load(tmp_path / "model")
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(clf.predict_proba, pieces), alone, strict=True):
            np.testing.assert_array_equal(one, other)
