"""Laws of likelihoods that know their log-probability only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truth
from gpclf import GPClassifier
from gpclf.likelihoods import FromLogProb, Logit, Softmax, TwoClass
from gpclf.likelihoods.base import sign
from gpclf.likelihoods.from_log_prob import balanced_nodes


class OwnLogit(FromLogProb, TwoClass):
    def log_prob(self, y, f):
        return jax.nn.log_sigmoid(sign(y, f.dtype) * f[0])


class OwnSoftmax(FromLogProb):
    def n_latent(self, n_classes):
        return n_classes

    def log_prob(self, y, f):
        return jax.nn.log_softmax(f)[y]


class Tempered(OwnLogit):
    """With something to learn."""

    log_scale: jax.Array

    def log_prob(self, y, f):
        return super().log_prob(y, f * jnp.exp(self.log_scale))


BOUND = {kind: jax.jit(kind().bound) for kind in (OwnLogit, OwnSoftmax, Logit)}
GRAD = {kind: jax.jit(jax.grad(kind().bound, argnums=(1, 2))) for kind in BOUND}
SITES = {kind: jax.jit(kind().sites) for kind in BOUND}
LOGS = {kind: jax.jit(kind().log_probabilities) for kind in (*BOUND, Softmax)}
ROWS = {
    count: st.tuples(
        st.integers(0, max(count, 2) - 1),
        st.lists(st.floats(-20, 20), min_size=count, max_size=count),
        st.lists(st.floats(-8, 1).map(lambda e: 10.0**e), min_size=count, max_size=count),
    )
    for count in (1, 3)
}


def _row(draw, dtype=np.float64):
    return jnp.asarray(draw[0]), *(jnp.asarray(part, dtype) for part in draw[1:])


@given(draw=ROWS[1])
def test_with_the_logits_log_probability_it_equals_the_logit(draw):
    with jax.enable_x64(True):
        y, mu, nu = _row(draw)
        own, known = BOUND[OwnLogit](y, mu, nu), BOUND[Logit](y, mu, nu)
        np.testing.assert_allclose(own, known, rtol=1e-6, atol=1e-6)
        for one, other in zip(SITES[OwnLogit](y, mu, nu), SITES[Logit](y, mu, nu), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        own, known = LOGS[OwnLogit](mu, nu), LOGS[Logit](mu, nu)
        np.testing.assert_allclose(own, known, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "count"), [(OwnLogit, 1), (OwnSoftmax, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [-1e3, 0.0, 1e3])
@pytest.mark.parametrize("variance", [1e-12, 1.0, 1e4])
def test_it_is_finite_at_the_extremes(kind, count, dtype, mean, variance, x64):
    y, mu, nu = _row((0, [mean, 1.0, 2.0][:count], [variance, 1.0, 1e-12][:count]), dtype)
    values = (BOUND[kind](y, mu, nu), *SITES[kind](y, mu, nu), LOGS[kind](mu, nu))
    for value in values:
        assert value.dtype == dtype
        assert np.all(np.isfinite(value))


@settings(max_examples=15)
@given(draw=ROWS[3])
def test_with_the_softmaxs_log_probability_the_bound_is_close_to_the_truth(draw):
    with jax.enable_x64(True):
        y, mu, nu = _row(draw)
        sd = np.sqrt(np.asarray(nu))
        exact = mu[y] - truth.Race("softmax", np.asarray(mu), sd).expected_log_sum()
        np.testing.assert_allclose(BOUND[OwnSoftmax](y, mu, nu), exact, atol=5e-3)
        own, known = np.exp(LOGS[OwnSoftmax](mu, nu)), np.exp(LOGS[Softmax](mu, nu))
        np.testing.assert_allclose(own.sum(), 1, rtol=1e-9)
        np.testing.assert_allclose(own, known, atol=0.01)


@pytest.mark.parametrize(("kind", "count"), [(OwnLogit, 1), (OwnSoftmax, 3)])
def test_sites_are_the_gradient_which_equals_finite_differences(kind, count, x64):
    rng = np.random.default_rng(0)
    for _ in range(10):
        y, mu, nu = _row((0, 3 * rng.normal(size=count), 10 ** rng.uniform(-2, 1, count)))
        tau, lam = SITES[kind](y, mu, nu)
        by_mean, by_variance = GRAD[kind](y, mu, nu)
        np.testing.assert_allclose(tau, -2 * by_variance, rtol=1e-9)
        np.testing.assert_allclose(lam, by_mean + tau * mu, rtol=1e-9, atol=1e-12)
        for c in range(count):
            e = 1e-4 * np.eye(count)[c]
            bound = BOUND[kind]
            by_hand = (bound(y, mu + e, nu) - bound(y, mu - e, nu)) / 2e-4
            np.testing.assert_allclose(by_mean[c], by_hand, rtol=1e-5, atol=1e-6)
            up, down = (bound(y, mu, nu * (1 + sign * e)) for sign in (1, -1))
            np.testing.assert_allclose(
                by_variance[c], (up - down) / (2e-4 * nu[c]), rtol=1e-4, atol=1e-5
            )


def test_a_small_variance_beside_large_ones_keeps_its_precision(x64):
    """τ of an almost known function among unknown ones is the expected curvature, not noise."""
    mu, nu = jnp.array([0.3, -0.2, 0.1]), jnp.array([1e-4, 1.0, 1.0])
    tau, _ = SITES[OwnSoftmax](jnp.asarray(0), mu, nu)
    p = jax.nn.softmax(mu + jnp.sqrt(nu) * balanced_nodes(3), axis=1)
    np.testing.assert_allclose(tau[0], jnp.mean(p[:, 0] * (1 - p[:, 0])), rtol=0.05)


def test_what_a_likelihood_has_to_learn_climbs_the_bound(x64):
    y, mu, nu = _row((1, [-0.7], [1.3]))

    def bound(log_scale):
        return Tempered(log_scale).bound(y, mu, nu)

    at = jnp.asarray(0.4)
    by_hand = (bound(at + 1e-5) - bound(at - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(bound)(at), by_hand, rtol=1e-7)
    assert abs(by_hand) > 0.1


def test_second_derivatives_are_those_of_the_expectation(x64):
    mean, variance = jnp.array([-0.7]), jnp.array([1.3])
    for y in (0, 1):
        own, known = (
            jax.hessian(kind().bound, argnums=1)(jnp.asarray(y), mean, variance)
            for kind in (OwnLogit, Logit)
        )
        np.testing.assert_allclose(own, known, rtol=1e-5)


@pytest.mark.parametrize("inference", ["natural", "power-ep"])
def test_a_classifier_with_it_is_the_one_with_the_known_likelihood(inference):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    own = {"n_inducing": 10, "max_epochs": 20, "random_state": 0, "inference": inference}
    own, known = (GPClassifier(kind(), **own).fit(X, y) for kind in (OwnLogit, Logit))
    np.testing.assert_allclose(own.elbo_, known.elbo_, rtol=1e-3)
    np.testing.assert_allclose(own.predict_proba(X), known.predict_proba(X), atol=5e-3)


def test_several_functions_learn():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + 2 * rng.normal(size=(3, 2))[y]
    own = {"n_inducing": 10, "max_epochs": 20, "random_state": 0, "inference": "natural"}
    own, known = (GPClassifier(kind(), **own).fit(X, y) for kind in (OwnSoftmax, Softmax))
    np.testing.assert_allclose(own.predict_proba(X), known.predict_proba(X), atol=0.05)
