"""Laws of prediction: its short cuts give what the long way gives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cases
from gpclf.gaussian import Natural
from gpclf.inference.hyper import Theta
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.model import Model
from gpclf.posterior import find_roots, freeze
from gpclf.prediction import LENGTHS, _ready, latent_marginals
from gpclf.quadrature import gumbel_law, normal_nodes

SIZE = 30


def posterior(name, dtype, lengthscale=(0.7, 1.5)):
    """A q that has learned something in every direction."""
    likelihood, n_classes, *_ = cases.LIKELIHOODS[name]
    random = np.random.default_rng(0)
    n_latent = likelihood.n_latent(n_classes)
    with jax.enable_x64(True):
        kernel = RBF(lengthscale=np.array(lengthscale), variance=4.0)
        model = Model(kernel, likelihood, Exact())
        Z = jnp.asarray(random.normal(size=(SIZE, 2)))
        half = random.normal(size=(n_latent, SIZE, SIZE))
        learned = half @ half.swapaxes(1, 2) + 2 * np.eye(SIZE)
        q = Natural(10 * random.normal(size=(n_latent, SIZE)), learned)
        return freeze(Theta(model, Z), q, 1e-9, dtype)


def without_roots(made):
    return eqx.tree_at(lambda p: p.roots, made, None)


@pytest.mark.parametrize("name", ["Logit", "Softmax"])
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-8), (np.float32, 1e-2)])
@pytest.mark.parametrize("lengthscale", [(0.7, 1.5), (2.0, 3.0)])  # points apart, and close
def test_roots_give_the_marginals_of_q(name, dtype, close, lengthscale):
    made = posterior(name, dtype, lengthscale)
    assert made.roots is not None
    with jax.enable_x64(True):
        assert (_ready(made).roots.of_one is None) == (lengthscale[0] < 1)
    X = np.random.default_rng(1).normal(size=(100, 2))
    plain = latent_marginals(without_roots(posterior(name, np.float64, lengthscale)), X)
    for of_roots, expected in zip(latent_marginals(made, X), plain, strict=True):
        np.testing.assert_allclose(of_roots, expected, rtol=0, atol=close * np.ptp(expected))


def test_how_many_rows_a_call_has_changes_none_of_them():
    made = posterior("Logit", np.float64)
    X = np.random.default_rng(1).normal(size=(LENGTHS[-1] + 1, 2))
    mean, variance = latent_marginals(made, X)
    for count in (1, LENGTHS[0], LENGTHS[0] + 1, LENGTHS[1] + 1, LENGTHS[-1]):
        some_mean, some_variance = latent_marginals(made, X[-count:])
        np.testing.assert_allclose(some_mean, mean[-count:], atol=1e-10)
        np.testing.assert_allclose(some_variance, variance[-count:], atol=1e-10)


def test_a_q_wider_than_its_prior_has_no_roots():
    made = posterior("Softmax", np.float64)
    wide = eqx.tree_at(lambda q: q.excess, made.q, -made.q.excess)
    assert find_roots(made.prepared, made.q, np.float64) is not None
    assert find_roots(made.prepared, wide, np.float64) is None


@pytest.mark.parametrize("s", [0.0, 1e-6, 0.01, 0.3, 0.9, 1.7, 3.0, 8.0, 30.0, 1000.0])
def test_the_series_of_the_race_match_plain_quadrature(s):
    """At values of s between the knots, and beyond the range that the series were made for."""
    width = np.hypot(s, gumbel_law.SPREAD)
    with jax.enable_x64(True):
        law = gumbel_law.law(jnp.array([2.0]), jnp.array([s]))
        z = np.linspace(float(law.low[0]) - 2.0, float(law.high[0]) - 2.0, 200)
        H, slope = law(jnp.asarray(z + 2.0))
        np.testing.assert_allclose(H[0], gumbel_law._exact(z, s), atol=3e-5)
        by_hand = -np.gradient(np.asarray(H[0]), z)
        np.testing.assert_allclose(slope[0][2:-2], by_hand[2:-2], rtol=2e-3, atol=1e-3 / width)
        far, _ = law(jnp.asarray([-1e4, 1e4]) * width)
        assert far[0, 0] > 0 > far[0, 1]


def test_any_number_of_places_will_do():
    for count in (1, 2, 3, 16, 20, 33):
        assert normal_nodes(count, 3).shape == (count, 3)
