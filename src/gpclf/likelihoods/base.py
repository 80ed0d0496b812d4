"""What a likelihood is: a bound on the expected log-probability of ONE row (docs/mathematics.md).

Everything inference asks for is the scalar ℓ(y, μ, ν) ≤ E_{N(f; μ, ν)} log p(y | f) and its
gradient, the Gaussian site. Lifting to chunks happens outside, by `vmap`. Any real array held by a
likelihood is a free parameter that climbs the same bound.
"""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.likelihoods.power import Power, class_log_probability, is_one, log_mean_power

Scalar = Float[Array, ""]
Label = Int[Array, ""]
Latent = Float[Array, "C"]


class Sites(NamedTuple):
    """The Gaussian factor exp(λf − ½τf²) that stands for a row in each latent function."""

    precision: Float[Array | np.ndarray, "*B G"]  # τ; G: C, or 1 for all
    linear: Float[Array | np.ndarray, "*B C"]  # λ


class RowBound(eqx.Module):
    """What inference climbs: a bound of one row, and its sites."""

    @abstractmethod
    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """ℓ(y, μ, ν), at most E log p(y | f) under independent f_c ~ N(μ_c, ν_c)."""

    def easier(self, n_latent: int) -> "RowBound":
        """What a posterior begins with: itself, if its gradient feels confident mistakes.

        Else a bound that does, of the same functions: the largest is the likeliest class.
        """
        return self

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ = −2 ∂ℓ/∂ν and λ = ∂ℓ/∂μ + τμ; override where the closed form is cheaper."""
        by_mean, by_variance = jax.grad(self.bound, argnums=(1, 2))(y, mu, nu)
        tau = -2 * by_variance
        return Sites(tau, by_mean + tau * mu)


class Likelihood(RowBound):
    """p(y | f) for class indices y = 0…C−1 and the vector f of latent functions at one row."""

    @abstractmethod
    def n_latent(self, n_classes: int) -> int:
        """How many latent functions model `n_classes` classes; ValueError if it cannot."""

    @abstractmethod
    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """log p(y | f)."""

    @abstractmethod
    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log E p(y = k | f) for every class k, the latent variance integrated out."""

    def log_evidence(self, y: Label, mu: Latent, nu: Latent, alpha: Power) -> Scalar:
        """log E p(y | f)^α: of power-EP's tilted law, 0 < α ≤ 1; override where it is closed."""
        if is_one(alpha) and mu.shape[0] > 1:
            return class_log_probability(self, y, mu, nu)
        return log_mean_power(lambda f: self.log_prob(y, f), mu, nu, alpha)

    def evidence_slopes(
        self, y: Label, mu: Latent, nu: Latent, alpha: Power
    ) -> tuple[Scalar, Latent, Latent]:
        """log Z = log E p(y | f)^α with g = ∂log Z/∂μ and h = ∂²log Z/∂μ² of each function.

        A Gaussian expectation solves the heat equation: h = 2 ∂log Z/∂ν − g².
        """
        value, (g, by_variance) = jax.value_and_grad(self.log_evidence, argnums=(1, 2))(
            y, mu, nu, alpha
        )
        return value, g, 2 * by_variance - g**2


class TwoClass(Likelihood):
    """A likelihood of one latent function and the sign ±1 of the class."""

    def n_latent(self, n_classes: int) -> int:
        """One function; two classes only."""
        if n_classes != 2:
            raise ValueError(
                f"{type(self).__name__} is a likelihood for two classes, but y has {n_classes}: "
                'use likelihood="auto" or "softmax".'
            )
        return 1


def sign(y: Label, dtype) -> Scalar:
    """Class 0 → −1, class 1 → +1."""
    return (2 * y - 1).astype(dtype)
