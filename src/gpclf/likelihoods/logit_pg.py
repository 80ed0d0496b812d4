"""Two classes, p(y | f) = σ(yf), by Pólya-Gamma augmentation (W18): every step in closed form.

Augmenting each row with a Pólya-Gamma variable and taking its optimal q in closed form leaves the
Jaakkola-Jordan bound below. A full step (ρ = 1) is the paper's coordinate ascent.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Scalar, Sites, sign
from gpclf.likelihoods.logit import Logit

SMALL = 1e-3  # of c²: below it three terms of the series are exact to 1e-11


def log_two_cosh_half(c_squared: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """log 2cosh(c/2) from c²: smooth at c = 0, linear at infinity."""
    small = c_squared < SMALL
    half = 0.5 * jnp.sqrt(jnp.where(small, 1.0, c_squared))
    series = jnp.log(2.0) + c_squared / 8 - c_squared**2 / 192
    return jnp.where(small, series, jnp.logaddexp(half, -half))


def pg_mean(c_squared: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """tanh(c/2)/(2c), the mean of PG(1, c); ¼ at c = 0."""
    small = c_squared < SMALL
    c = jnp.sqrt(jnp.where(small, 1.0, c_squared))
    series = 0.25 - c_squared / 48 + c_squared**2 / 480
    return jnp.where(small, series, jnp.tanh(0.5 * c) / (2 * c))


class LogitPG(Logit):
    """The logit likelihood under the Pólya-Gamma bound: looser than `logit`, no quadrature."""

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """yμ/2 − log 2cosh(c/2), c² = μ² + ν."""
        return 0.5 * sign(y, mu.dtype) * mu[0] - log_two_cosh_half(mu[0] ** 2 + nu[0])

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ = tanh(c/2)/(2c), λ = y/2."""
        return Sites(pg_mean(mu**2 + nu), 0.5 * sign(y, mu.dtype)[None])
