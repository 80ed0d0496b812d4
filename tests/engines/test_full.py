"""The full process, Z = X: equal to the dense one, written here in f itself and in NumPy alone."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from gpclf import GPClassifier
from gpclf.inference import engines
from gpclf.kernels import RBF

LENGTHSCALE, VARIANCE = 1.1, 2.5


@pytest.fixture(scope="module")
def moons():
    return make_moons(70, noise=0.3, random_state=0)


def _kernel(X, Y):
    squared = np.sum((X[:, None] - Y[None]) ** 2, axis=2)
    return VARIANCE * np.exp(-0.5 * squared / LENGTHSCALE**2)


def _dense(X, sign, weight, places):
    """Coordinate ascent of Wenzel et al. (2018) on q(f) = N(mean, S): ELBO, and f at places.

    τ = tanh(c/2)/(2c), c² = E f²; S = (K⁻¹ + diag wτ)⁻¹ = K − KT^½B⁻¹T^½K, B = I + T^½KT^½.
    """
    K, eye = _kernel(X, X), np.eye(len(X))
    tau = np.full(len(X), 0.25)
    for _ in range(500):
        root = np.sqrt(weight * tau)
        B = eye + root[:, None] * K * root
        S = K - K * root @ np.linalg.solve(B, root[:, None] * K)
        mean = S @ (0.5 * weight * sign)
        c = np.sqrt(mean**2 + np.diag(S))
        tau = np.tanh(c / 2) / (2 * c)
    bound = weight @ (0.5 * sign * mean - c / 2 - np.log1p(np.exp(-c)))
    alpha = 0.5 * weight * sign - weight * tau * mean  # K⁻¹mean, for S of these τ
    trace = np.trace(np.linalg.solve(B, eye))
    kl = 0.5 * (trace - len(X) + mean @ alpha + np.linalg.slogdet(B)[1])
    near = _kernel(places, X)
    half = np.linalg.solve(np.linalg.cholesky(B), root[:, None] * near.T)
    return bound - kl, near @ alpha, VARIANCE - np.sum(half**2, axis=0)


@pytest.mark.parametrize("kind", [engines.Natural, engines.Gradient, engines.Decoupled])
def test_it_equals_a_dense_process_written_without_the_library(moons, kind):
    X, y = moons
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    clf = GPClassifier(
        "logit-pg", RBF(LENGTHSCALE, VARIANCE), n_inducing=None, inference=kind(optimizer=None),
        tol=1e-15, max_epochs=2000, random_state=0, scaling="standard",
    ).fit(X, y, weight)  # fmt: skip
    rows = clf._scaling.forward(X)
    places = rows[:20] + 0.3
    elbo, mean, variance = _dense(rows, 2.0 * y - 1, weight, places)
    np.testing.assert_allclose(clf.elbo_, elbo, rtol=1e-6)
    scale, shift = clf._scaling.forward(np.eye(2)), clf._scaling.forward(np.zeros((1, 2)))
    back = (places - shift) / np.diag(scale - shift)
    found = clf.latent_mean_and_variance(back)
    tolerance = (
        1e-6 if kind is not engines.Gradient else 2e-5
    )  # the bound is flat where it is highest
    np.testing.assert_allclose(found[0], mean, atol=tolerance)
    np.testing.assert_allclose(found[1], variance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(set(engines.NAMES) - {"auto"}))
def test_as_many_points_as_rows_are_the_full_process(moons, name):
    X, y = moons
    settings = {"inference": engines.NAMES[name](optimizer=None), "random_state": 0}
    full = GPClassifier("probit", n_inducing=None, **settings).fit(X, y)
    sparse = GPClassifier("probit", n_inducing=len(X), **settings).fit(X, y)
    assert full.inducing_points_.shape[0] == len(X)
    np.testing.assert_allclose(sparse.elbo_, full.elbo_, rtol=1e-6)
    np.testing.assert_allclose(sparse.predict_proba(X), full.predict_proba(X), rtol=1e-6)


def test_too_many_rows_get_one_sentence_that_says_what_to_do():
    X = np.random.default_rng(0).normal(size=(5001, 2))
    with pytest.raises(ValueError, match='up to 5,000 rows: use n_inducing="auto"') as error:
        GPClassifier(n_inducing=None).fit(X, np.arange(5001) % 2)
    assert "\n" not in str(error.value)
