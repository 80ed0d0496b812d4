"""The estimator as a user meets it: good data, bad data, and JAX left as it was."""

import copy
import pickle
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons

from bad_tables import BAD
from gpclf import GPClassifier
from gpclf.inference.drivers import epochs
from gpclf.inference.engines import Natural
from gpclf.kernels import RBF
from gpclf.likelihoods import NAMES

FIXED = Natural(optimizer=None)  # kernel and points stay as they start
QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(iris):
    return GPClassifier(**QUICK).fit(*iris)


def test_it_learns_and_says_what_it_learned(fitted, iris):
    X, y = iris
    assert fitted.score(X, y) > 0.95
    assert fitted.inducing_points_.shape == (15, 4)
    assert np.all(fitted.inducing_points_ > X.min(axis=0) - 3 * X.std(axis=0))
    np.testing.assert_allclose(fitted.relevance_.sum(), 1)
    assert np.isfinite(fitted.elbo_)
    assert fitted.elbo_ < 0
    lengths = {len(values) for values in fitted.history_.values()}
    assert len(lengths) == 1
    assert lengths.pop() > 3
    assert "lengthscale" in repr(fitted.kernel_)


def test_probabilities_sum_to_one_and_agree_with_the_rest(fitted, iris):
    X, _ = iris
    probabilities = fitted.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(probabilities), fitted.predict_log_proba(X), rtol=1e-9)
    assert np.array_equal(fitted.predict(X), fitted.classes_[probabilities.argmax(axis=1)])


def test_a_row_does_not_depend_on_the_others_or_their_order(fitted, iris):
    X, _ = iris
    whole = fitted.predict_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(fitted.predict_proba(X[order]), whole[order], rtol=1e-5, atol=1e-7)
    alone = np.concatenate([fitted.predict_proba(X[i : i + 1]) for i in (0, 70, 149)])
    np.testing.assert_allclose(alone, whole[[0, 70, 149]], rtol=1e-5, atol=1e-7)
    many = fitted.predict_proba(np.tile(X, (20, 1)))
    np.testing.assert_allclose(many[:150], whole, rtol=1e-4, atol=1e-6)


def test_the_same_seed_gives_the_same_result(iris):
    first, second = (GPClassifier(**QUICK).fit(*iris).predict_proba(iris[0]) for _ in range(2))
    assert np.array_equal(first, second)


