"""Who watches a fit: scikit-learn's callbacks, the progress bar, validation rows, pictures."""

import importlib.util
import itertools

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import log_loss

from gpclf import GPClassifier, gaussian
from gpclf.estimators.callbacks import held_out
from gpclf.estimators.progress import Drawing
from gpclf.inference import plan
from gpclf.inference.engines import Decoupled, Gradient, MeanField, Natural, PowerEP
from gpclf.inference.history import PATIENCE, History, Progress
from problems import problem

QUICK = {"n_inducing": 15, "max_epochs": 30, "random_state": 0, "tol": 1e-9}


needs_callbacks = pytest.mark.skipif(
    importlib.util.find_spec("sklearn.callback") is None, reason="scikit-learn has none before 1.9"
)


class Listener:
    """A callback of scikit-learn's kind that has enough after some steps."""

    def __init__(self, steps, X, y):
        self.steps, self.calls, self.scores = steps, [], []
        self.X, self.y = X, y

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.calls.append(context.task_name)
        if fitted_estimator is not None:
            assert X is self.X
            assert y is self.y
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) >= self.steps


@needs_callbacks
def test_callbacks_hear_of_every_step_and_may_end_a_fit():
    X, y = load_iris(return_X_y=True)
    patient, hasty = Listener(10_000, X, y), Listener(3, X, y)
    clf = GPClassifier(**QUICK).set_callbacks(patient).fit(X, y)
    assert patient.calls == ["setup", *clf.history_["stage"], "fit", "teardown"]
    assert patient.scores[-1] == clf.score(X, y)
    short = GPClassifier(**QUICK).set_callbacks(hasty).fit(X, y)
    assert "enough" in short.stopped_
    assert hasty.calls[-1] == "teardown"
    evaluations = [np.sum(c.history_["stage"] == "hyper-parameters") for c in (short, clf)]
    assert 0 < evaluations[0] < evaluations[1]


@needs_callbacks
def test_a_callback_of_scikit_learns_own_hears_the_score_of_every_step():
    from sklearn.callback import ScoringMonitor

    X, y = load_iris(return_X_y=True)
    monitor = ScoringMonitor(scoring="neg_log_loss")
    clf = GPClassifier(**QUICK).set_callbacks(monitor).fit(X, y)
    heard = [line["neg_log_loss"] for line in monitor.get_logs().data]
    assert len(heard) == len(clf.history_["stage"])
    np.testing.assert_allclose(heard[-1], -log_loss(y, clf.predict_proba(X)), rtol=1e-6)
    assert heard[-1] > heard[0]
    plain = GPClassifier(**QUICK).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), plain.predict_proba(X))


@needs_callbacks
def test_callbacks_are_given_the_rows_as_the_user_gave_them_and_none_are_kept():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": list("xyzw") * 10})
    y = np.where(frame["a"] > 20, "high", "low")
    listener = Listener(2, frame, y)
    clf = GPClassifier(n_inducing=4, max_epochs=2, random_state=0).set_callbacks(listener)
    clf.fit(frame, y)
    assert listener.scores
    assert not any("told" in name for name in vars(clf))


def test_the_best_by_the_judge_is_kept_and_it_is_enough_after_some_in_vain():
    scores = iter([3.0, 2.0, *[5.0] * PATIENCE])
    log = History(lambda line: None, 0.0, lambda line: next(scores))
    q = gaussian.Natural.standard(1, 2)
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
    settings = {**QUICK, "inference": Natural(optimizer=optimizer), "max_epochs": 60}
    clf = GPClassifier(**settings, early_stopping=0.3).fit(X, y)
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
    for share in (0.0, 1.0, "half", -0.1, None):
        with pytest.raises(ValueError, match="'early_stopping' parameter of GPClassifier must be"):
            GPClassifier(early_stopping=share).fit(np.eye(4), [0, 1, 0, 1])


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


def _drawn(drawing):
    with drawing.bar.console.capture() as captured:
        drawing.bar.console.print(drawing.bar.get_renderable())
    return captured.get()


def test_the_bar_never_says_that_nothing_is_left_while_the_fit_goes_on():
    drawing = Drawing(2, Console(width=120))
    for share in (0.0, 0.5, 0.9, 1.0, 1.0, 1.2):
        drawing(Progress("all rows", 1.0, -0.5, share, None, None))
        assert "left 0:00:00" not in _drawn(drawing)
        assert ("left …" in _drawn(drawing)) == (share >= 1)
        assert not drawing.bar.finished  # or the clock would stand
    drawing.finish()
    assert drawing.bar.finished
    assert "…" not in _drawn(drawing)


SOURCES = {
    "all rows": {},
    "an easier likelihood first": {"likelihood": "robust-max"},
    "steps on batches": {"inference": Natural(optimizer=None, batch_size=40)},
    "more points for the mean": {"inference": Decoupled(n_mean=8)},
    "gradients": {"inference": Gradient()},
    "power-EP": {"inference": PowerEP()},
    "mean field": {"inference": MeanField(), "likelihood": "probit"},
}


@pytest.mark.parametrize(
    ("name", "few"),
    [*((name, False) for name in SOURCES), ("all rows", True), ("power-EP", True)],
)
def test_the_share_of_the_work_done_rises_and_the_last_stage_is_part_of_it(name, few, monkeypatch):
    """Coarse to fine, too: there a look at all rows comes between the rounds."""
    if few:
        monkeypatch.setattr(plan, "FEW_ROWS", 40)
        monkeypatch.setattr(plan, "LEARNING_ROWS", 80)
    lines = []
    parameters = {**QUICK, "n_inducing": 9, "max_epochs": 18, **SOURCES[name]}
    clf = GPClassifier(**parameters, callback=lines.append)
    clf.fit(*make_moons(150, noise=0.3, random_state=0))
    shares = np.array([line._line.share for line in lines])
    assert np.all(np.diff(shares) >= 0), list(zip(clf.history_["stage"], shares, strict=True))
    assert 0 <= shares[0] < shares[-1] <= 1
    last = clf.history_["stage"] == clf.history_["stage"][-1]
    assert np.sum(last) == 1 or shares[last][0] < 1
    assert np.all(shares[~last] < 1)
    if few:  # or the look was not there
        assert "all rows" in clf.history_["stage"][: np.flatnonzero(~last)[-1]]


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_the_bar_shows_the_bound_and_the_time_left(verbose, capsys):
    GPClassifier(**{**QUICK, "verbose": verbose}).fit(*load_iris(return_X_y=True))
    shown = capsys.readouterr().out
    assert ("ELBO per row" in shown) == (verbose == 2)  # a bar that vanishes leaves nothing
    assert ("left" in shown) == (verbose == 2)
