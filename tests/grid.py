"""Random rows (y, μ, ν) for the laws of likelihoods, extremes included, and how to run them."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

import cases

MEANS = st.floats(-1e3, 1e3) | st.floats(-5, 5) | st.just(0.0)
VARIANCES = st.floats(-12, 4).map(lambda e: 10.0**e)
GRID = st.tuples(
    st.integers(0, 3), st.lists(MEANS, min_size=4, max_size=4),
    st.lists(VARIANCES, min_size=4, max_size=4),
)  # fmt: skip


def row_of(name, draw, dtype=np.float64):
    likelihood, n_classes, *_ = cases.LIKELIHOODS[name]
    n_latent = likelihood.n_latent(n_classes)
    y, mu, nu = draw
    return (
        likelihood,
        jnp.asarray(y % n_classes),
        jnp.asarray(mu[:n_latent], dtype),
        jnp.asarray(nu[:n_latent], dtype),
    )


@cache
def _program(name):
    """All that laws ask of a row, compiled once for each likelihood and precision."""
    likelihood = cases.LIKELIHOODS[name].likelihood

    def everything(y, mu, nu):
        value, gradient = jax.value_and_grad(likelihood.bound, argnums=(1, 2))(y, mu, nu)
        return {
            "bound": value,
            "grad bound": gradient,
            "sites": likelihood.sites(y, mu, nu),
            "log_probabilities": likelihood.log_probabilities(mu, nu),
        }

    return jax.jit(everything), jax.jit(lambda y, f: likelihood.log_prob(y, f))


def compiled(name, method):
    """A method of a likelihood, or the gradient of its bound."""
    everything, log_prob = _program(name)
    if method == "log_prob":
        return log_prob
    if method == "log_probabilities":
        return lambda mu, nu: everything(jnp.asarray(0), mu, nu)[method]
    return lambda y, mu, nu: everything(y, mu, nu)[method]


def margin(y, mu):
    """How far the winner is from changing."""
    return abs(float(mu[0])) if len(mu) == 1 else float(np.diff(np.sort(np.asarray(mu))[-2:])[0])


def product_rule(mu, nu, count):
    """Nodes (n, C) and weights of a Gauss-Hermite rule for N(μ, ν)."""
    x, w = hermegauss(count)
    grid = np.stack(np.meshgrid(*[x] * len(mu), indexing="ij"), -1).reshape(-1, len(mu))
    weights = np.stack(np.meshgrid(*[w / w.sum()] * len(mu), indexing="ij"), -1)
    return np.asarray(mu) + np.sqrt(np.asarray(nu)) * grid, np.prod(weights, -1).ravel()
