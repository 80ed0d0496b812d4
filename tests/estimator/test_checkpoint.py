"""A fit that was killed goes on from its checkpoint to the same bits, with any engine."""

import os
from functools import cache

import equinox as eqx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons

import cases
from gpclf import GPClassifier, kernels, storage
from gpclf.estimators import FitInterrupted, checkpoints
from gpclf.inference import history, journal, quasi_newton
from gpclf.inference.engines import Decoupled, Gradient, Natural, PowerEP

QUICK = {"n_inducing": 10, "random_state": 0, "max_epochs": 8}
MOONS = make_moons(120, noise=0.3, random_state=0)
NINE = make_classification(
    180, 4, n_informative=4, n_redundant=0, n_classes=9, n_clusters_per_class=1, random_state=0
)
BY_CLASS = {"likelihood": "logistic-softmax", "inference": Natural(class_subset=3, batch_size=60)}
WAYS = {
    **{f"engine {k}": {"inference": e, **more} for k, (e, more) in cases.ENGINES.items()},
    "selection": {},
    "selection, many classes": {"data": NINE, "n_inducing": "auto"},
    "stochastic ep": {"inference": PowerEP(batch_size=30)},
    "adam": {"inference": Natural(optimizer="adam", batch_size=30)},
    "some of the classes": {"data": NINE, **BY_CLASS},
    "gradient on batches": {"inference": Gradient(optimizer="adam", batch_size=30)},
    "decoupled on batches": {"inference": Decoupled(batch_size=30, optimizer="adam")},
    "validation rows": {"early_stopping": 0.3},
    "an easier beginning": {"likelihood": "robust-max"},
    "errors drawn anew": {"input_noise": "resample"},
    "errors, row by row": {"input_noise": "parametric"},
}
AT_ONCE = ["engine PowerEP", "selection", "adam", "validation rows"]  # the others are slow
BY_WAY = [pytest.param(way, marks=() if way in AT_ONCE else pytest.mark.slow) for way in WAYS]
SEGMENTS = 3  # of which all but the last are killed


class Killed(BaseException):
    """As by a signal: nothing catches it."""


def fitted(way, more=None, **kept):
    """A fit of this way."""
    own = dict(WAYS[way])
    X, y = own.pop("data", MOONS)
    errors = {"X_std": 0.2} if "input_noise" in own else {}
    return GPClassifier(**QUICK | own | (more or {})).fit(X, y, **errors, **kept)


def probabilities(way, clf):
    X, _ = WAYS[way].get("data", MOONS)
    return clf.predict_proba(X)


@cache
def whole(way):
    """Without a checkpoint."""
    return fitted(way)


def killing(monkeypatch, after):
    """A journal that is written at every unit, and a process that dies after so many of these."""
    monkeypatch.setattr(journal, "STAGE", 0.0)
    monkeypatch.setattr(journal, "STEP", 0.0)
    monkeypatch.setattr(journal, "SHARE", np.inf)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    saved, real = [], checkpoints.Kept._save

    def save(self, theta, past):
        real(self, theta, past)
        saved.append(past.seconds)
        if len(saved) > after:
            raise Killed

    monkeypatch.setattr(checkpoints.Kept, "_save", save)
    return saved


