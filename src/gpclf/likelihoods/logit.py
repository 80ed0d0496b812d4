"""Two classes, p(y | f) = σ(yf), with its expectation exact to quadrature (H15's method)."""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Scalar, Sites, TwoClass, sign
from gpclf.quadrature import line

# σ is the cdf of a logistic variable of variance π²/3. The normal cdf and its integral with the
# same variance are its asymptotes, have Gaussian expectations in closed form, and leave a
# remainder that falls like e^−|f|: the rule of `quadrature.line` takes it at any variance.
SPREAD = math.pi / math.sqrt(3)


def _cdf(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Φ(x) to absolute precision; `ndtr` gives the tails too, for three times the code."""
    return 0.5 + 0.5 * erf(x * math.sqrt(0.5))


def _expected_ramp(x: Float[Array, "*s"], sd: Scalar | float) -> Float[Array, "*s"]:
    """E max(x + sd·t, 0), t ~ N(0, 1)."""
    return sd * norm.pdf(x / sd) + x * _cdf(x / sd)


def expected_log_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    """E log σ(f), f ~ N(mean, variance); its derivatives are expectations too (Bonnet, Price)."""
    return _expected_log_sigmoid(mean, variance)


@jax.custom_jvp
def _expected_log_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    nodes, weights = line(mean, variance)
    remainder = jax.nn.softplus(-nodes) - _expected_ramp(-nodes, SPREAD)
    return -_expected_ramp(-mean, jnp.sqrt(variance + SPREAD**2)) - weights @ remainder


@_expected_log_sigmoid.defjvp
def _expected_log_sigmoid_jvp(primals, tangents):
    mean, variance = primals
    by_mean = expected_sigmoid(-mean, variance)
    by_variance = -0.5 * expected_slope(mean, variance)
    value = _expected_log_sigmoid(mean, variance)
    return value, by_mean * tangents[0] + by_variance * tangents[1]


def expected_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    """E σ(f)."""
    nodes, weights = line(mean, variance)
    remainder = jax.nn.sigmoid(nodes) - _cdf(nodes / SPREAD)
    return _cdf(mean / jnp.sqrt(variance + SPREAD**2)) + weights @ remainder


def expected_slope(mean: Scalar, variance: Scalar) -> Scalar:
    """E σ(f)(1 − σ(f))."""
    nodes, weights = line(mean, variance)
    return weights @ (jax.nn.sigmoid(nodes) * jax.nn.sigmoid(-nodes))


def log_expected_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    """log E σ(f), to a small relative error in the tail as well.

    There σ(f) = e^f σ(−f), so E σ(f) = exp(mean + variance/2) E σ(−f′), f′ ~ N(mean + variance, ·).
    """
    tail = mean < -0.5 * variance
    value = expected_sigmoid(jnp.where(tail, -mean - variance, mean), variance)
    smallest = jnp.finfo(value.dtype).tiny
    return jnp.where(tail, mean + 0.5 * variance, 0.0) + jnp.log(jnp.maximum(value, smallest))


class Logit(TwoClass):
    """Logistic regression's likelihood, the default for two classes."""

    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """log σ(yf)."""
        return jax.nn.log_sigmoid(sign(y, f.dtype) * f[0])

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """E log σ(yf), by quadrature."""
        return expected_log_sigmoid(sign(y, mu.dtype) * mu[0], nu[0])

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ = E σ(1−σ), λ = y E σ(−yf) + τμ."""
        s = sign(y, mu.dtype)
        tau = expected_slope(mu[0], nu[0])
        linear = s * expected_sigmoid(-s * mu[0], nu[0]) + tau * mu[0]
        return Sites(tau[None], linear[None])

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log E σ(∓f): the smaller one by its integral, the other as what is left of one."""
        smaller = log_expected_sigmoid(-jnp.abs(mu[0]), nu[0])
        larger = jnp.log1p(-jnp.exp(smaller))
        logs = jnp.stack([smaller, larger])
        return jnp.where(mu[0] > 0, logs, logs[::-1])
