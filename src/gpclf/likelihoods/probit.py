"""Two classes, p(y | f) = Φ(yf) (H15 eq. 21): the expectation by quadrature, the probability exact.

log Φ falls like −f²/2 − log|f| on one side. Half the expected square of a smoothed ramp has the
same leading term and a Gaussian expectation in closed form; what remains grows like a logarithm
and is left to `quadrature.graded`.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Scalar, Sites, TwoClass, sign
from gpclf.likelihoods.power import Power, is_one
from gpclf.quadrature import graded


def _half_squared_ramp(x: Float[Array, "*s"], variance: Scalar | float) -> Float[Array, "*s"]:
    """½ E min(x + t, 0)², t ~ N(0, variance)."""
    sd = jnp.sqrt(variance)
    return 0.5 * ((x**2 + variance) * ndtr(-x / sd) - x * sd * norm.pdf(x / sd))


def _hazard(f: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """φ(f)/Φ(f), the slope of log Φ; in logs, so that it is −f far to the left."""
    return jnp.exp(norm.logpdf(f) - log_ndtr(f))


def expected_log_ndtr(mean: Scalar, variance: Scalar) -> Scalar:
    """E log Φ(f), f ~ N(mean, variance); its derivatives are expectations too (Bonnet, Price)."""
    return _expected_log_ndtr(mean, variance)


@jax.custom_jvp
def _expected_log_ndtr(mean: Scalar, variance: Scalar) -> Scalar:
    nodes, weights = graded(mean, variance)
    remainder = log_ndtr(nodes) + _half_squared_ramp(nodes, 1.0)
    return weights @ remainder - _half_squared_ramp(mean, variance + 1.0)


@_expected_log_ndtr.defjvp
def _expected_log_ndtr_jvp(primals, tangents):
    slope, bend = expected_slope_and_bend(*primals)
    value = _expected_log_ndtr(*primals)
    return value, slope * tangents[0] - 0.5 * bend * tangents[1]


def expected_slope_and_bend(mean: Scalar, variance: Scalar) -> tuple[Scalar, Scalar]:
    """E h(f) and E h(f)(h(f) + f), h = φ/Φ: the first and minus the second derivative."""
    nodes, weights = graded(mean, variance)
    h = _hazard(nodes)
    return weights @ h, weights @ (h * jnp.maximum(h + nodes, 0.0))


class Probit(TwoClass):
    """The normal cdf in place of the logistic one: lighter tails, a closed-form probability."""

    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """log Φ(yf)."""
        return log_ndtr(sign(y, f.dtype) * f[0])

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """E log Φ(yf), by quadrature."""
        return expected_log_ndtr(sign(y, mu.dtype) * mu[0], nu[0])

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ = E h(h + yf), λ = y E h + τμ, h the hazard φ/Φ at yf."""
        s = sign(y, mu.dtype)
        slope, tau = expected_slope_and_bend(s * mu[0], nu[0])
        return Sites(tau[None], (s * slope + tau * mu[0])[None])

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log Φ(∓μ/√(1+ν))."""
        z = mu[0] / jnp.sqrt(1 + nu[0])
        return log_ndtr(jnp.stack([-z, z]))

    def log_evidence(self, y: Label, mu: Latent, nu: Latent, alpha: Power) -> Scalar:
        """log Φ(yμ/√(1+ν)) at α = 1, else by quadrature."""
        if is_one(alpha):
            return log_ndtr(sign(y, mu.dtype) * mu[0] / jnp.sqrt(1 + nu[0]))
        return super().log_evidence(y, mu, nu, alpha)
