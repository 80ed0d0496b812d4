"""A fit that has only so much time: it ends, is a classifier, and says why it ended."""

import itertools
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

import cases
from gpclf import GPClassifier, gaussian
from gpclf.inference import history
from gpclf.inference.drivers import rounds
from gpclf.inference.engines import Decoupled, Gradient, Natural, PowerEP
from gpclf.inputs import Latent
from problems import problem

QUICK = {"n_inducing": 10, "random_state": 0}
MOONS = make_moons(120, noise=0.3, random_state=0)
EVERY_WAY = {
    **{f"engine {name}": {"inference": e, **more} for name, (e, more) in cases.ENGINES.items()},
    "selection": {},
    "epochs": {"inference": Natural(batch_size=30)},
    "adam": {"inference": Natural(optimizer="adam", batch_size=30)},
    "stochastic ep": {"inference": PowerEP(batch_size=30)},
    "gradient on batches": {"inference": Gradient(optimizer="adam", batch_size=30)},
    "decoupled on batches": {"inference": Decoupled(batch_size=30)},
    "validation rows": {"early_stopping": 0.3},
    "an easier beginning": {"likelihood": "robust-max"},
    "errors": {"input_noise": Latent(count=4)},
    "errors, row by row": {"input_noise": "parametric"},
}


def fitted(way, **more):
    """On two moons, with errors of the inputs where the way is about these."""
    errors = {"X_std": 0.2} if "input_noise" in EVERY_WAY[way] else {}
    parameters = QUICK | {"max_epochs": 8} | EVERY_WAY[way] | more
    return GPClassifier(**parameters).fit(*MOONS, **errors)


@cache
def whole(way):
    """Without a limit."""
    return fitted(way)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_with_next_to_no_time_there_is_a_classifier_that_says_why_it_ended(way):
    clf = fitted(way, max_seconds=1e-9)
    assert "time limit" in clf.stopped_
    p = clf.predict_proba(MOONS[0])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(clf.elbo_)
    assert np.ptp(p[:, 1]) > 0  # a posterior, not the prior
    assert len(clf.history_["stage"]) < len(whole(way).history_["stage"])


@pytest.mark.parametrize("way", EVERY_WAY)
def test_more_time_than_needed_changes_nothing(way):
    patient, free = fitted(way, max_seconds=1e6), whole(way)
    assert patient.stopped_ == free.stopped_
    np.testing.assert_array_equal(patient.predict_proba(MOONS[0]), free.predict_proba(MOONS[0]))


def ticking(monkeypatch):
    """A clock that is one second further whenever somebody looks."""
    clock = itertools.count()
    monkeypatch.setattr(history.time, "perf_counter", lambda: float(next(clock)))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_fit_ends_about_when_it_should(share, monkeypatch):
    X, y = load_iris(return_X_y=True)
    ticking(monkeypatch)
    first, *_, last = GPClassifier(**QUICK).fit(X, y).history_["seconds"]
    took = last - first
    ticking(monkeypatch)
    limit = first + share * took
    clf = GPClassifier(**QUICK, max_seconds=limit).fit(X, y)
    assert "time limit" in clf.stopped_
    assert clf.loo_score_ is None or "posterior: time limit" not in clf.stopped_
    assert 0.9 * limit < clf.history_["seconds"][-1] < limit + 0.2 * took
    assert clf.score(X, y) > 0.9


def test_the_time_of_callbacks_does_not_count(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(history.time, "perf_counter", lambda: now[0])

    def slow(line):
        now[0] += 100.0

    log = history.History(slow, 0.0, max_seconds=50.0)
    now[0] = 49.0
    theta = problem("Logit")[0]
    assert not log.note("stage", 0.0, 0.0, theta, gaussian.Natural.standard(1, 9))
    assert not log.enough
    now[0] += 1.0
    assert log.enough
    assert log.ending == "time limit"


def test_with_many_rows_the_last_posterior_is_of_some(monkeypatch):
    monkeypatch.setattr(rounds, "MANY_ROWS", 100)
    X, y = make_moons(400, noise=0.3, random_state=0)
    clf = GPClassifier(**QUICK, max_seconds=1e-9).fit(X, y)
    assert "all rows" not in clf.history_["stage"]
    assert clf.score(X, y) > 0.7
    assert clf.loo_score_ is None


def test_a_limit_comes_back_from_a_file(tmp_path):
    clf = GPClassifier(**QUICK, max_seconds=1e-9).fit(*MOONS)
    clf.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    assert loaded.max_seconds == 1e-9
    assert loaded.stopped_ == clf.stopped_
