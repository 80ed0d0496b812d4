"""Laws of kernels."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
from gpclf.kernels import (
    RBF,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Product,
    Sum,
    kernel_from,
)
from gpclf.kernels.absolute import absolute_distances
from gpclf.precision import cast

ALL = pytest.mark.parametrize("name", sorted(cases.KERNELS))


def _rows(seed, n, scale=1.0):
    return jnp.asarray(scale * np.random.default_rng(seed).normal(size=(n, 3)))


@cache
def _forms(name):
    """k of two points for all pairs, and what is computed at once, compiled."""

    def forms(X, Y):
        kernel = cast(cases.KERNELS[name], jnp.float64)
        pairs = jax.vmap(lambda x: jax.vmap(lambda y: kernel(x, y))(Y))(X)
        diagonal = jax.vmap(lambda x: kernel(x, x))(X)
        return pairs, diagonal, kernel.matrix(X, Y), kernel.diagonal(X), kernel.parts(X, Y)

    return jax.jit(forms)


@ALL
@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 1.0, 30.0]))
def test_the_fast_matrix_and_its_parts_equal_the_two_point_form(name, seed, scale):
    with jax.enable_x64(True):
        X, Y = _rows(seed, 5, scale), _rows(seed + 1, 4, scale)
        Y = Y.at[0].set(X[2])  # a point in common
        pairs, own, matrix, diagonal, (constant, rest) = _forms(name)(X, Y)
        # r² is known up to rounding, and exp(−r) feels its root where the points are one
        close = 1e-5 if "Matern12" in name else 1e-9
        np.testing.assert_allclose(matrix, pairs, rtol=close, atol=1e-12)
        np.testing.assert_allclose(diagonal, own, rtol=1e-12)
        largest = max(np.max(np.abs(diagonal)), np.max(np.abs(matrix)))
        np.testing.assert_allclose(constant + rest, matrix, rtol=1e-9, atol=1e-13 * largest)


@given(seed=st.integers(0, 1000))
def test_absolute_distances_have_the_slopes_of_their_sum(seed):
    """Of rows that share some coordinates: there both slopes are 0."""
    with jax.enable_x64(True):
        X, Y = _rows(seed, 5), _rows(seed + 1, 4).at[:, 1].set(_rows(seed, 5)[0, 1])
        by_pairs = jax.random.normal(jax.random.key(seed), (5, 4))

        own, pull = jax.vjp(absolute_distances, X, Y)
        gaps = np.asarray(X)[:, None] - np.asarray(Y)[None, :]
        np.testing.assert_allclose(own, np.abs(gaps).sum(axis=2), rtol=1e-12)
        slopes = np.sign(gaps) * np.asarray(by_pairs)[:, :, None]
        by_X, by_Y = pull(by_pairs)
        np.testing.assert_allclose(by_X, slopes.sum(axis=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(by_Y, -slopes.sum(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [RBF, Matern12, Matern32, Matern52, Laplace])
def test_single_precision_resolves_what_is_left_of_a_nearly_constant_kernel(kind, x64):
    """Squared distances of about 1e-4: no entry is a twentieth below the variance."""
    X, Y = _rows(0, 20), _rows(1, 10)
    kernel = kind(lengthscale=200.0, variance=1.0)
    _, exact = cast(kernel, jnp.float64).parts(X, Y)
    _, single = cast(kernel, jnp.float32).parts(X.astype(jnp.float32), Y.astype(jnp.float32))
    assert np.max(np.abs(exact)) < 0.05
    # the others lose √r² to cancellation
    close = 1e-5 if kind in (RBF, Matern12, Laplace) else 1e-3
    np.testing.assert_allclose(single, exact, rtol=close, atol=1e-3 * close)


@ALL
def test_a_kernel_matrix_is_symmetric_and_positive_definite(name, x64):
    kernel = cast(cases.KERNELS[name], jnp.float64)
    X = _rows(0, 25)
    K = kernel.matrix(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    values = np.linalg.eigvalsh(K)
    assert values.min() >= -1e-10 * values.max()


@ALL
def test_gradients_are_finite_where_points_coincide_and_equal_finite_differences(name, x64):
    X = _rows(1, 4)
    Z = _rows(2, 3).at[0].set(X[1])

    def total(kernel, Z):
        return jnp.sum(jnp.sin(kernel.matrix(X, Z)))

    kernel = cast(cases.KERNELS[name], jnp.float64)
    by_kernel, by_Z = jax.grad(total, argnums=(0, 1))(kernel, Z)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((by_kernel, by_Z)))
    norm = sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(by_kernel)) ** 0.5
    step = 1e-6 / max(norm, 1e-12)  # along the gradient itself, whose slope is its norm
    moved = jax.tree.map(lambda leaf, g: leaf + step * g, kernel, by_kernel)
    back = jax.tree.map(lambda leaf, g: leaf - step * g, kernel, by_kernel)
    numeric = (total(moved, Z) - total(back, Z)) / 2e-6
    np.testing.assert_allclose(numeric, norm, rtol=1e-5, atol=1e-8)


def test_names_build_sums_of_products():
    kernel = kernel_from("rbf + linear * matern52")
    assert isinstance(kernel, Sum)
    assert isinstance(kernel.right, Product)
    assert isinstance(kernel.right.left, Linear)
    assert isinstance(kernel.right.right, Matern52)


LOGS = st.lists(st.floats(-5, 5), min_size=1, max_size=8)


@given(logs=LOGS, shift=st.floats(-5, 5))
def test_the_prior_knows_only_how_much_lengthscales_differ(logs, shift):
    with jax.enable_x64(True):
        logs = np.array(logs)
        here, there = (RBF(np.exp(each), 2.0).log_prior() for each in (logs, logs + shift))
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-9)
        assert here <= 0
        np.testing.assert_allclose(RBF(np.full(4, 3.0)).log_prior(), 0, atol=1e-12)
        wider = RBF(np.exp(1.1 * (logs - logs.mean())), 2.0).log_prior()
        assert wider <= here + 1e-9


def test_one_lengthscale_or_none_has_no_prior():
    for kernel in (RBF(0.2, 30.0), Linear(), RBF(2.0) * Matern52(0.1) + 3.0):
        assert kernel.log_prior() == 0


def test_priors_of_parts_add_up():
    one, other = RBF([1.0, 2.0]), Matern52([3.0, 0.1])
    expected = float(one.log_prior() + other.log_prior())
    assert expected < 0
    for both in (one + other, one * other):
        np.testing.assert_allclose(both.log_prior(), expected, rtol=1e-6)


@pytest.mark.parametrize("bad", ["rbff", "", "rbf +", 3, ["rbf"]])
def test_what_names_no_kernel_is_refused(bad):
    with pytest.raises(ValueError, match="kernel"):
        kernel_from(bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, -2.0], [[1.0]]])
def test_a_lengthscale_is_positive_and_finite(bad):
    with pytest.raises(ValueError, match="lengthscale must be"):
        RBF(bad)


def test_the_data_fill_in_a_missing_lengthscale_only():
    started = (RBF() + Matern52(2.0)).started(3.0, 5)
    np.testing.assert_allclose(np.exp(started.left.log_lengthscale), np.full(5, 3.0))
    np.testing.assert_allclose(np.exp(started.right.log_lengthscale), 2.0)
    assert np.shape(RBF(ard=False).started(3.0, 5).log_lengthscale) == ()
    with pytest.raises(ValueError, match="2 lengthscales, but X has 3 features"):
        RBF([1.0, 2.0]).started(1.0, 3)


@ALL
def test_a_stretched_kernel_is_that_of_shrunk_points_times_a_number(name, x64):
    kernel = cast(cases.KERNELS[name], jnp.float64)
    X, Y = _rows(0, 5), _rows(1, 4)
    Y = Y.at[0].set(X[2])
    made = kernel.stretched(0.6, 5.0).matrix(X, Y)
    np.testing.assert_allclose(made, 5.0 * kernel.matrix(X / 0.6, Y / 0.6), rtol=1e-9)
    assert repr(kernel.stretched(1.0, 1.0)) == repr(kernel)
