"""Predictions of inputs with errors: all that a classifier tells integrates over where a row is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gpclf import GPClassifier
from gpclf.active import Learner
from gpclf.inputs import FirstOrder, Latent

pytestmark = pytest.mark.usefixtures("few_places")
QUICK = {"kernel": "rbf", "n_inducing": 12, "max_epochs": 8, "random_state": 0}
LONGER = {**QUICK, "max_epochs": 12}
KINDS = ("latent", "amortised", "first-order", "augment", "parametric", "resample")


def noisy(rows=60, classes=2, seed=0):
    """Rows of a line, or a plane, as measured, their classes, and the sizes of their errors."""
    rng = np.random.default_rng(seed)
    true = rng.uniform(-2, 2, (rows, classes - 1))
    std = rng.uniform(0.1, 0.8, true.shape)
    y = (true > 0).sum(axis=1)
    return true + std * rng.normal(size=true.shape), y, std


def on_a_line():
    """Two classes, symmetric about 0, and no errors yet."""
    x = np.linspace(-2, 2, 80)
    return x[:, None], (x > 0).astype(int)


def entropy(p):
    return -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1)


@pytest.fixture(scope="module")
def fitted():
    X, y, std = noisy()
    return GPClassifier(input_noise=Latent(count=8), **QUICK).fit(X, y, X_std=std)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_uncertainty_agree_with_the_probabilities(kind):
    X, y, std = noisy()
    clf = GPClassifier(input_noise=kind, **QUICK).fit(X, y, X_std=std)
    for given in ({}, {"X_std": std}):
        found = clf.uncertainty(X, **given)
        np.testing.assert_allclose(
            found.total, entropy(clf.predict_proba(X, **given)), rtol=1e-6, atol=1e-9
        )
        assert np.all(found.data >= 0)
        assert np.all(found.model >= 0)
        np.testing.assert_allclose(found.total, found.data + found.model, rtol=1e-6)


def test_without_an_error_uncertainty_is_that_of_the_row_as_measured(fitted):
    X, _, _ = noisy()
    exact = fitted.uncertainty(X, X_std=0)
    np.testing.assert_allclose(exact.total, entropy(fitted.predict_proba(X, X_std=0)), atol=1e-9)
    tiny = fitted.uncertainty(X, X_std=1e-9)
    for one, other in zip(exact, tiny, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    p, std = fitted.predict_proba(X, X_std=0, return_std=True)
    near, near_std = fitted.predict_proba(X, X_std=1e-9, return_std=True)
    np.testing.assert_allclose(p, near, atol=1e-5)
    np.testing.assert_allclose(std, near_std, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_part_is_the_mean_of_that_at_the_places_where_a_row_may_be(classes):
    X, y, _ = noisy(classes=classes)
    clf = GPClassifier(scaling="standard", **QUICK).fit(X, y)  # what is bent makes errors uneven
    rng = np.random.default_rng(1)
    for row, error in ((X[:1], 0.3), (X[1:2], 1.0)):
        where = row + error * rng.normal(size=(3000, X.shape[1]))
        there, (_, std) = clf.uncertainty(where), clf.predict_proba(where, return_std=True)
        found = clf.uncertainty(row, X_std=error)
        assert found.model[0] == pytest.approx(there.model.mean(), rel=0.1)
        of_probability = clf.predict_proba(row, return_std=True, X_std=error)[1]
        np.testing.assert_allclose(of_probability[0], np.sqrt(np.mean(std**2, axis=0)), rtol=0.1)


@pytest.mark.parametrize("by", ["entropy", "bald", "margin"])
def test_queries_see_the_errors_of_rows(fitted, by):
    """Of rows measured alike, by entropy and margin the vague one has the least known class."""
    X = np.full((4, 1), 0.6)
    std = np.array([[0.0], [1.5], [0.05], [0.4]])
    order = fitted.most_uncertain(X, 4, by, X_std=std)
    if by != "bald":
        np.testing.assert_array_equal(order, [1, 3, 2, 0])
    parts = [fitted.most_uncertain(X, 4, by, X_std=std[list(o)]) for o in ([1, 0, 2, 3],)]
    np.testing.assert_array_equal(np.array([1, 0, 2, 3])[parts[0]], order)


def test_a_learner_asks_with_the_errors_of_its_rows():
    X, y, std = noisy()
    learner = Learner(GPClassifier(**QUICK), X, X_std=std, random_state=0)
    first = np.arange(20)
    learner.label(first, y[first])
    free = np.arange(20, len(X))
    expected = learner.classifier_.most_uncertain(X[free], 5, X_std=std[free])
    np.testing.assert_array_equal(learner.query(5), free[expected])
    usual = learner.classifier_.most_uncertain(X[free], 5)
    assert not np.array_equal(expected, usual)  # else this test could not fail


def test_a_snapshot_predicts_as_the_classifier_would():
    X, y, std = noisy()
    seen = []

    def look(snapshot):
        seen.append((snapshot.predict_log_proba(X), snapshot.predict_log_proba(X, X_std=std)))

    clf = GPClassifier(input_noise=Latent(count=8), callback=look, **QUICK).fit(X, y, X_std=std)
    usual, given = seen[-1]
    np.testing.assert_allclose(usual, clf.predict_log_proba(X), atol=1e-6)
    np.testing.assert_allclose(given, clf.predict_log_proba(X, X_std=std), atol=1e-6)


def test_rows_kept_apart_are_judged_with_their_own_errors(monkeypatch):
    from gpclf.estimators import callbacks

    X, y, std = noisy()
    true, errors = callbacks.log_probabilities, []

    def spy(posterior, rows, std=None):
        errors.append((rows, std))
        return true(posterior, rows, std)

    monkeypatch.setattr(callbacks, "log_probabilities", spy)
    clf = GPClassifier(input_noise=Latent(count=8), early_stopping=True, **QUICK)
    clf.fit(X, y, X_std=std)
    assert errors
    for rows, given in errors:
        measured = clf._scaling.backward(rows)
        own = np.array([std[np.argmin(np.abs(X[:, 0] - x)), 0] for x in measured[:, 0]])
        np.testing.assert_allclose(given[:, 0] * clf._scaling.spread[0], own, rtol=1e-6)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_errors_are_routed_through_cross_validation(routing):
    X, y, std = noisy()
    clf = GPClassifier(input_noise=Latent(count=8), **QUICK)
    clf.set_fit_request(X_std=True).set_score_request(X_std=True)
    folds = KFold(2, shuffle=True, random_state=0)
    found = cross_validate(clf, X, y, cv=folds, params={"X_std": std}, return_estimator=True)
    by_hand = []
    splits = zip(folds.split(X), found["estimator"], strict=True)
    for (train, test), routed in splits:
        own = GPClassifier(input_noise=Latent(count=8), **QUICK)
        own.fit(X[train], y[train], X_std=std[train])
        np.testing.assert_array_equal(own.input_noise_std_, routed.input_noise_std_)
        by_hand.append(own.score(X[test], y[test], X_std=std[test]))
        predicted = own.predict(X[test], X_std=std[test])
        assert by_hand[-1] == accuracy_score(y[test], predicted)
    np.testing.assert_array_equal(found["test_score"], by_hand)


def test_errors_are_routed_through_a_pipeline(routing):
    X, y, std = noisy()
    clf = GPClassifier(input_noise=Latent(count=8), **QUICK)
    for ask in (clf.set_fit_request, clf.set_predict_request, clf.set_predict_proba_request):
        ask(X_std=True)
    pipeline = make_pipeline(FunctionTransformer(), clf).fit(X, y, X_std=std)
    alone = GPClassifier(input_noise=Latent(count=8), **QUICK).fit(X, y, X_std=std)
    probabilities = alone.predict_proba(X, X_std=std)
    np.testing.assert_array_equal(pipeline.predict_proba(X, X_std=std), probabilities)
    np.testing.assert_array_equal(pipeline.predict(X, X_std=std), alone.predict(X, X_std=std))


def test_a_score_weighs_rows_and_takes_their_errors(fitted):
    X, y, std = noisy()
    weight = np.random.default_rng(0).uniform(size=len(y))
    for given in ({}, {"X_std": std}, {"X_std": 0}):
        expected = accuracy_score(y, fitted.predict(X, **given), sample_weight=weight)
        assert fitted.score(X, y, weight, **given) == expected


@pytest.mark.parametrize("classes", [2, 3])
def test_the_first_order_predictive_adds_the_slope_of_the_mean_to_the_variance(classes, tmp_path):
    X, y, std = noisy(classes=classes)
    inputs = FirstOrder(predictive="first-order")
    clf = GPClassifier(input_noise=inputs, precision="double", **QUICK).fit(X, y, X_std=std)
    exact, tiny = (clf.predict_proba(X, X_std=error) for error in (0, 1e-9))
    np.testing.assert_allclose(tiny, exact, atol=1e-7)
    mean, variance = (np.reshape(a, (len(X), -1)) for a in clf.latent_mean_and_variance(X))
    for d, step in enumerate(1e-5 * np.eye(X.shape[1])):
        ahead, behind = (clf.latent_mean_and_variance(X + s)[0] for s in (step, -step))
        slope = np.reshape(ahead - behind, (len(X), -1)) / 2e-5
        variance = variance + (slope * std[:, d : d + 1]) ** 2
    with jax.enable_x64(True):
        each = jax.jit(jax.vmap(clf.likelihood_.log_probabilities))
        logs = each(jnp.array(mean), jnp.array(variance))
    found = clf.predict_log_proba(X, X_std=std)
    np.testing.assert_allclose(found, jax.nn.log_softmax(np.asarray(logs)), atol=1e-5)
    clf.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_log_proba(X, X_std=std), found)
    by_nodes = GPClassifier(input_noise=FirstOrder(), precision="double", **QUICK)
    by_nodes.fit(X, y, X_std=std)
    assert np.abs(by_nodes.predict_proba(X, X_std=std) - np.exp(found)).max() > 1e-3


def test_a_predictive_that_is_none_gets_one_sentence():
    with pytest.raises(ValueError, match="predictive must be one of 'nodes', 'first-order'"):
        FirstOrder(predictive="some")


def test_predictions_are_the_mean_over_where_a_row_may_be():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (90, 2))
    y = np.where(X[:, 0] > 0.5, 2, np.where(X[:, 1] > 0, 1, 0))
    clf = GPClassifier("robust-max", scaling="standard", **LONGER).fit(X, y)
    nodes = np.linspace(-5, 5, 201)  # boundaries are sharp
    places = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    weights = np.exp(-0.5 * np.sum(places**2, axis=1))
    weights /= weights.sum()
    for row, std in ((X[0], [0.3, 0.6]), (X[1], [0.8, 0.0]), (np.array([0.5, 0.0]), [0.2, 0.2])):
        exact = weights @ clf.predict_proba(row + places * std)
        found = clf.predict_proba(row[None], X_std=[std])[0]
        np.testing.assert_allclose(found, exact, atol=3e-3)


def test_errors_at_prediction():
    X, y = on_a_line()
    fitted = GPClassifier(**LONGER).fit(X, y, X_std=0.2)
    assert fitted.input_noise_std_ == pytest.approx([0.2])
    near = np.array([[0.3]])
    usual = fitted.predict_proba(near)
    np.testing.assert_array_equal(fitted.predict_proba(near, X_std=0.2), usual)
    exact, wide = (fitted.predict_proba(near, X_std=s)[0, 1] for s in (0, 1.0))
    assert exact > usual[0, 1] > wide > 0.5


def test_units_do_not_matter():
    X, y = on_a_line()
    std = np.random.default_rng(0).uniform(0.05, 0.3, X.shape)
    double = {"precision": "double", **LONGER}  # rounding has a law of its own
    plain = GPClassifier(**double).fit(X, y, X_std=std)
    scaled = GPClassifier(**double).fit(1e-9 * X + 7e-9, y, X_std=1e-9 * std)
    np.testing.assert_allclose(
        scaled.predict_proba(1e-9 * X + 7e-9, X_std=1e-9 * std),
        plain.predict_proba(X, X_std=std),
        atol=1e-4,
    )
