"""Laws of likelihoods: every one runs on every likelihood of cases.py."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy import integrate
from scipy.special import log_expit

import cases
from gpclf.likelihoods import likelihood_from
from gpclf.likelihoods.logit import expected_log_sigmoid
from gpclf.likelihoods.logit_pg import log_two_cosh_half, pg_mean
from gpclf.likelihoods.softmax import tilt

ALL = pytest.mark.parametrize("name", sorted(cases.LIKELIHOODS))

MEANS = st.floats(-1e3, 1e3) | st.floats(-5, 5) | st.just(0.0)
VARIANCES = st.floats(-12, 4).map(lambda e: 10.0**e)
GRID = st.tuples(
    st.integers(0, 3), st.lists(MEANS, min_size=4, max_size=4),
    st.lists(VARIANCES, min_size=4, max_size=4),
)  # fmt: skip


def _case(name, draw, dtype=np.float64):
    likelihood, n_classes = cases.LIKELIHOODS[name]
    n_latent = likelihood.n_latent(n_classes)
    y, mu, nu = draw
    return (
        likelihood,
        jnp.asarray(y % n_classes),
        jnp.asarray(mu[:n_latent], dtype),
        jnp.asarray(nu[:n_latent], dtype),
    )


_JITTED: dict = {}


def _jit(name, method):
    """Compiled once per likelihood and method, not once per example."""
    if (name, method) not in _JITTED:
        function = getattr(cases.LIKELIHOODS[name][0], method.removeprefix("grad "))
        if method.startswith("grad "):
            function = jax.grad(function, argnums=(1, 2))
        _JITTED[name, method] = jax.jit(function)
    return _JITTED[name, method]


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(draw=GRID)
def test_values_sites_and_gradients_are_finite_everywhere(name, dtype, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case(name, draw, dtype)
        assert np.isfinite(_jit(name, "bound")(y, mu, nu))
        for part in (*_jit(name, "sites")(y, mu, nu), *_jit(name, "grad bound")(y, mu, nu)):
            assert part.dtype == dtype
            assert np.all(np.isfinite(part))
        assert np.all(np.isfinite(_jit(name, "log_probabilities")(mu, nu)))


@ALL
@given(draw=GRID)
def test_sites_are_the_gradient_of_the_bound(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case(name, draw)
        tau, lam = _jit(name, "sites")(y, mu, nu)
        by_mean, by_variance = _jit(name, "grad bound")(y, mu, nu)
        np.testing.assert_allclose(tau, -2 * by_variance, rtol=1e-6, atol=1e-9)
        scale = 1 + np.max(np.abs(tau * mu))
        np.testing.assert_allclose(lam, by_mean + tau * mu, rtol=1e-6, atol=1e-9 * scale)


@ALL
@given(draw=GRID)
def test_gradients_equal_finite_differences(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case(name, draw)
        mu, nu = jnp.clip(mu, -20, 20), jnp.clip(nu, 1e-3, 20)
        bound = _jit(name, "bound")
        by_mean, by_variance = _jit(name, "grad bound")(y, mu, nu)
        for c in range(len(mu)):
            for point, gradient, step in ((mu, by_mean, 1e-4), (nu, by_variance, 1e-4 * nu[c])):

                def moved(by, point=point, c=c):
                    there = point.at[c].add(by)
                    return bound(y, there, nu) if point is mu else bound(y, mu, there)

                numeric = (moved(step) - moved(-step)) / (2 * step)
                # `logit` integrates value and gradient with separate rules, each good to 1e-6
                np.testing.assert_allclose(numeric, gradient[c], rtol=1e-3, atol=2e-4)


@ALL
@given(draw=GRID)
def test_at_zero_variance_the_bound_is_the_log_probability(name, draw):
    with jax.enable_x64(True):
        likelihood, y, mu, nu = _case(name, draw)
        bound = _jit(name, "bound")(y, mu, jnp.full_like(nu, 1e-12))
        truth = likelihood.log_prob(y, mu)
        np.testing.assert_allclose(bound, truth, rtol=1e-7, atol=1e-6)


def _expected_log_prob(likelihood, y, mu, nu):
    """E log p(y | f): adaptive for one function, a product rule for several."""
    mu, sd = np.asarray(mu), np.sqrt(np.asarray(nu))
    if len(mu) == 1:
        s, m, d = 2 * int(y) - 1, mu[0], sd[0]
        points = np.unique(np.clip([-40.0, -5.0, 0.0, 5.0, 40.0, m], m - 12 * d, m + 12 * d))
        edges = np.unique(np.concatenate([[m - 12 * d], points, [m + 12 * d]]))

        def integrand(f):
            return log_expit(s * f) * np.exp(-0.5 * ((f - m) / d) ** 2) / (d * np.sqrt(2 * np.pi))

        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        )
    x, w = hermegauss(16)
    grid = np.stack(np.meshgrid(*[x] * len(mu), indexing="ij"), -1).reshape(-1, len(mu))
    weight = np.prod(np.stack(np.meshgrid(*[w / w.sum()] * len(mu), indexing="ij"), -1), -1)
    f = mu + sd * grid
    return float(weight.ravel() @ (f[:, int(y)] - np.logaddexp.reduce(f, axis=1)))


@ALL
@given(draw=GRID)
def test_the_bound_never_exceeds_the_truth(name, draw):
    with jax.enable_x64(True):
        likelihood, y, mu, nu = _case(name, draw)
        if len(mu) > 1:  # what the product rule resolves to 1e-8
            mu, nu = jnp.clip(mu, -8, 8), jnp.minimum(nu, 0.5)
        bound = float(_jit(name, "bound")(y, mu, nu))
        truth = _expected_log_prob(likelihood, y, mu, nu)
        if name in cases.EXACT:
            tolerance = 1e-5 if nu[0] <= 25 else 1e-3
            np.testing.assert_allclose(bound, truth, rtol=1e-6, atol=tolerance)
        else:
            assert bound <= truth + 1e-8 * (1 + abs(truth))


@ALL
@given(draw=GRID)
def test_probabilities_sum_to_one(name, draw):
    with jax.enable_x64(True):
        _, _, mu, nu = _case(name, draw)
        logs = _jit(name, "log_probabilities")(mu, nu)
        np.testing.assert_allclose(np.exp(logs).sum(), 1.0, atol=2e-5)


@ALL
@given(draw=GRID)
def test_at_zero_variance_probabilities_are_the_likelihood(name, draw):
    with jax.enable_x64(True):
        likelihood, _, mu, nu = _case(name, draw)
        mu = jnp.clip(mu, -30, 30)
        logs = _jit(name, "log_probabilities")(mu, jnp.full_like(nu, 1e-12))
        truth = [likelihood.log_prob(jnp.asarray(k), mu) for k in range(len(logs))]
        np.testing.assert_allclose(np.exp(logs), np.exp(np.array(truth)), atol=1e-5)


@ALL
@given(draw=GRID)
def test_probabilities_are_the_expected_likelihood(name, draw):
    with jax.enable_x64(True):
        _likelihood, _, mu, nu = _case(name, draw)
        mu, nu = jnp.clip(mu, -6, 6), jnp.minimum(nu, 2.0)
        x, w = hermegauss(24 if len(mu) > 1 else 200)
        grid = np.stack(np.meshgrid(*[x] * len(mu), indexing="ij"), -1).reshape(-1, len(mu))
        grids = np.meshgrid(*[w / w.sum()] * len(mu), indexing="ij")
        weight = np.prod(np.stack(grids, -1), -1).ravel()
        f = np.asarray(mu) + np.sqrt(np.asarray(nu)) * grid
        if len(mu) == 1:
            truth = np.array([weight @ np.exp(log_expit(-f[:, 0])), 0.0])
            truth[1] = 1 - truth[0]
        else:
            truth = weight @ np.exp(f - np.logaddexp.reduce(f, axis=1, keepdims=True))
        probabilities = np.exp(_jit(name, "log_probabilities")(mu, nu))
        np.testing.assert_allclose(probabilities, truth, atol=2e-4)


@ALL
@given(draw=GRID, seed=st.integers(0, 100))
def test_permuting_classes_permutes_probabilities_and_leaves_the_bound(name, draw, seed):
    with jax.enable_x64(True):
        _, y, mu, nu = _case(name, draw)
        logs, bound = _jit(name, "log_probabilities"), _jit(name, "bound")
        if len(mu) == 1:  # the other class is the other sign
            np.testing.assert_allclose(logs(-mu, nu), logs(mu, nu)[::-1], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(bound(1 - y, -mu, nu), bound(y, mu, nu), rtol=1e-9)
            return
        order = np.random.default_rng(seed).permutation(len(mu))
        there = int(np.flatnonzero(order == int(y))[0])
        permuted = logs(mu[order], nu[order])
        np.testing.assert_allclose(permuted, logs(mu, nu)[order], rtol=1e-6, atol=1e-6)
        value = bound(jnp.asarray(there), mu[order], nu[order])
        np.testing.assert_allclose(value, bound(y, mu, nu), rtol=1e-6, atol=1e-7)


@ALL
@given(draw=GRID)
def test_the_sites_of_a_concave_bound_are_not_negative(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case(name, draw)
        assert np.all(_jit(name, "sites")(y, mu, nu).precision >= 0)


@given(draw=GRID)
def test_the_tilted_bound_is_at_least_gumbels_and_jensens(draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case("Softmax", draw)
        tilted = float(_jit("Softmax", "bound")(y, mu, nu))
        gumbel = float(_jit("SoftmaxGumbel", "bound")(y, mu, nu))
        jensen = float(mu[y] - jax.nn.logsumexp(mu + nu / 2))
        assert tilted >= max(gumbel, jensen) - 1e-9 * (1 + abs(tilted))


@given(draw=GRID)
def test_the_tilt_is_a_fixed_point(draw):
    with jax.enable_x64(True):
        _, _, mu, nu = _case("Softmax", draw)
        mu, nu = jnp.clip(mu, -30, 30), jnp.minimum(nu, 100.0)
        a = jax.jit(tilt)(mu, nu)
        np.testing.assert_allclose(a, jax.nn.softmax(mu + 0.5 * (1 - 2 * a) * nu), atol=1e-4)


@given(draw=GRID)
def test_the_exact_logit_is_tighter_than_polya_gamma(draw):
    with jax.enable_x64(True):
        _, y, mu, nu = _case("Logit", draw)
        exact = float(_jit("Logit", "bound")(y, mu, nu))
        assert exact >= float(_jit("LogitPG", "bound")(y, mu, nu)) - 1e-6 * (1 + abs(exact))


def test_limits_at_zero_are_reached_without_a_step(x64):
    c2 = jnp.array([0.0, 1e-12, 1e-6, 9.99e-4, 1.001e-3])
    c = np.sqrt(np.asarray(c2[1:]))
    np.testing.assert_allclose(pg_mean(c2)[0], 0.25)
    np.testing.assert_allclose(pg_mean(c2)[1:], np.tanh(c / 2) / (2 * c), rtol=1e-9)
    np.testing.assert_allclose(log_two_cosh_half(c2)[1:], np.log(2 * np.cosh(c / 2)), rtol=1e-12)
    assert np.isfinite(jax.grad(log_two_cosh_half)(0.0))
    assert np.isfinite(expected_log_sigmoid(jnp.asarray(0.0), jnp.asarray(1e-300)))


@pytest.mark.parametrize("spec", ["logistic", 3, None])
def test_what_names_no_likelihood_is_refused(spec):
    with pytest.raises(ValueError, match="likelihood"):
        likelihood_from(spec, 2)


def test_a_likelihood_for_two_classes_refuses_three():
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        likelihood_from("logit", 3)
