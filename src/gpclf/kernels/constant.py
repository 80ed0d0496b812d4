"""Kernels without a lengthscale: a constant, and white noise."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from gpclf.kernels.base import Kernel, Parameter, Point, Scalar, log_of, shown


class Constant(Kernel):
    """k = variance: a function that is one unknown number, or a scale when multiplied."""

    log_variance: Parameter

    def __init__(self, variance=1.0):
        self.log_variance = log_of("variance", variance, most_dimensions=0)

    def __call__(self, x: Point, y: Point) -> Scalar:
        return jnp.exp(self.log_variance)

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """The variance everywhere."""
        return jnp.full((X.shape[0], Y.shape[0]), jnp.exp(self.log_variance))

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """The variance and nothing."""
        return jnp.exp(self.log_variance), jnp.zeros((X.shape[0], Y.shape[0]), X.dtype)

    def __repr__(self) -> str:
        return f"Constant(variance={shown(self.log_variance)})"


class White(Kernel):
    """variance where x and x′ are the same point, else 0: a jump of its own at every point."""

    log_variance: Parameter

    def __init__(self, variance=0.1):
        self.log_variance = log_of("variance", variance, most_dimensions=0)

    def __call__(self, x: Point, y: Point) -> Scalar:
        return jnp.where(jnp.all(x == y), jnp.exp(self.log_variance), 0.0)

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The variance, whatever the row."""
        return jnp.full(X.shape[:1], jnp.exp(self.log_variance))

    def __repr__(self) -> str:
        return f"White(variance={shown(self.log_variance)})"
