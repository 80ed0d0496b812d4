"""Kernels without a lengthscale: a constant, and white noise."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from gpclf.kernels.active import Columns, check_columns, columns_from, seen, shown_columns
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
    """variance where x and x′ are the same point, else 0: a jump of its own at every point.

    With `active_dims` points are the same where these columns of the standardised rows are.
    """

    log_variance: Parameter
    active_dims: Columns = eqx.field(static=True)

    def __init__(self, variance=0.1, *, active_dims=None):
        self.log_variance = log_of("variance", variance, most_dimensions=0)
        self.active_dims = columns_from(active_dims)

    def __call__(self, x: Point, y: Point) -> Scalar:
        same = jnp.all(seen(self.active_dims, x) == seen(self.active_dims, y))
        return jnp.where(same, jnp.exp(self.log_variance), 0.0)

    def started(self, median_distance: float, n_features: int) -> Kernel:
        """As it is, if rows have its columns."""
        check_columns(self.active_dims, n_features)
        return self

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The variance, whatever the row."""
        return jnp.full(X.shape[:1], jnp.exp(self.log_variance))

    def __repr__(self) -> str:
        columns = shown_columns(self.active_dims)
        return f"White(variance={shown(self.log_variance)}{columns})"