@pytest.mark.parametrize("way", BY_WAY)
def test_a_fit_that_was_killed_ends_with_the_same_bits(way, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        saved = killing(patch, np.inf)
        kept = fitted(way, checkpoint=tmp_path / "whole")
    same_end(way, kept)
    place, each = tmp_path / "killed", len(saved) // SEGMENTS
    for _ in range(SEGMENTS - 1):
        with monkeypatch.context() as patch:
            killing(patch, each)
            with pytest.raises(Killed):
                fitted(way, checkpoint=place, resume=True)
    same_end(way, fitted(way, checkpoint=place, resume=True))


def same_end(way, clf):
    """As the fit that was left alone: what it found and what it says."""
    np.testing.assert_array_equal(probabilities(way, clf), probabilities(way, whole(way)))
    for name in ("stage", "elbo"):
        np.testing.assert_array_equal(clf.history_[name], whole(way).history_[name])
    assert np.all(np.diff(clf.history_["seconds"]) >= 0)
    for name in ("elbo_", "stopped_", "selection_", "loo_score_", "jitter_"):
        assert getattr(clf, name) == getattr(whole(way), name), name


def test_a_fit_that_is_done_is_read_and_not_run_again(tmp_path, monkeypatch):
    first = fitted("selection", checkpoint=tmp_path / "done")
    notes = []
    monkeypatch.setattr(history.History, "note", lambda *_, **__: notes.append(0))
    again = fitted("selection", checkpoint=tmp_path / "done", resume=True)
    assert notes == []
    np.testing.assert_array_equal(*(c.predict_proba(MOONS[0]) for c in (first, again)))


def test_a_seed_that_was_drawn_is_that_of_the_checkpoint(tmp_path, monkeypatch):
    drawn = {"random_state": None}
    with monkeypatch.context() as patch:
        killing(patch, 10)
        with pytest.raises(Killed):
            fitted("engine Natural", drawn, checkpoint=tmp_path / "a", resume=True)
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    ends = [
        fitted("engine Natural", drawn, checkpoint=tmp_path / name, resume=True) for name in "ab"
    ]
    np.testing.assert_array_equal(*(clf.predict_proba(MOONS[0]) for clf in ends))


@pytest.fixture
def left(tmp_path, monkeypatch):
    """A checkpoint of a fit that was killed."""
    with monkeypatch.context() as patch:
        killing(patch, 5)
        with pytest.raises(Killed):
            fitted("engine Natural", checkpoint=tmp_path / "run.ckpt")
    return tmp_path / "run.ckpt"


def refused(sentence, left, X=MOONS[0], y=MOONS[1], weight=None, **more):
    """In one sentence, and the file stays as it is."""
    before = left.read_bytes()
    clf = GPClassifier(**QUICK | WAYS["engine Natural"] | more)
    with pytest.raises(ValueError, match=sentence) as caught:
        clf.fit(X, y, weight, checkpoint=left, resume=True)
    assert str(left) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left.read_bytes() == before
    assert not hasattr(clf, "posterior_")


def test_other_data_are_refused(left):
    X, y = MOONS
    refused("the entries of X differ", left, X=np.where(np.arange(240).reshape(120, 2), X, 1e-9))
    refused("the labels differ", left, y=np.roll(y, 1))
    refused("the classes differ", left, y=np.array(["no", "yes"])[y])
    refused("the weights differ", left, weight=np.linspace(1, 2, 120))
    refused("the entries of X differ", left, X=X[:-1], y=y[:-1])


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ({"n_inducing": 11}, "n_inducing=10, not 11"),
        ({"random_state": 1}, "random_state=0, not 1"),
        ({"inference": Natural(learn_inducing=False)}, "learn_inducing=True, not False"),
        ({"kernel": kernels.RBF(start=0.5)}, "kernel="),
        ({"class_weight": "balanced"}, "class_weight=None, not balanced"),
    ],
)
def test_another_parameter_is_refused(left, parameter, words):
    refused(words, left, **parameter)


def test_what_does_not_change_the_result_may_change(left):
    more = {"verbose": 0, "callback": lambda line: None, "max_seconds": 1e6}
    clf = fitted("engine Natural", more, checkpoint=left, resume=True)
    same_end("engine Natural", clf)


def test_another_version_is_refused(left, monkeypatch):
    monkeypatch.setattr(checkpoints, "version", lambda name: "0.0.1")
    refused("was written with gpclf .*, and this is 0.0.1", left)
    monkeypatch.undo()
    monkeypatch.setattr(storage, "FORMAT", 999)
    refused("has format", left)


def test_a_file_that_was_cut_off_or_changed_is_refused(left):
    content = left.read_bytes()
    for damaged in (content[:-100], content[:1000], b"", content[:-1] + bytes([content[-1] ^ 1])):
        left.write_bytes(damaged)
        refused("is damaged", left)


def test_a_model_is_no_checkpoint_and_a_checkpoint_no_model(left):
    with pytest.raises(ValueError, match="it is a checkpoint"):
        GPClassifier.load(left)
    whole("engine Natural").save(left)
    refused("it is a model file", left)


