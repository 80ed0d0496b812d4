"""Laws of the latent functions at several rows together, and of the bound row by row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gpclf import GPClassifier, posterior
from gpclf.estimators import parameters
from gpclf.inference.engines import Decoupled

COMMON = {"n_inducing": 8, "max_epochs": 8, "random_state": 0, "inference": "natural"}
FITS = {
    "two classes": (2, {"scaling": "standard"}),  # so that far away is far for the kernel, too
    "three classes": (3, {}),
    "kernels and points of their own": (3, {"share": "none"}),
    "kernels of their own": (3, {"share": "points"}),
    "points of their own": (3, {"share": "kernel"}),
    "decoupled": (2, {"inference": Decoupled(n_mean=6)}),
    "single precision": (2, {"precision": "mixed"}),
}


def _table(n_classes, rows=60):
    rng = np.random.default_rng(0)
    y = np.arange(rows) % n_classes
    return rng.normal(size=(rows, 2)) * [1, 10] + 2 * rng.normal(size=(n_classes, 2))[y], y


@pytest.fixture(scope="module")
def fits():
    return {
        name: GPClassifier(**(COMMON | own)).fit(*_table(n_classes))
        for name, (n_classes, own) in FITS.items()
    }


def _stacked(clf, X):
    covariance = clf.latent_covariance(X)
    return covariance if covariance.ndim == 3 else covariance[None]


@pytest.mark.parametrize("name", FITS)
def test_the_diagonal_of_the_covariance_is_the_variance(fits, name):
    X, _ = _table(3, 20)
    _, variance = fits[name].latent_mean_and_variance(X)
    diagonal = np.diagonal(fits[name].latent_covariance(X), axis1=-2, axis2=-1)
    close = 1e-3 if name == "single precision" else 1e-7
    np.testing.assert_allclose(diagonal.T, variance, rtol=close, atol=close)


@pytest.mark.parametrize("name", FITS)
def test_a_covariance_is_symmetric_positive_and_follows_the_order_of_rows(fits, name):
    X, _ = _table(3, 20)
    X[7] = X[3]
    covariances = _stacked(fits[name], X)
    order = np.random.default_rng(1).permutation(20)
    changed = _stacked(fits[name], X[order])
    for own, again in zip(covariances, changed, strict=True):
        assert np.array_equal(own, own.T)
        values = np.linalg.eigvalsh(own)
        assert values.min() >= -1e-9 * values.max()
        np.testing.assert_allclose(again, own[np.ix_(order, order)], atol=1e-9)
        assert np.abs(own[7, 3] - own[3, 3]) < 1e-6 * own[3, 3]


def test_far_from_all_rows_the_covariance_is_the_kernel(fits):
    clf = fits["two classes"]
    X = np.array([[1e3, 0.0], [1e3 + 0.5, 0.0], [1e3, 4.0]])
    with jax.enable_x64(True):
        scaled = jnp.asarray(clf._scaling.forward(X))
        exact = np.array([[float(clf.kernel_(x, y)) for y in scaled] for x in scaled])
    np.testing.assert_allclose(clf.latent_covariance(X), exact, rtol=1e-5)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_samples_have_the_mean_and_covariance(fits, name):
    clf = fits[name]
    X, _ = _table(3, 6)
    count = 20_000
    samples = clf.sample_latent(X, count, random_state=0)
    mean, variance = clf.latent_mean_and_variance(X)
    assert samples.shape == (count, *mean.shape)
    assert np.all(np.abs(samples.mean(axis=0) - mean) < 5 * np.sqrt(variance / count))
    for c, own in enumerate(_stacked(clf, X)):
        of_one = samples.reshape(count, 6, -1)[:, :, c]
        np.testing.assert_allclose(np.cov(of_one.T), own, atol=0.05 * own.max())


def test_the_same_seed_gives_the_same_samples(fits):
    X, _ = _table(2, 6)
    clf = fits["two classes"]
    one, again, other = (clf.sample_latent(X, 3, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.allclose(one, other)
    assert clf.sample_latent(X).shape == (1, 6)


def test_too_many_rows_or_no_samples_are_refused(fits, monkeypatch):
    monkeypatch.setattr(parameters, "MOST_JOINT", 75)
    X, _ = _table(3, 6)
    with pytest.raises(ValueError, match=r"X has 6 rows, but the covariances .* up to 5:"):
        fits["three classes"].latent_covariance(X)
    fits["three classes"].latent_covariance(X[:5])
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        fits["two classes"].sample_latent(X, 0)
    for method in ("latent_covariance", "sample_latent"):
        with pytest.raises(NotFittedError):
            getattr(GPClassifier(), method)(X)


@pytest.mark.parametrize("name", FITS)
def test_the_bounds_of_the_training_rows_less_the_divergence_are_the_elbo(fits, name):
    clf = fits[name]
    X, y = _table(FITS[name][0])
    bounds = clf.expected_log_likelihood(X, y)
    assert bounds.shape == (60,)
    close = 1e-3 if name == "single precision" else 1e-6
    np.testing.assert_allclose(bounds.sum() - clf.kl_divergence(), clf.elbo_, rtol=close)


def test_weights_multiply_bounds():
    X, y = _table(2)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    clf = GPClassifier(**COMMON).fit(X, y, sample_weight=weight)
    total = weight @ clf.expected_log_likelihood(X, y) - clf.kl_divergence()
    np.testing.assert_allclose(total, clf.elbo_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["latent", "amortised", "augment", "first-order"])
def test_with_errors_of_the_inputs_too(kind):
    X, y = _table(2)
    std = np.random.default_rng(1).uniform(0.1, 0.5, X.shape)
    clf = GPClassifier(input_noise=kind, precision="double", **COMMON).fit(X, y, X_std=std)
    total = clf.expected_log_likelihood(X, y, std).sum() - clf.kl_divergence()
    close = 1e-5 if kind == "first-order" else 1e-3  # `elbo_` is on nodes of its own
    np.testing.assert_allclose(total, clf.elbo_, rtol=close)
    usual = np.broadcast_to(np.median(std, axis=0), X.shape)
    expected = clf.expected_log_likelihood(X, y, usual)
    for same in (None, usual[0]):
        np.testing.assert_allclose(clf.expected_log_likelihood(X, y, same), expected, rtol=1e-9)


def test_a_row_has_its_bound_whatever_rows_are_beside_it(fits, monkeypatch):
    clf = fits["three classes"]
    X, y = _table(3)
    whole = clf.expected_log_likelihood(X, y)
    monkeypatch.setattr(posterior, "BOUND_ROWS", 16)
    order = np.random.default_rng(1).permutation(60)
    np.testing.assert_allclose(clf.expected_log_likelihood(X[order], y[order]), whole[order])
    one = clf.expected_log_likelihood(X[:1], y[:1])
    np.testing.assert_allclose(one, whole[:1])


def test_labels_or_errors_that_the_fit_did_not_know_are_refused(fits):
    X, y = _table(2)
    with pytest.raises(ValueError, match="y has label 7"):
        fits["two classes"].expected_log_likelihood(X, 7 * y)
    with pytest.raises(ValueError, match="X_std is given, but the first rows were learned from"):
        fits["two classes"].expected_log_likelihood(X, y, 0.1)
    with pytest.raises(NotFittedError):
        GPClassifier().expected_log_likelihood(X, y)
