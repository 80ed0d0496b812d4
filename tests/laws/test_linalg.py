"""Laws of the M×M algebra, against independent formulas and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf.gaussian import Moments, Natural, elbo_pullback, moments
from gpclf.linalg import (
    cholesky,
    inverse,
    lower_inverse,
    lower_inverse_pullback,
    plain_cholesky,
    quadratic_forms,
)


def _positive(seed, size, rank=None):
    A = np.random.default_rng(seed).normal(size=(size, rank or 2 * size))
    return A @ A.T / A.shape[1]


def test_the_stated_jitter_is_all_that_is_added():
    K = _positive(0, 6)
    L, used = cholesky(K, 1e-6)
    assert used == 1e-6
    np.testing.assert_allclose(L @ L.T, K + 1e-6 * np.mean(np.diag(K)) * np.eye(6), rtol=1e-12)


def test_the_jitter_grows_until_the_factor_exists():
    K = np.ones((5, 5)) - 1e-5 * np.eye(5)  # its smallest eigenvalue is −1e-5
    L, used = cholesky(K, 1e-9)
    assert 1e-5 < used <= 1e-4
    assert np.all(np.isfinite(L))


def test_what_cannot_be_factorised_is_a_value():
    L, _ = cholesky(np.full((3, 3), np.nan), 1e-6)
    assert np.all(np.isnan(L))
    assert plain_cholesky(-np.eye(2)) is None


def test_the_inverse_from_a_factor_is_symmetric_and_an_inverse():
    K = _positive(5, 40)
    factor = plain_cholesky(K)
    assert factor is not None
    made = inverse(factor)
    np.testing.assert_array_equal(made, made.T)
    np.testing.assert_allclose(made @ K, np.eye(40), atol=1e-10)


def test_the_pullback_of_the_inverse_factor_equals_finite_differences():
    K, by = _positive(1, 5), np.random.default_rng(2).normal(size=(5, 5))

    def value(K):
        return np.sum(by * lower_inverse(np.linalg.cholesky(K)))

    direction = _positive(3, 5)
    numeric = (value(K + 1e-6 * direction) - value(K - 1e-6 * direction)) / 2e-6
    gradient = lower_inverse_pullback(lower_inverse(np.linalg.cholesky(K)), by)
    np.testing.assert_allclose(np.sum(gradient * direction), numeric, rtol=1e-6)


def test_the_quadratic_form_and_its_gradient_equal_the_automatic_ones(x64):
    rng = np.random.default_rng(0)
    A, S, g = rng.normal(size=(7, 4)), _positive(4, 4), rng.normal(size=7)

    def plain(A, S):
        return jnp.einsum("bi,ij,bj->b", A, S, A)

    ours, pull = jax.vjp(quadratic_forms, jnp.asarray(A), jnp.asarray(S))
    theirs, pull_plain = jax.vjp(plain, jnp.asarray(A), jnp.asarray(S))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for mine, other in zip(pull(jnp.asarray(g)), pull_plain(jnp.asarray(g)), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


def _gaussians(seed, functions=2, size=4):
    rng = np.random.default_rng(seed)
    precision = np.stack([np.eye(size) + _positive(seed + c, size) for c in range(functions)])
    return Natural(rng.normal(size=(functions, size)), precision)


def test_moments_and_kl_are_those_of_the_gaussian():
    q = _gaussians(0)
    m, kl = moments(q)
    expected = 0.0
    for c in range(2):
        S = np.linalg.inv(q.precision[c])
        np.testing.assert_allclose(m.excess[c], S - np.eye(4), atol=1e-12)
        np.testing.assert_allclose(m.mean[c], S @ q.linear[c], rtol=1e-10)
        mean = S @ q.linear[c]
        expected += 0.5 * (np.trace(S) + mean @ mean - 4 - np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(kl, expected, rtol=1e-12)


def test_the_prior_has_no_divergence_from_itself():
    m, kl = moments(Natural.standard(3, 5))
    assert kl == pytest.approx(0, abs=1e-14)
    np.testing.assert_allclose(m.mean, 0)


def test_a_matrix_that_is_no_precision_gives_nan_and_no_error():
    q = _gaussians(0)
    q.precision[1] -= 10 * np.eye(4)
    assert np.isnan(moments(q)[1])


def test_the_pullback_to_natural_parameters_equals_finite_differences():
    rng = np.random.default_rng(5)
    q = _gaussians(1)
    by = Moments(rng.normal(size=(2, 4)), np.stack([_positive(c, 4) for c in (7, 8)]))

    def value(q):
        m, kl = moments(q)
        return np.sum(by.mean * m.mean) + np.sum(by.excess * m.excess) - kl

    gradient = elbo_pullback(q, moments(q)[0], by)
    step = Natural(rng.normal(size=(2, 4)), np.stack([_positive(c, 4) for c in (9, 10)]))
    ahead = Natural(*(a + 1e-6 * b for a, b in zip(q, step, strict=True)))
    behind = Natural(*(a - 1e-6 * b for a, b in zip(q, step, strict=True)))
    numeric = (value(ahead) - value(behind)) / 2e-6
    along = sum(np.sum(a * b) for a, b in zip(gradient, step, strict=True))
    np.testing.assert_allclose(along, numeric, rtol=1e-6)
