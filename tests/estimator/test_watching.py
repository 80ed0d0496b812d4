"""Who watches a fit: scikit-learn's callbacks, the progress bar, validation rows, pictures."""

import itertools

import numpy as np
import pytest
from sklearn.callback import ScoringMonitor
from sklearn.datasets import load_iris, make_moons

from gpclf import GPClassifier
from gpclf.estimators.watching import held_out
from gpclf.gaussian import Natural
from gpclf.inference.journal import PATIENCE, Journal
from problems import problem

QUICK = {"n_inducing": 15, "max_epochs": 30, "random_state": 0, "tol": 1e-9}


class Listener:
    """A callback of scikit-learn's kind that has enough after some steps."""

    def __init__(self, steps):
        self.steps, self.calls, self.scores = steps, [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.calls.append(context.task_name)
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(*load_iris(return_X_y=True)))
        return len(self.scores) >= self.steps


def test_callbacks_hear_of_every_step_and_may_end_a_fit():
    X, y = load_iris(return_X_y=True)
    patient, hasty = Listener(10_000), Listener(3)
    clf = GPClassifier(**QUICK).set_callbacks(patient).fit(X, y)
    assert patient.calls == ["setup", *clf.history_["stage"], "fit", "teardown"]
    assert patient.scores[-1] == clf.score(X, y)
    short = GPClassifier(**QUICK).set_callbacks(hasty).fit(X, y)
    assert "enough" in short.stopped_
    assert hasty.calls[-1] == "teardown"
    evaluations = [np.sum(c.history_["stage"] == "hyper-parameters") for c in (short, clf)]
    assert 0 < evaluations[0] < evaluations[1]


def test_a_callback_of_scikit_learns_own_works():
    X, y = load_iris(return_X_y=True)
    monitor = ScoringMonitor(scoring="neg_log_loss")
    clf = GPClassifier(**QUICK).set_callbacks(monitor)
    plain = GPClassifier(**QUICK).fit(X, y)
    assert np.array_equal(clf.fit(X, y).predict_proba(X), plain.predict_proba(X))


def test_the_best_by_the_judge_is_kept_and_it_is_enough_after_some_in_vain():
    scores = iter([3.0, 2.0, *[5.0] * PATIENCE])
    log = Journal(lambda line: None, 0.0, lambda line: next(scores))
    q = Natural.standard(1, 2)
    thetas = [problem("Logit", seed=seed)[0] for seed in range(2 + PATIENCE)]
    for theta in thetas:
        assert not log.enough
        log.note("stage", 0.0, 0.0, theta, q)
        log.score(theta, q)
        q.linear[:] += 1  # what was kept must not change with it
    assert log.enough
    theta, kept = log.best(thetas[0], q)
    assert theta is thetas[1]
    np.testing.assert_array_equal(kept.linear, np.ones((1, 2)))
    assert log.best(thetas[0], q) == (thetas[0], q)  # and then starts afresh


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_early_stopping_keeps_rows_apart_and_may_stop(optimizer):
    X, y = make_moons(150, noise=0.4, random_state=0)
    settings = {**QUICK, "optimizer": optimizer, "max_epochs": 60}
    clf = GPClassifier(**settings, early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert clf.n_samples_seen_ == 105
    whole = GPClassifier(**settings).fit(X, y)
    assert len(clf.history_["stage"]) < len(whole.history_["stage"])
    assert clf.score(X, y) > 0.75


def test_rows_apart_are_a_share_of_each_class_where_that_can_be():
    index = np.repeat([0, 1, 2], [60, 30, 10])
    used, apart = held_out(0.2, index, np.random.default_rng(0))
    assert sorted([*used, *apart]) == list(range(100))
    np.testing.assert_array_equal(np.bincount(index[apart]), [12, 6, 2])
    used, apart = held_out(0.2, np.array([0, 1, 1, 1, 1]), np.random.default_rng(0))
    assert len(apart) == 1


def test_a_share_that_makes_no_sense_gets_one_sentence():
    for share in (0, 1, "half", -0.1):
        with pytest.raises(ValueError, match="validation_fraction must be above 0 and below 1"):
            GPClassifier(validation_fraction=share).fit(np.eye(4), [0, 1, 0, 1])


def test_pictures_are_drawn_on_new_axes_or_the_users():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = GPClassifier(**QUICK).fit(X, y)
    for draw, labels in itertools.product((clf.plot_history, clf.plot_relevance), (True, False)):
        axes = plt.subplots()[1] if labels else None
        drawn = draw(axes)
        assert axes is None or drawn is axes
        assert drawn.get_xlabel() in ("seconds", "relevance")
    assert [t.get_text() for t in clf.plot_relevance().get_yticklabels()][-1] in X.columns
    plt.close("all")


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_the_bar_shows_the_bound_and_the_time_left(verbose, capsys):
    GPClassifier(**{**QUICK, "verbose": verbose}).fit(*load_iris(return_X_y=True))
    shown = capsys.readouterr().out
    assert ("ELBO per row" in shown) == (verbose == 2)  # a bar that vanishes leaves nothing
    assert ("left" in shown) == (verbose == 2)
