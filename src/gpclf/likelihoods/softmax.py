"""Any number of classes, p(y | f) = softmax(f)_y, under two bounds of its expected logarithm."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Likelihood, Scalar, Sites
from gpclf.quadrature.gumbel_race import log_expected_softmax
from gpclf.quadrature.rows import rows_last

TILT_STEPS, ROOT_STEPS = 8, 4


def _log_sum(x: Float[Array, "C *B"]) -> tuple[Float[Array, "*B"], Float[Array, "C *B"]]:
    """log Σ eˣ along the first axis, and the share of each."""
    most = jax.lax.stop_gradient(jnp.max(x, axis=0))
    e = jnp.exp(x - most)
    total = jnp.sum(e, axis=0)
    return most + jnp.log(total), e / total


@rows_last
def tilt(mu: Float[Array, "C *B"], nu: Float[Array, "C *B"]) -> Float[Array, "C *B"]:
    """The a that maximises the tilted bound: a = softmax(μ + (1 − 2a)ν/2).

    With t the unknown log-normaliser each log a_c solves b + ν_c eᵇ = μ_c + ν_c/2 − t, and Σa = 1
    fixes t: a root of one variable, found by Newton's method on log Σa inside a bracket that
    halves. The plain iteration with damping ½ settles only below ν = 12.

    Loops, and each function written once: what XLA compiles for a fit of several classes is for a
    good part this.
    """
    d = mu + 0.5 * nu
    log_nu = jnp.log(nu)

    def log_a(t: Float[Array, "*B"]) -> Float[Array, "C *B"]:
        # b + log ν = the root of b + eᵇ = z, which is a concave function of z: below z itself, its
        # tangent at 0 and, from 1 on, log z. From above, Newton's method falls straight to it.
        z = d - t + log_nu
        b = jnp.minimum(jnp.minimum(z, 0.6382 * z - 0.5671), jnp.log(jnp.maximum(z, 1.0)))

        def newton(_, b):
            e = jnp.exp(b)
            return b - (b + e - z) / (1 + e)

        return jax.lax.fori_loop(0, ROOT_STEPS, newton, b) - log_nu

    def step(_, state):
        low, high, t, *_ = state
        a = jnp.exp(log_a(t))
        total = jnp.sum(a, axis=0)
        low, high = jnp.where(total > 1, t, low), jnp.where(total > 1, high, t)
        newton = t + jnp.log(total) * total / jnp.sum(a / (1 + a * nu), axis=0)
        inside = (newton >= low) & (newton <= high)
        return low, high, jnp.where(inside, newton, 0.5 * (low + high)), a, total

    high, share = _log_sum(d)
    low = jnp.max(d - nu, axis=0)
    start = jnp.maximum(low, high - 0.5 * jnp.sum(share**2 * nu, axis=0))
    *_, a, total = jax.lax.fori_loop(0, TILT_STEPS + 1, step, (low, high, start, share, start))
    return a / total


class _SoftmaxFamily(Likelihood):
    """softmax(f) itself; its subclasses differ in the bound."""

    def n_latent(self, n_classes: int) -> int:
        """One function per class."""
        return n_classes

    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """f_y − log Σ exp f."""
        return jax.nn.log_softmax(f)[y]

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log ∫ softmax."""
        return log_expected_softmax(mu, nu)


class Softmax(_SoftmaxFamily):
    """The softmax under the tilted bound (Knowles & Minka 2011), the default for many classes."""

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """μ_y − ½Σ a_c²ν_c − lse(μ + (1−2a)ν/2), at the best a (held: envelope theorem)."""
        a = tilt(jax.lax.stop_gradient(mu), jax.lax.stop_gradient(nu))
        own = jnp.sum(jnp.where(jnp.arange(mu.shape[0]) == y, mu, 0.0))  # an index has a slow slope
        return own - 0.5 * a**2 @ nu - _log_sum(mu + 0.5 * (1 - 2 * a) * nu)[0]

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ = a² + (1−2a)s, λ = [c=y] − s + τμ, s = softmax(μ + (1−2a)ν/2); s = a at the optimum.

        τ = (s−a)² + s(1−s) is never negative, wherever the iteration for a has stopped.
        """
        a = tilt(mu, nu)
        s = jax.nn.softmax(mu + 0.5 * (1 - 2 * a) * nu)
        tau = (s - a) ** 2 + s * (1 - s)
        return Sites(tau, jax.nn.one_hot(y, mu.shape[0], dtype=mu.dtype) - s + tau * mu)


class SoftmaxGumbel(_SoftmaxFamily):
    """The softmax under the Gumbel-noise bound of L19 (eq. 25, GPCsm)."""

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """−log(1 + exp(ν_y/2 − μ_y) Σ_{c≠y} exp(μ_c + ν_c/2))."""
        others = jnp.where(jnp.arange(mu.shape[0]) == y, -jnp.inf, mu + 0.5 * nu)
        return -jax.nn.softplus(0.5 * nu[y] - mu[y] + jax.nn.logsumexp(others))