def test_units_do_not_matter(fitted, iris):
    X, y = iris
    scale, shift = np.array([1e12, 1e-12, 1.0, 250.0]), np.array([0.0, 1.0, -4e3, 7.0])
    other = GPClassifier(**QUICK).fit(X * scale + shift * scale, y)
    agree = other.predict_proba(X * scale + shift * scale)
    np.testing.assert_allclose(agree, fitted.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("kind", [str, bool, object])
def test_labels_of_any_type(moons, kind):
    X, y = moons
    labels = np.array(["no", "yes"])[y] if kind is str else y.astype(kind)
    clf = GPClassifier(**QUICK).fit(X, labels)
    assert set(np.unique(clf.predict(X))) <= set(np.unique(labels))
    assert np.mean(clf.predict(X) == labels) > 0.9


def test_labels_of_mixed_types_are_refused():
    with pytest.raises(ValueError, match=r"different types \(int, str\)"):
        GPClassifier().fit(X6, np.array([0, "a", 0, "a", 0, "a"], dtype=object))


def test_frames_keep_their_names(iris):
    X, y = iris
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    clf = GPClassifier(**QUICK).fit(frame, y)
    assert list(clf.feature_names_in_) == list("abcd")
    frame.loc[3, "c"] = -np.inf
    with pytest.raises(ValueError, match="infinity in row 3, column 'c'"):
        clf.predict(frame)


@pytest.mark.parametrize("likelihood", sorted(NAMES))
def test_weights_of_two_are_rows_twice(moons, likelihood):
    X, y = (part[:40] for part in moons)  # twice or not, chunks of the same size
    weight = 1.0 + (np.arange(len(y)) % 3 == 0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    clf = GPClassifier(
        likelihood, RBF(1.2), n_inducing=None, inference=FIXED, precision="double", tol=1e-9,
        max_epochs=300, random_state=0,
    )  # fmt: skip
    weighted = clone(clf).fit(X, y, weight).elbo_
    np.testing.assert_allclose(weighted, clone(clf).fit(X[twice], y[twice]).elbo_, rtol=1e-6)


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_the_full_process_keeps_its_points_at_the_rows(moons, optimizer):
    X, y = moons
    engine = Natural(optimizer=optimizer)
    clf = GPClassifier(n_inducing=None, max_epochs=4, inference=engine).fit(X, y)
    start = GPClassifier(n_inducing=None, max_epochs=4, inference=FIXED).fit(X, y)
    np.testing.assert_allclose(clf.inducing_points_, np.unique(X, axis=0), atol=1e-9)
    assert repr(clf.kernel_) != repr(start.kernel_)


def test_class_weight_moves_the_boundary(moons):
    X, y = moons
    plain = GPClassifier(**QUICK).fit(X, y).predict(X).sum()
    heavy = GPClassifier(**QUICK, class_weight={0: 1, 1: 20}).fit(X, y).predict(X).sum()
    assert heavy > plain


@pytest.mark.parametrize("share", ["none", "kernel", "points"])
def test_a_kernel_or_points_for_every_class(iris, share):
    clf = GPClassifier(**QUICK, share=share).fit(*iris)
    assert clf.inducing_points_.shape == ((15, 4) if share == "points" else (3, 15, 4))
    assert clf.kernel_.log_lengthscale.shape == ((4,) if share == "kernel" else (3, 4))
    assert clf.score(*iris) > 0.95
    np.testing.assert_allclose(clf.relevance_.sum(), 1)


def test_warm_start_goes_on(moons):
    clf = GPClassifier(**QUICK, warm_start=True).fit(*moons)
    first = clf.elbo_
    assert clf.fit(*moons).elbo_ >= first - 1e-3 * abs(first)
    assert len(clf.history_["elbo"]) > 0


@pytest.mark.parametrize("optimizer", ["adam", None])
def test_other_optimizers(moons, optimizer):
    X, y = moons
    engine = Natural(optimizer=optimizer)
    clf = GPClassifier(n_inducing=15, inference=engine, random_state=0, max_epochs=15)
    assert clf.fit(X, y).score(X, y) > 0.85


def test_stochastic_steps_come_near_the_full_batch(moons):
    X, y = moons
    settings = {"n_inducing": 15, "random_state": 0}
    full = GPClassifier(**settings, inference=FIXED).fit(X, y)
    engine = Natural(optimizer=None, batch_size=30)
    batches = GPClassifier(**settings, inference=engine, max_epochs=40).fit(X, y)
    np.testing.assert_allclose(batches.predict_proba(X), full.predict_proba(X), atol=0.08)


def test_a_long_epoch_is_heard_of_while_it_runs(moons, monkeypatch):
    monkeypatch.setattr(epochs, "ROWS_PER_NOTE", 60)
    lines = []
    engine = Natural(optimizer=None, batch_size=24)
    settings = {"n_inducing": 15, "inference": engine, "max_epochs": 2}
    clf = GPClassifier(**settings, random_state=0, callback=lines.append).fit(*moons)
    assert len(lines) == 2 * 3  # of five batches: after the second, the fourth and the last
    shares = [line._line.share for line in lines]
    np.testing.assert_allclose(shares, [0.2, 0.4, 0.5, 0.7, 0.9, 1.0])
    assert np.all(np.isfinite(clf.history_["elbo"]))


def test_a_line_of_epochs_is_the_bound_of_its_own_epoch(moons):
    engine = Natural(optimizer=None, batch_size=40)
    clf = GPClassifier(n_inducing=15, inference=engine, max_epochs=3, random_state=0).fit(*moons)
    assert len(clf.history_["elbo"]) == 3
    np.testing.assert_allclose(clf.history_["elbo"][-1] * len(moons[1]), clf.elbo_, rtol=1e-12)


def test_callback_sees_the_fit_and_its_time_does_not_count(moons, monkeypatch):
    X, y = moons
    seen, clock, away = [], time.perf_counter, 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + away)

    def callback(snapshot):
        nonlocal away
        away += 1e5  # it takes a day
        seen.append((snapshot.seconds, snapshot.predict_log_proba(X)))

    clf = GPClassifier(**QUICK, callback=callback).fit(X, y)
    assert [seconds for seconds, _ in seen] == clf.history_["seconds"].tolist()
    assert clf.history_["seconds"][-1] < 1e5
    np.testing.assert_allclose(seen[-1][1], clf.predict_log_proba(X), atol=1e-4)


def test_a_fitted_classifier_can_be_copied_pickled_and_cloned(fitted, iris):
    X, _ = iris
    whole = fitted.predict_proba(X)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert np.array_equal(other.predict_proba(X), whole)
    assert not hasattr(clone(fitted), "classes_")


@pytest.mark.slow
def test_robust_max_converges_where_natural_gradients_are_known_to_fail():
    """Digits, 100 inducing points, batches of 256, rate 0.1: there GPflow gives NaN."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 10], order[len(y) // 10 :]
    clf = GPClassifier(
        "robust-max",
        n_inducing=100,
        inference=Natural(batch_size=256, learning_rate=0.1, optimizer="adam"),
        max_epochs=50,
        random_state=0,
    ).fit(X[train], y[train])
    elbo = clf.history_["elbo"]
    assert np.all(np.isfinite(elbo))
    assert np.ptp(elbo[-10:]) < 0.05  # settled, up to the noise of batches
    assert -np.mean(clf.predict_log_proba(X[test])[np.arange(len(test)), y[test]]) < 0.07


@pytest.mark.parametrize("optimizer", ["auto", None])
@pytest.mark.parametrize("likelihood", ["robust-max", "step"])
def test_no_class_is_lost(likelihood, optimizer):
    """Their gradient vanishes where a class cannot win: one given up early never comes back."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:800]
    X, y = X[rows], y[rows]
    engine = Natural(optimizer=optimizer)
    clf = GPClassifier(
        likelihood, n_inducing=60, max_epochs=10, inference=engine, random_state=1
    ).fit(X, y)
    recalled = np.array([np.mean(clf.predict(X[y == k]) == k) for k in range(10)])
    assert np.all(recalled > 0.8), recalled


def test_jax_is_left_as_it_was(fitted):
    assert jnp.array(1.0).dtype == jnp.float32
    code = (
        "import gpclf, jax.numpy as jnp, numpy as np; print(jnp.array(1.0).dtype);"
        "gpclf.GPClassifier(n_inducing=4, max_epochs=2).fit(np.eye(8), np.arange(8) % 2);"
        "print(jnp.array(1.0).dtype)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert done.stdout.split() == ["float32", "float32"], done.stderr
    assert done.stderr == ""


def test_nothing_is_compiled_again(moons, traces):
    """A second fit of the same shapes, and predictions of other lengths, trace nothing."""
    X, y = moons
    clf = GPClassifier(**QUICK).fit(X, y)
    clf.predict_proba(X[:3]), clf.predict_proba(X)
    traces.clear()
    GPClassifier(**QUICK).fit(X, y)
    for rows in (1, 7, 64, 65, 110):
        clf.predict_proba(X[:rows])
    assert not traces


def test_predictions_of_any_length_compile_at_most_twice(iris, traces):
    X, y = iris
    clf = GPClassifier(n_inducing=13, inference=FIXED, max_epochs=1).fit(X, y)  # a shape of its own
    traces.clear()
    for rows in (1, 7, 1000, 100_000):
        clf.predict_proba(np.resize(X, (rows, 4)))
    assert 1 <= traces.count("_log_probabilities_program") <= 2


@pytest.mark.parametrize(
    ("case", "likelihood"),
    [(case, "auto") for case in sorted(BAD)]
    + [("zeros beside heavy tails", name) for name in sorted(NAMES)]
    + [(case, "robust-max") for case in ("one row per class", "all rows equal", "wild scales")],
)
def test_difficult_data_give_finite_probabilities(case, likelihood):
    X, y = BAD[case]
    clf = GPClassifier(likelihood, max_epochs=5, random_state=0).fit(X, y)  # also: N < M
    probabilities = clf.predict_proba(X)
    assert np.all(np.isfinite(probabilities))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-9)


X6, Y6 = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]


