"""What a kernel is: k(x, x′) for two points.

`matrix` and `diagonal` lift it to tables; a kernel overrides them where a matrix product is
faster, and the tests hold both forms equal. Parameters are positive and stored as logarithms, so
every real array of a kernel is a free parameter for any optimiser.
"""

from abc import abstractmethod
from copy import copy
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from gpclf.kernels.prior import Prior

Scalar = Float[Array, ""]
Point = Real[Array, "D"]
Parameter = Any  # a NumPy array as given, a JAX array while fitting, None where data decide


def log_of(name: str, value: Any, *, most_dimensions: int) -> Parameter:
    """The logarithm of a positive parameter, or a sentence that says what is wrong with it."""
    array = np.asarray(value, np.float64)
    if array.ndim > most_dimensions:
        shape = "a number" if most_dimensions == 0 else "a number or one value per feature"
        raise ValueError(f"{name} must be {shape}, got an array of shape {array.shape}.")
    if not (np.all(np.isfinite(array)) and np.all(array > 0)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    return np.log(array)


class Kernel(eqx.Module):
    """A positive definite function of two points; `+` and `*` combine kernels."""

    priors: tuple[tuple[str, Prior], ...] = eqx.field(static=True, default=(), kw_only=True)

    @abstractmethod
    def __call__(self, x: Point, y: Point) -> Scalar:
        """k(x, y)."""

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """k of every row of X with every row of Y."""
        return jax.vmap(lambda x: jax.vmap(lambda y: self(x, y))(Y))(X)

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """A constant and the rest of the matrix.

        Where lengthscales are long, k is nearly constant and all that tells rows apart is in the
        rest: a kernel that can compute it directly keeps digits that single precision would lose.
        """
        return jnp.zeros((), X.dtype), self.matrix(X, Y)

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """k(x, x) of every row of X."""
        return jax.vmap(lambda x: self(x, x))(X)

    def by_product(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> Float[Array, "N M"] | None:
        """∂k/∂p of every pair, where k is a function of the product p of scaled points only."""
        return None

    def product_slopes(self, Y: Real[Array, "M D"]) -> Float[Array, "M D"] | None:
        """∂p/∂x of the product of any x with every row of Y, for such a kernel."""
        return None

    def started(self, median_distance: float, n_features: int) -> "Kernel":
        """This kernel with the parameters that were left to the data filled in."""
        return self

    def stretched(self, lengthscale: float, variance: float) -> "Kernel":
        """This kernel with all lengthscales, and its variance, so many times as large."""
        factors = {"log_lengthscale": lengthscale, "log_variance": variance}
        changed = copy(self)
        for name, factor in factors.items():
            if getattr(self, name, None) is not None:
                object.__setattr__(changed, name, getattr(self, name) + np.log(factor))
        return changed

    def with_prior(self, **priors: Any) -> "Kernel":
        """This kernel with laws of its parameters: `RBF().with_prior(variance=LogNormal(1, 0.5))`.

        They are laws of logarithms, and enter the objective of every engine as a further row would.
        One of a lengthscale takes the place of the law that keeps lengthscales alike.
        """
        names = [f.name.removeprefix("log_") for f in fields(self) if f.name.startswith("log_")]
        for name, prior in priors.items():
            if name not in names:
                known = f"its parameters are {', '.join(names)}" if names else "its parts have them"
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {known}.")
            if not isinstance(prior, Prior):
                raise ValueError(
                    f"The prior of {name} must be a Prior, such as LogNormal(1.0, 0.5), "
                    f"got {prior!r}."
                )
        changed = copy(self)
        object.__setattr__(changed, "priors", tuple((dict(self.priors) | priors).items()))
        return changed

    @property
    def expected(self) -> bool:
        """Whether it has a prior of the user's own."""
        return bool(self.priors)

    def log_prior(self) -> Scalar:
        """What is expected of the parameters before any row is seen, up to a constant."""
        total = jnp.zeros(())
        for name, prior in self.priors:
            log_value = getattr(self, f"log_{name}")
            if log_value is not None:
                total = total + jnp.sum(prior.log_density(jnp.asarray(log_value)))
        return total

    def relevance(self, n_features: int) -> Float[np.ndarray, "D"]:
        """How fast k falls along each feature, as an inverse squared lengthscale, weighted by k."""
        return np.zeros(n_features)

    def __add__(self, other: "Kernel | float") -> "Kernel":
        from gpclf.kernels.combination import Sum, as_kernel

        return Sum(self, as_kernel(other))

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        from gpclf.kernels.combination import Product, as_kernel

        return Product(self, as_kernel(other))

    __radd__ = __add__
    __rmul__ = __mul__


def shown(log_value: Parameter) -> str:
    """A parameter as a person wants to read it."""
    if log_value is None:
        return "None"
    value = np.exp(np.asarray(log_value, np.float64))
    return np.array2string(value, precision=3, separator=", ", threshold=12)
