"""Two classes, p(y | f) = σ(yf), with its expectation exact to rounding in float32."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Scalar, TwoClass, sign

# σ(f) = Σ w Φ(f/s): the logistic law is a mixture of normal ones, and eight of them leave an error
# of 2e-9 in σ, 1e-8 in its integral log(1 + e^f) and its slope. Every Gaussian expectation is then
# a sum of eight closed forms. After Monahan & Stefanski (1992); the figures are a fit of our own.
WEIGHTS, SPREADS = np.array(
    [
        (0.00325864032, 0.732590075714),
        (0.051637912507, 0.944082567842),
        (0.195297374943, 1.204038444638),
        (0.315611012143, 1.537205197445),
        (0.273969783788, 1.968537631235),
        (0.130911609387, 2.523835756094),
        (0.027866513386, 3.237769104589),
        (0.001447153526, 4.198313785388),
    ]
).T
Terms = Float[Array, "8"]


def _terms(mean: Scalar, variance: Scalar) -> tuple[Terms, Terms, Terms]:
    """The weights, the standard deviations of f + s·t, t ~ N(0, 1), and mean / deviation."""
    weights, spreads = (jnp.asarray(values, mean.dtype) for values in (WEIGHTS, SPREADS))
    sd = jnp.sqrt(variance + spreads**2)
    return weights, sd, mean / sd


def _cdf(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Φ(x) to absolute precision; `ndtr` gives the tails too, for three times the code."""
    return 0.5 + 0.5 * erf(x * math.sqrt(0.5))


def expected_log_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    """E log σ(f), f ~ N(mean, variance); its derivatives are expectations too (Bonnet, Price)."""
    return _expected_log_sigmoid(mean, variance)


@jax.custom_jvp
def _expected_log_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    return with_slopes(mean, variance)[0]


def with_slopes(mean: Scalar, variance: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """E log σ(f), E σ(−f) and E σ(f)(1 − σ(f)), whose terms are the same functions."""
    weights, sd, z = _terms(mean, variance)
    tail, density = weights * _cdf(-z), weights * norm.pdf(z)
    below = jnp.sum(tail)
    return mean * below - jnp.sum(sd * density), below, jnp.sum(density / sd)


@_expected_log_sigmoid.defjvp
def _expected_log_sigmoid_jvp(primals, tangents):
    value, by_mean, slope = with_slopes(*primals)
    return value, by_mean * tangents[0] - 0.5 * slope * tangents[1]


def expected_sigmoid(mean: Scalar, variance: Scalar) -> Scalar:
    """E σ(f)."""
    weights, _, z = _terms(mean, variance)
    return weights @ _cdf(z)


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
        """E log σ(yf)."""
        return expected_log_sigmoid(sign(y, mu.dtype) * mu[0], nu[0])

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log E σ(∓f): the smaller one by its integral, the other as what is left of one."""
        smaller = log_expected_sigmoid(-jnp.abs(mu[0]), nu[0])
        larger = jnp.log1p(-jnp.exp(smaller))
        logs = jnp.stack([smaller, larger])
        return jnp.where(mu[0] > 0, logs, logs[::-1])