def test_nothing_is_written_over_that_was_not_named_to_go_on_from(left, tmp_path):
    before = left.read_bytes()
    with pytest.raises(ValueError, match="is there already: resume=True"):
        fitted("engine Natural", checkpoint=left)
    assert left.read_bytes() == before
    with pytest.raises(ValueError, match="resume=True needs the checkpoint"):
        fitted("engine Natural", resume=True)
    with pytest.raises(ValueError, match="is a folder"):
        fitted("engine Natural", checkpoint=tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        fitted("engine Natural", checkpoint=tmp_path / "none" / "run.ckpt")


def test_another_machine_is_warned_of(left, monkeypatch):
    monkeypatch.setattr(checkpoints, "processor", lambda: "another")
    with pytest.warns(UserWarning, match="another kind of processor"):
        fitted("engine Natural", checkpoint=left, resume=True)


class Own(kernels.RBF):
    """A kernel of the user's."""

    word: str | None = eqx.field(static=True, default=None)


def test_a_class_of_the_users_is_kept_by_its_name(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        killing(patch, 10)
        with pytest.raises(Killed):
            fitted("engine Natural", {"kernel": Own()}, checkpoint=tmp_path / "own")
    clf = fitted("engine Natural", {"kernel": Own()}, checkpoint=tmp_path / "own", resume=True)
    assert type(clf.kernel_) is Own
    plain = fitted("engine Natural", {"kernel": "rbf"})
    np.testing.assert_array_equal(clf.predict_proba(MOONS[0]), plain.predict_proba(MOONS[0]))


def test_slopes_that_would_fill_the_disk_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(quasi_newton, "MOST_KEPT", 1000)
    fitted("engine Gradient")
    with pytest.raises(ValueError, match='too many numbers: use optimizer="adam"'):
        fitted("engine Gradient", checkpoint=tmp_path / "run.ckpt")


def test_the_seconds_of_earlier_processes_count(left, monkeypatch):
    header, _ = storage.read(left, storage.CHECKPOINT)
    assert header["seconds"] > 0
    late = {"max_seconds": 1e-9 + header["seconds"] / 2}
    assert "time limit" in fitted("engine Natural", late, checkpoint=left, resume=True).stopped_


def test_a_small_fit_is_written_at_its_beginning_and_end_only(tmp_path, monkeypatch):
    saved, real = [], checkpoints.Kept._save
    monkeypatch.setattr(
        checkpoints.Kept, "_save", lambda *arguments: (saved.append(0), real(*arguments))
    )
    monkeypatch.setattr(journal, "STAGE", 1e6)
    monkeypatch.setattr(journal, "STEP", 1e6)
    fitted("engine Natural", checkpoint=tmp_path / "run.ckpt")
    assert len(saved) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


def interrupting(stage, number):
    """A callback during which somebody presses Ctrl-C."""
    count = iter(range(number, -1, -1))

    def callback(snapshot):
        if snapshot.stage == stage and next(count) == 0:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("way", ["selection", "engine PowerEP", "gradient on batches"])
def test_ctrl_c_leaves_the_last_good_model(way):
    stage = "epochs" if "batches" in way else "hyper-parameters"
    own = {k: v for k, v in WAYS[way].items() if k != "data"}
    clf = GPClassifier(**QUICK | own, callback=interrupting(stage, 4))
    said = pytest.warns(FitInterrupted, match="as far as it had come")
    with said, pytest.raises(KeyboardInterrupt):
        clf.fit(*MOONS)
    assert "interrupted" in clf.stopped_
    assert np.isfinite(clf.elbo_)
    assert clf.score(*MOONS) > 0.7
    assert clf.history_["stage"][-1] == stage
    again = clone(clf).set_params(callback=None).fit(*MOONS)
    np.testing.assert_array_equal(probabilities(way, again), probabilities(way, whole(way)))


def test_ctrl_c_before_there_is_a_model_leaves_none(monkeypatch):
    clf = GPClassifier(**QUICK)

    def at_once(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(history.History, "note", at_once)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*MOONS)
    assert not hasattr(clf, "posterior_")


def test_ctrl_c_while_rows_left_out_are_asked_leaves_what_was_learned():
    clf = GPClassifier(**QUICK, callback=interrupting("rows left out", 2))
    with pytest.warns(FitInterrupted), pytest.raises(KeyboardInterrupt):
        clf.fit(*MOONS)
    assert clf.score(*MOONS) > 0.8  # and not the prior, with which folds begin


def test_after_ctrl_c_a_fit_goes_on(tmp_path, monkeypatch):
    place = tmp_path / "run.ckpt"
    with monkeypatch.context() as patch:
        killing(patch, np.inf)
        stop = {"callback": interrupting("rows left out", 2)}
        said = pytest.warns(FitInterrupted, match=r"goes on from .*run\.ckpt")
        with said, pytest.raises(KeyboardInterrupt):
            fitted("selection", stop, checkpoint=place)
    same_end("selection", fitted("selection", checkpoint=place, resume=True))
