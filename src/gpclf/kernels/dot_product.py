"""Kernels of the scaled inner product of two points: linear and polynomial functions."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from gpclf.kernels.active import in_place, shown_columns
from gpclf.kernels.base import Parameter, Point, Scalar, log_of, shown
from gpclf.kernels.lengthscale import Scaled


class Polynomial(Scaled):
    """variance · (bias + Σ_d x_d x′_d / lengthscale_d²)^degree.

    `lengthscale`: one number, one per feature, or None: √D, one for each feature if `ard`, so
    that the inner product of standardised rows starts near one. `active_dims`: the columns of the
    standardised rows that count; None: all.
    """

    log_bias: Parameter
    degree: int = eqx.field(static=True)

    def __init__(
        self,
        degree: int,
        lengthscale=None,
        variance=1.0,
        bias=1.0,
        *,
        ard: bool = True,
        active_dims=None,
    ):
        if not (isinstance(degree, int) and degree >= 1):
            raise ValueError(f"degree must be a whole number of at least 1, got {degree!r}.")
        super().__init__(lengthscale, variance, ard, active_dims)
        self.log_bias = log_of("bias", bias, most_dimensions=0)
        self.degree = degree

    def _of_products(self, products: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.variance * (jnp.exp(self.log_bias) + products) ** self.degree

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self._of_products(jnp.sum(self.scaled(x) * self.scaled(y)))

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """Inner products by one matrix product."""
        return self._of_products(self.scaled(X) @ self.scaled(Y).T)

    def by_product(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """variance · degree · (bias + p)^(degree − 1)."""
        products = self.scaled(X) @ self.scaled(Y).T
        return (
            self.variance * self.degree * (jnp.exp(self.log_bias) + products) ** (self.degree - 1)
        )

    def product_slopes(self, Y: Real[Array, "M D"]) -> Float[Array, "M D"]:
        """y / lengthscale², and 0 along columns that do not count."""
        slopes = self.scaled(Y) * jnp.exp(-self.log_lengthscale)
        return in_place(self.active_dims, slopes, Y.shape[1])

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The kernel of each row with itself."""
        return self._of_products(jnp.sum(self.scaled(X) ** 2, axis=1))

    def first_lengthscale(self, median_distance: float, n_features: int) -> float:
        """√D."""
        return n_features**0.5

    def __repr__(self) -> str:
        return (
            f"Polynomial(degree={self.degree}, lengthscale={shown(self.log_lengthscale)}, "
            f"variance={shown(self.log_variance)}, bias={shown(self.log_bias)}"
            f"{shown_columns(self.active_dims)})"
        )


class Linear(Polynomial):
    """variance · (bias + Σ_d x_d x′_d / lengthscale_d²): functions that are straight lines."""

    def __init__(
        self, lengthscale=None, variance=1.0, bias=1.0, *, ard: bool = True, active_dims=None
    ):
        super().__init__(1, lengthscale, variance, bias, ard=ard, active_dims=active_dims)

    def __repr__(self) -> str:
        return super().__repr__().replace("Polynomial(degree=1, ", "Linear(")