def _with(row, column, value):
    X = X6.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (X6, [1] * 6, "y has 1 class only"),
        (_with(4, 1, -np.inf), Y6, r"infinity in row 4, column 1 \(1 such"),
        (_with(2, 0, np.inf), Y6, "infinity in row 2, column 0"),
        (X6, [0, 1, np.nan, 1, 0, 1], "missing label in row 2"),
        (X6, ["a", "b", None, "a", "b", "a"], "missing label in row 2"),
        (X6, [0.5, 1.7, 0.1, 0.2, 0.3, 0.4], "[Cc]ontinuous"),
        (X6[:1], Y6[:1], "minimum of 2 is required"),
        (X6, Y6[:5], "inconsistent numbers of samples"),
    ],
)
def test_bad_data_get_one_sentence(X, y, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        GPClassifier().fit(X, y)
    assert "\n" not in str(error.value).strip()


def test_a_wrong_width_at_prediction_gets_one_sentence(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but GPClassifier is expecting 4"):
        fitted.predict_proba(np.zeros((2, 3)))


def test_a_class_without_weight_is_named():
    with pytest.raises(ValueError, match="Every row of class 1 has weight 0"):
        GPClassifier().fit(X6, Y6, sample_weight=[1, 0, 1, 0, 1, 0])


def test_the_bound_increases_with_training(moons):
    start = GPClassifier(n_inducing=15, inference=FIXED, random_state=0).fit(*moons)
    assert GPClassifier(**QUICK).fit(*moons).elbo_ > start.elbo_


def test_random_starts_do_not_change_the_classes(iris):
    X, y = iris
    predictions = [
        GPClassifier(n_inducing=15, max_epochs=20, random_state=seed).fit(X, y).predict(X)
        for seed in range(3)
    ]
    for other in predictions[1:]:
        assert np.mean(other == predictions[0]) > 0.97


def test_many_classes():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 12
    X = 6 * rng.normal(size=(12, 3))[y] + rng.normal(size=(240, 3))
    clf = GPClassifier(n_inducing=40, max_epochs=8, random_state=0).fit(X, y)
    assert clf.predict_proba(X).shape == (240, 12)
    assert clf.score(X, y) > 0.9


def test_read_only_and_mapped_rows_are_as_good_as_others(fitted, iris, tmp_path):
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    locked = X.copy()
    locked.flags.writeable = False
    for rows in (mapped, locked):
        clf = GPClassifier(**QUICK).fit(rows, y)
        assert np.array_equal(clf.predict_proba(rows), fitted.predict_proba(X))
