"""The error of the input as a variance of the function: one place a row, and the slope there."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.gaussian import Moments
from gpclf.inputs.base import Errors, Features, PredictionNodes, Rows, Whitening
from gpclf.inputs.noise import Noisy
from gpclf.kernels import Kernel
from gpclf.linalg import quadratic_forms

PREDICTIVES = ("nodes", "first-order")


class FirstOrder(Noisy):
    """ν grows by ∇μᵀ V ∇μ: f(x̃ + ε) ≈ f(x̃) + εᵀ∇f(x̃), with the slope of the mean.

    Where k is a function of a product of scaled points, ∇μ = Σ_m w_m k′_m z_m / lengthscale²: k′ is
    found beside the features, and what is left is a product of (B, M) and (M, D) for each function.
    Where all rows have the same errors there are two forms of it, and the smaller one is taken:
    ∇μᵀ V ∇μ = Σ_mn k′_m k′_n w_m w_n G_mn with G_mn = Σ_d V_d z_md z_nd / lengthscale_d⁴.

    `predictive`: at prediction "nodes" integrates over N(x̃, V) as all kinds do; "first-order" adds
    ∇μᵀ V ∇μ to ν there, too (Villacampa-Calvo et al. 2020, eq. 15).
    """

    predictive: str = eqx.field(static=True, default="nodes")

    def __check_init__(self) -> None:
        if self.predictive not in PREDICTIVES:
            names = ", ".join(map(repr, PREDICTIVES))
            raise ValueError(f"predictive must be one of {names}, got {self.predictive!r}.")

    @property
    def bends(self) -> bool:
        """The slope is that of the mean of q."""
        return True

    def features(
        self,
        kernel: Kernel,
        Z: Float[Array, "M D"],
        whitening: Whitening,
        X: Float[Array, "R D"],
    ) -> Features:
        """Also ∂k/∂p, by the product that k itself needs."""
        plain = super().features(kernel, Z, whitening, X)
        return plain._replace(by_product=kernel.by_product(X, Z))

    def reach(
        self, kernel: Kernel, Z: Float[Array, "M D"], X: Rows, std: Errors
    ) -> Float[Array, "M M"] | None:
        """G, where all rows have the same errors and it is the smaller form."""
        errors, slopes = self.std(X, std), kernel.product_slopes(Z)
        if slopes is None or len(errors) > 1 or Z.shape[0] > Z.shape[1]:
            return None
        return (slopes * errors) @ (slopes * errors).T

    def extra(
        self,
        kernel: Kernel,
        Z: Float[Array, "M D"],
        whitening: Whitening,
        reach: Any,
        features: Features,
        q: Moments,
        X: Rows,
        std: Errors,
    ) -> Float[Array, "B"]:
        """Σ_d (std_d ∂μ/∂x_d)²; for other kernels all rows by one pull back through k(X, Z)."""
        weights = whitening.matrix.T @ q.mean
        if reach is not None and features.by_product is not None:
            return quadratic_forms(features.by_product, weights[:, None] * reach * weights)
        slopes = kernel.product_slopes(Z)
        if slopes is not None and features.by_product is not None:
            slope = (features.by_product * weights) @ slopes
        else:
            _, pull = jax.vjp(lambda X: kernel.matrix(X, Z), X)
            (slope,) = pull(jnp.broadcast_to(weights, (X.shape[0], len(weights))))
        return jnp.sum((self.std(X, std) * slope) ** 2, axis=1)

    def at_prediction(self, X: Rows, std: Errors, count: int) -> PredictionNodes:
        """Nodes, or x itself and an error for the slope there."""
        if self.predictive == "nodes":
            return super().at_prediction(X, std, count)
        return PredictionNodes(X, std)
