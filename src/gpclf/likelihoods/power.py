"""log E p(y | f)^α under a Gaussian: what power-EP asks of a likelihood, for one row.

Under the cavity p(y | f)^α may weigh most where the Gaussian has next to nothing. For any slope k

    log E e^{r(f)} = −½ Σ k²ν + log E e^{r(f′) − k(f′ − c)},   f′ ~ N(c, ν),   c = μ + kν,

and with k the slope of r = α log p at the mode of r(f) − Σ (f − μ)²/2ν that mode is c itself: the
nodes go where the weight is.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.quadrature import graded, normal_nodes

MODE_STEPS = 20
DRAWS = 256  # of several functions at once, by a Sobol sequence: always the same ones

Scalar = Float[Array, ""]
Latent = Float[Array, "C"]
Power = float | Scalar


def is_one(alpha: Power) -> bool:
    """Whether α is known to be 1 before anything is computed: then closed forms serve."""
    return isinstance(alpha, int | float) and alpha == 1


def _slope_at_mode(r: Callable[[Latent], Scalar], mu: Latent, nu: Latent) -> Latent:
    """∇r where r(f) − Σ (f − μ)²/2ν is highest, by Newton's method on the diagonal, damped.

    With several functions the diagonal counts twice: it then outweighs what stands beside it.
    """
    basis, twice = jnp.eye(mu.shape[0], dtype=mu.dtype), min(mu.shape[0], 2)
    slope = jax.grad(r)

    def height(f: Latent) -> Scalar:
        return r(f) - 0.5 * jnp.sum((f - mu) ** 2 / nu)

    def step(_, state: tuple[Latent, Scalar, Scalar]) -> tuple[Latent, Scalar, Scalar]:
        f, here, rate = state
        bend = jax.vmap(lambda e: jax.jvp(slope, (f,), (e,))[1] @ e)(basis)
        gap = mu - f + nu * slope(f)
        ahead = f + rate * gap / (1 - twice * nu * jnp.minimum(bend, 0.0))
        there = height(ahead)
        better = there >= here
        rate = jnp.where(better, jnp.minimum(1.0, 2 * rate), 0.5 * rate)
        return jnp.where(better, ahead, f), jnp.where(better, there, here), rate

    start = (mu, height(mu), jnp.ones((), mu.dtype))
    return slope(jax.lax.fori_loop(0, MODE_STEPS, step, start)[0])


def log_mean_power(
    log_prob: Callable[[Latent], Scalar], mu: Latent, nu: Latent, alpha: Power
) -> Scalar:
    """log E p(f)^α, f_c ~ N(μ_c, ν_c): one function by `graded`, several by a Sobol sequence."""

    def r(f: Latent) -> Scalar:
        return alpha * log_prob(f)

    mean, variance = jax.lax.stop_gradient(mu), jax.lax.stop_gradient(nu)
    k = jax.lax.stop_gradient(_slope_at_mode(r, mean, variance))  # any k is right: hold it
    centre = mu + k * nu
    if mu.shape[0] == 1:
        nodes, weights = graded(centre[0], nu[0])
        f, logs = nodes[:, None], jnp.log(weights)
    else:
        nodes = jnp.asarray(normal_nodes(DRAWS, mu.shape[0]), mu.dtype)
        f = centre + jnp.sqrt(nu) * nodes
        logs = jnp.full(DRAWS, -math.log(DRAWS), mu.dtype)
    logs = logs + jax.vmap(r)(f) - (f - centre) @ k
    return jax.nn.logsumexp(logs) - 0.5 * jnp.sum(k**2 * nu)


@jax.custom_vjp
def class_log_probability(likelihood: Any, y: Int[Array, ""], mu: Latent, nu: Latent) -> Scalar:
    """log E p(y | f) as predictions have it, with a gradient for loops that end when they like.

    JAX differentiates those forwards only: one tangent for every number.
    """
    return likelihood.log_probabilities(mu, nu)[y]


def _class_forward(likelihood, y, mu, nu):
    def value(own, mu, nu):
        return own.log_probabilities(mu, nu)[y]

    slopes = jax.jacfwd(value, argnums=(0, 1, 2))(likelihood, mu, nu)
    return value(likelihood, mu, nu), (slopes, y)


def _class_backward(residuals, by_value):
    slopes, y = residuals
    by_likelihood, by_mu, by_nu = jax.tree.map(lambda leaf: by_value * leaf, slopes)
    return by_likelihood, np.zeros(y.shape, jax.dtypes.float0), by_mu, by_nu


class_log_probability.defvjp(_class_forward, _class_backward)
