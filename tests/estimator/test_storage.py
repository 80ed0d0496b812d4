"""Model files: what comes back, what is refused, and what a sudden end leaves behind."""

import copy
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from gpclf import GPClassifier, storage
from gpclf.inference.engines import Decoupled, Gradient, MeanField, Natural, PowerEP
from gpclf.kernels import RBF, Linear
from gpclf.likelihoods import LogisticSoftmax, NoisyProbit, RobustMax, Step

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris):
    return GPClassifier(**QUICK).fit(*iris)


@pytest.fixture
def path(fitted, tmp_path):
    fitted.save(tmp_path / "model.gpclf")
    return tmp_path / "model.gpclf"


def test_a_saved_classifier_predicts_the_same(iris, tmp_path):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    clf = GPClassifier(kernel=RBF() + Linear(), **QUICK).fit(frame, labels)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    assert np.array_equal(other.predict_proba(frame), clf.predict_proba(frame))
    assert np.array_equal(other.classes_, clf.classes_)
    assert list(other.feature_names_in_) == list("abcd")
    assert repr(other.kernel_) == repr(clf.kernel_)
    assert other.get_params()["max_epochs"] == QUICK["max_epochs"]
    assert os.listdir(tmp_path) == ["model.gpclf"]


@pytest.mark.parametrize(
    "likelihood",
    [NoisyProbit(0.1), Step(0.1, learn=False), RobustMax(), LogisticSoftmax(integration="taylor")],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_a_likelihood_is_saved_with_what_it_learned_and_was_told(iris, likelihood, tmp_path):
    clf = GPClassifier(likelihood, **QUICK).fit(*iris)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    assert np.array_equal(other.predict_proba(iris[0]), clf.predict_proba(iris[0]))
    if isinstance(likelihood, LogisticSoftmax):
        assert other.likelihood_.integration == "taylor"
    else:
        assert other.likelihood_.delta == clf.likelihood_.delta
        learned = clf.likelihood_.delta != pytest.approx(likelihood.delta, rel=1e-6)
        assert learned == isinstance(likelihood, NoisyProbit)


@pytest.mark.parametrize(
    "engine",
    [
        Natural(optimizer=None, batch_size=np.int64(50), learn_inducing=np.bool_(False)),
        PowerEP(alpha=np.float64(0.5), batch_size=60),
        Gradient("adadelta", epsilon=np.float32(0.25)),
        Decoupled(n_mean=np.int32(4)),
        MeanField("plug-in"),
    ],
    ids=lambda engine: engine.name,
)
def test_an_engine_is_saved_with_its_options(engine, fitted, iris, tmp_path):
    same = GPClassifier.load(_saved(fitted, tmp_path, "auto"))
    assert same.inference == "auto"
    assert same.get_params() == fitted.get_params()
    other = GPClassifier.load(_saved(fitted, tmp_path, engine))
    assert type(other.inference) is type(engine)
    assert other.inference.get_params() == engine.get_params()
    other.inference.validate()


def _saved(fitted, folder, engine):
    """The file of a classifier that names another engine: saving asks for none."""
    clf = copy.copy(fitted).set_params(inference=engine)
    clf.save(folder / "model.gpclf")
    return folder / "model.gpclf"


def test_levels_are_saved(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40.0), "b": list("xyzw") * 10})
    clf = GPClassifier(**QUICK).fit(frame, np.arange(40) % 2)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    frame.loc[3, "b"] = "unknown"
    assert np.array_equal(other.predict_proba(frame), clf.predict_proba(frame))


def test_a_loaded_classifier_goes_on_learning(iris, path):
    X, y = iris
    clf = GPClassifier(inference="natural", **QUICK).fit(X, y)
    clf.save(path)
    clf = GPClassifier.load(path).set_params(warm_start=True)
    before = clf.elbo_
    assert clf.partial_fit(X[:20], y[:20]).n_samples_seen_ == 170
    assert clf.fit(X, y).elbo_ >= before - 1e-3 * abs(before)


def test_the_header_says_what_the_file_is(path, fitted):
    header, _ = storage.read(path)
    assert header["format"] == storage.FORMAT
    assert header["version"] == "0.1.0"
    assert header["classes"][1] == [0, 1, 2]
    assert header["fitted"]["n_samples_seen_"] == 150
    assert header["fitted"]["elbo_"] == fitted.elbo_


