"""Sums and products of kernels, written `a + b` and `a * b`."""

from typing import Any

import numpy as np
from jaxtyping import Array, Float, Real

from gpclf.kernels.base import Kernel, Point, Scalar
from gpclf.kernels.constant import Constant


def as_kernel(value: Any) -> Kernel:
    """A number stands for the constant kernel of that variance."""
    return value if isinstance(value, Kernel) else Constant(value)


class Sum(Kernel):
    """k₁ + k₂: the sum of two independent functions."""

    left: Kernel
    right: Kernel

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.left(x, y) + self.right(x, y)

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """The sum of both matrices."""
        return self.left.matrix(X, Y) + self.right.matrix(X, Y)

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """The sum of both constants, and of both rests."""
        (left, left_rest), (right, right_rest) = self.left.parts(X, Y), self.right.parts(X, Y)
        return left + right, left_rest + right_rest

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The sum of both diagonals."""
        return self.left.diagonal(X) + self.right.diagonal(X)

    def started(self, median_distance: float, n_features: int) -> Kernel:
        """Both parts started."""
        return Sum(
            self.left.started(median_distance, n_features),
            self.right.started(median_distance, n_features),
        )

    def stretched(self, lengthscale: float, variance: float) -> Kernel:
        """Both parts stretched."""
        return Sum(*(part.stretched(lengthscale, variance) for part in (self.left, self.right)))

    @property
    def expected(self) -> bool:
        """Whether one of both has."""
        return self.left.expected or self.right.expected

    def log_prior(self) -> Scalar:
        """The sum of both."""
        return self.left.log_prior() + self.right.log_prior()

    def relevance(self, n_features: int) -> Float[np.ndarray, "D"]:
        """The sum of both relevances."""
        return self.left.relevance(n_features) + self.right.relevance(n_features)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


class Product(Kernel):
    """k₁ · k₂."""

    left: Kernel
    right: Kernel

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.left(x, y) * self.right(x, y)

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """The product of both matrices, entry by entry."""
        return self.left.matrix(X, Y) * self.right.matrix(X, Y)

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """(c₁ + R₁)(c₂ + R₂), without its constant c₁c₂."""
        (left, left_rest), (right, right_rest) = self.left.parts(X, Y), self.right.parts(X, Y)
        return left * right, left * right_rest + left_rest * (right + right_rest)

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The product of both diagonals."""
        return self.left.diagonal(X) * self.right.diagonal(X)

    def started(self, median_distance: float, n_features: int) -> Kernel:
        """Both parts started."""
        return Product(
            self.left.started(median_distance, n_features),
            self.right.started(median_distance, n_features),
        )

    def stretched(self, lengthscale: float, variance: float) -> Kernel:
        """Both lengthscales, and the variance of one, which is that of the product."""
        left, right = (
            part.stretched(lengthscale, factor)
            for part, factor in ((self.left, variance), (self.right, 1.0))
        )
        return Product(left, right)

    @property
    def expected(self) -> bool:
        """Whether one of both has."""
        return self.left.expected or self.right.expected

    def log_prior(self) -> Scalar:
        """The sum of both."""
        return self.left.log_prior() + self.right.log_prior()

    def relevance(self, n_features: int) -> Float[np.ndarray, "D"]:
        """The sum of both relevances: the curvature of a product at distance 0 adds up."""
        return self.left.relevance(n_features) + self.right.relevance(n_features)

    def __repr__(self) -> str:
        parts = (f"({p!r})" if isinstance(p, Sum) else repr(p) for p in (self.left, self.right))
        return " * ".join(parts)
