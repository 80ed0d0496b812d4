"""The error of the input as a variance of the function: one place a row, and the slope there."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.gaussian import Moments
from gpclf.inputs.base import Errors, Rows, Whitening
from gpclf.inputs.noise import Noisy
from gpclf.kernels import Kernel


class FirstOrder(Noisy):
    """ν grows by ∇μᵀ V ∇μ: f(x̃ + ε) ≈ f(x̃) + εᵀ∇f(x̃), with the slope of the mean."""

    @property
    def bends(self) -> bool:
        """The slope is that of the mean of q."""
        return True

    def extra(
        self,
        kernel: Kernel,
        Z: Float[Array, "M D"],
        whitening: Whitening,
        q: Moments,
        X: Rows,
        std: Errors,
    ) -> Float[Array, "B"]:
        """Σ_d (std_d ∂μ/∂x_d)²: all rows by one pull back through k(X, Z)."""
        weights = whitening.matrix.T @ q.mean
        _, pull = jax.vjp(lambda X: kernel.matrix(X, Z), X)
        (slope,) = pull(jnp.broadcast_to(weights, (X.shape[0], len(weights))))
        return jnp.sum((self.std(X, std) * slope) ** 2, axis=1)