def test_two_hundred_altered_copies_are_refused(path, fitted, iris, tmp_path):
    """Bits flipped, ends cut off, headers of other files: one sentence each, and little memory."""
    rng = np.random.default_rng(0)
    content = path.read_bytes()
    GPClassifier(**{**QUICK, "n_inducing": 9}).fit(*iris).save(tmp_path / "other.gpclf")
    other = (tmp_path / "other.gpclf").read_bytes()
    size, other_size = (8 + int.from_bytes(c[:8], "little") for c in (content, other))
    places = np.r_[np.arange(64), rng.integers(64, size, 40), rng.integers(size, len(content), 40)]
    altered = []
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        altered.append(bytes(flipped))
    altered += [content[:end] for end in rng.integers(0, len(content), 40)]
    altered += [content + bytes(rng.integers(0, 256, 1 + n, dtype=np.uint8)) for n in range(8)]
    altered += [other[:other_size] + content[size:], content[:size] + other[other_size:]]
    altered += [bytes(rng.integers(0, 256, n, dtype=np.uint8)) for n in (0, 1, 8, 100, 10_000, 99)]
    assert len(altered) == 200
    tracemalloc.start()
    try:
        for copy in altered:
            path.write_bytes(copy)
            with pytest.raises(ValueError, match=r"model\.gpclf is (damaged|no model)") as error:
                GPClassifier.load(path)
            assert "\n" not in str(error.value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6


def test_a_file_of_another_format_says_so(fitted, path, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT", 9)
    fitted.save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has format 9, but this version of gpclf reads 8"):
        GPClassifier.load(path)


@pytest.mark.parametrize("missing", ["posterior", "classes", "columns", "scaling", "fitted"])
def test_a_header_with_a_hole_gets_one_sentence(path, missing):
    header, arrays = storage.read(path)
    del header[missing], header["format"]
    storage.write(path, header, arrays)
    with pytest.raises(ValueError, match="is damaged: its header lacks"):
        GPClassifier.load(path)


def test_a_file_runs_no_class_but_ours(path):
    header, arrays = storage.read(path)
    text = re.sub('"class": "(RBF|Matern..)"', '"class": "Popen"', json.dumps(header))
    assert "Popen" in text
    altered = json.loads(text)
    del altered["format"]
    storage.write(path, altered, arrays)
    with pytest.raises(ValueError, match="is damaged: its header lacks 'Popen'"):
        GPClassifier.load(path)


def test_a_disk_that_fails_leaves_the_old_file(fitted, path, monkeypatch):
    before = path.read_bytes()

    def fail(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        fitted.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model.gpclf"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_saved_file_has_the_mode_of_any_new_file(fitted, tmp_path, umask):
    before = os.umask(umask)
    try:
        with open(tmp_path / "plain", "wb"):
            pass
        fitted.save(tmp_path / "model.gpclf")
    finally:
        os.umask(before)
    plain, saved = ((tmp_path / name).stat().st_mode for name in ("plain", "model.gpclf"))
    assert oct(saved) == oct(plain)


def test_a_file_that_is_written_again_keeps_its_mode(fitted, path):
    path.chmod(0o640)
    fitted.save(path)
    assert oct(path.stat().st_mode & 0o777) == oct(0o640)


def test_a_place_that_cannot_be_written_to_is_named_as_the_user_named_it(fitted, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        fitted.save(tmp_path / "missing" / "model.gpclf")
    assert str(error.value) == f"There is no folder {tmp_path / 'missing'}: make it first."
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        fitted.save(tmp_path / "folder")
    assert error.value.filename == str(tmp_path / "folder")
    assert error.value.filename2 is None
    assert os.listdir(tmp_path) == ["folder"]


WRITER = """
import sys
from gpclf import storage
one, other, path = sys.argv[1:]
both = [storage.read(each) for each in (one, other)]
for header, _ in both:
    del header["format"]
print("ready", flush=True)
while True:
    for header, arrays in both:
        storage.write(path, header, arrays)
"""


@pytest.mark.slow
def test_a_save_that_is_killed_leaves_the_old_file_or_the_new(path, iris, tmp_path):
    other = tmp_path / "other.gpclf"
    GPClassifier(**{**QUICK, "n_inducing": 100}).fit(*iris).save(other)
    target = tmp_path / "target.gpclf"
    target.write_bytes(path.read_bytes())
    allowed = {GPClassifier.load(each).elbo_ for each in (path, other)}
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(50):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, other, target], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.1)))
        writer.kill()
        writer.wait()
        writer.stdout.close()
        seen.add(GPClassifier.load(target).elbo_)
    assert seen <= allowed
    assert len(seen) == 2


def test_an_engine_of_the_users_own_does_not_come_back_as_another(fitted, tmp_path):
    class Slower(Natural):
        name = "natural"  # that of the one it is made from

    clf = copy.copy(fitted).set_params(inference=Slower())
    with pytest.raises(ValueError, match="Slower is not an engine of gpclf"):
        clf.save(tmp_path / "other.gpclf")
    assert not list(tmp_path.iterdir())
