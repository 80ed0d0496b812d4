"""The logistic-softmax seen through a few classes drawn at random (G19 Alg. 2).

Its bound depends on the classes only through their own terms and Σ(1 − p_c). With that sum held at
a row's T the bound is replaced by its tangent, which lies below it and is a sum over classes,

    ℓ ≥ Σ_c { [c=y](μ_c/2 − log 2cosh(c_c/2)) + s(T) p_c } + const(T),

so C/K times the terms of K classes drawn at random is an unbiased estimate of it, and of its
gradients. At T = Σ(1 − p_c) the tangent touches.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpclf.likelihoods.base import Latent, RowBound, Scalar, Sites
from gpclf.likelihoods.logistic_softmax import LogisticSoftmaxFamily, minus_log_p
from gpclf.likelihoods.logit_pg import pg_mean


class DrawnLabel(NamedTuple):
    """Where the label is among the drawn classes (K: not there), and log T."""

    place: Int[Array, "*B"]
    log_total: Float[Array, "*B"]


class DrawnClasses(RowBound):
    """`whole`, estimated from `drawn` of its `n_classes` classes, which have no probabilities."""

    whole: LogisticSoftmaxFamily
    n_classes: int = eqx.field(static=True)
    drawn: int = eqx.field(static=True)

    @property
    def factor(self) -> float:
        """C/K: what a drawn class stands for."""
        return self.n_classes / self.drawn

    def bound(self, y: DrawnLabel, mu: Latent, nu: Latent) -> Scalar:  # type: ignore[override]
        """The estimate of the tangent."""
        own = jnp.arange(mu.shape[0]) == y.place
        minus_logs = minus_log_p(mu, nu)
        slope = jnp.exp(self.whole.log_slope(y.log_total, self.n_classes))
        terms = jnp.where(own, mu - minus_logs, 0.0) + slope * jnp.exp(-minus_logs)
        held = self.n_classes - jnp.exp(y.log_total)
        return (
            self.factor * jnp.sum(terms)
            + self.whole.rivals(y.log_total, self.n_classes)
            - slope * held
        )

    def sites(self, y: DrawnLabel, mu: Latent, nu: Latent) -> Sites:  # type: ignore[override]
        """The sites of the whole at T, times C/K."""
        own = (jnp.arange(mu.shape[0]) == y.place).astype(mu.dtype)
        slope = self.whole.log_slope(y.log_total, self.n_classes)
        gamma = jnp.exp(slope - minus_log_p(mu, nu))
        tau, lam = (own + gamma) * pg_mean(mu**2 + nu), 0.5 * (own - gamma)
        return Sites(self.factor * tau, self.factor * lam)
