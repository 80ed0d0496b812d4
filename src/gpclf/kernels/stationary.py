"""Kernels of the scaled distance r between two points: RBF, the Matérn family, Laplace."""

from abc import abstractmethod
from dataclasses import fields
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from gpclf.kernels.absolute import absolute_distances
from gpclf.kernels.active import shown_columns
from gpclf.kernels.base import Point, Scalar, shown
from gpclf.kernels.lengthscale import Scaled

L1 = 0.8  # √(2/π): E|z| of a normal number beside √E z²


def _distance(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """√r², with derivative 0 at r = 0 where the root itself has none."""
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def _longer(kernel: "Stationary") -> float:
    """How much longer lengthscales of absolute distances are than those of squared ones."""
    inverse = np.exp(-np.asarray(kernel.log_lengthscale, np.float64))
    if inverse.ndim == 0:
        return 1.0
    return float(L1 * inverse.sum() / np.sqrt(np.sum(inverse**2)))


class Stationary(Scaled):
    """variance · profile(r²), r² = Σ_d (x_d − x′_d)² / lengthscale_d².

    `lengthscale`: one number, one per feature, or None: `start` times the median distance between
    rows, one for each feature if `ard`. `variance`: k(x, x). `active_dims`: the columns of the
    standardised rows that count; None: all.
    """

    start: float = eqx.field(static=True)
    half: ClassVar[float]  # the r at which the correlation is ½

    def __init__(
        self,
        lengthscale=None,
        variance=4.0,
        *,
        ard: bool = True,
        start: float = 1.0,
        active_dims=None,
    ):
        super().__init__(lengthscale, variance, ard, active_dims)
        self.start = start

    def first_lengthscale(self, median_distance: float, n_features: int) -> float:
        """`start` times the median distance."""
        return self.start * median_distance

    @staticmethod
    @abstractmethod
    def profile(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The correlation at squared scaled distance r²; 1 at 0."""

    @staticmethod
    @abstractmethod
    def fall(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """profile − 1, exact to the last digits near 0."""

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.variance * self.profile(jnp.sum((self.scaled(x) - self.scaled(y)) ** 2))

    def matrix(self, X: Real[Array, "N D"], Y: Real[Array, "M D"]) -> Float[Array, "N M"]:
        """The profile of all squared distances."""
        return self.variance * self.profile(self._squared_distances(X, Y))

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """The variance, and how far each entry falls below it, where the rows of Y are close."""
        spread = jnp.sum(self.scaled(Y - jnp.mean(Y, axis=0)) ** 2) / Y.shape[0]
        close = jnp.where(spread < 0.5, 1.0, 0.0).astype(X.dtype)  # r² is twice that on average
        fall = self.fall(self._squared_distances(X, Y))
        return close * self.variance, self.variance * (fall + (1 - close))

    def _squared_distances(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> Float[Array, "N M"]:
        """By one product, about the mean of Y so that little cancels; nothing depends on it."""
        centre = jax.lax.stop_gradient(jnp.mean(Y, axis=0))
        X, Y = self.scaled(X - centre), self.scaled(Y - centre)
        squared = jnp.sum(X**2, 1)[:, None] + jnp.sum(Y**2, 1)[None, :] - 2 * X @ Y.T
        return jnp.maximum(squared, 0.0)

    def diagonal(self, X: Real[Array, "N D"]) -> Float[Array, "N"]:
        """The variance, whatever the row."""
        return jnp.broadcast_to(self.variance, X.shape[:1]).astype(X.dtype)

    def of_family(self, family: "type[Stationary]") -> "Stationary":
        """One of another family, with the lengthscales at which typical correlations are equal.

        Half of the variance is left at the same typical distance.
        """
        made = object.__new__(family)
        for each in fields(self):
            object.__setattr__(made, each.name, getattr(self, each.name))
        change = np.log(self.half / family.half)
        if isinstance(self, Laplace) != issubclass(family, Laplace):
            change += np.log(_longer(self)) * (1 if issubclass(family, Laplace) else -1)
        object.__setattr__(made, "log_lengthscale", self.log_lengthscale + change)
        return made

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(lengthscale={shown(self.log_lengthscale)}, "
            f"variance={shown(self.log_variance)}{shown_columns(self.active_dims)})"
        )


class RBF(Stationary):
    """exp(−r²/2): very smooth functions."""

    half = 1.1774

    @staticmethod
    def profile(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """exp(−r²/2)."""
        return jnp.exp(-0.5 * squared)

    @staticmethod
    def fall(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """exp(−r²/2) − 1."""
        return jnp.expm1(-0.5 * squared)


class Matern12(Stationary):
    """exp(−r): rough, continuous functions."""

    half = 0.6931

    @staticmethod
    def profile(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """exp(−r)."""
        return jnp.exp(-_distance(squared))

    @staticmethod
    def fall(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """exp(−r) − 1."""
        return jnp.expm1(-_distance(squared))


class Matern32(Stationary):
    """(1 + √3 r) exp(−√3 r): functions with one derivative."""

    half = 0.9690

    @staticmethod
    def profile(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """(1 + √3 r) exp(−√3 r)."""
        r = _distance(3.0 * squared)
        return (1 + r) * jnp.exp(-r)

    @staticmethod
    def fall(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The profile less 1."""
        r = _distance(3.0 * squared)
        less = jnp.expm1(-r)
        return less + r * (1 + less)


class Matern52(Stationary):
    """(1 + √5 r + 5r²/3) exp(−√5 r): functions with two derivatives."""

    half = 1.0421

    @staticmethod
    def profile(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """(1 + √5 r + 5r²/3) exp(−√5 r)."""
        r = _distance(5.0 * squared)
        return (1 + r + 5.0 * squared / 3.0) * jnp.exp(-r)

    @staticmethod
    def fall(squared: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The profile less 1."""
        r = _distance(5.0 * squared)
        less = jnp.expm1(-r)
        return less + (r + 5.0 * squared / 3.0) * (1 + less)


class Laplace(Matern12):
    """exp(−Σ_d |x_d − x′_d| / lengthscale_d): rough along each feature on its own, as trees are.

    A product of Matérn-1/2 kernels of one feature each. Steps of a function that stand square to
    a feature cost it least.
    """

    def first_lengthscale(self, median_distance: float, n_features: int) -> float:
        """Where r is about what it is for the other kernels."""
        return super().first_lengthscale(median_distance, n_features) * L1 * n_features**0.5

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.variance * jnp.exp(-jnp.sum(jnp.abs(self.scaled(x) - self.scaled(y))))

    def parts(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> tuple[Scalar, Float[Array, "N M"]]:
        """As for the others, by the mean absolute distance."""
        spread = jnp.mean(jnp.sum(jnp.abs(self.scaled(Y - jnp.mean(Y, axis=0))), axis=1))
        close = jnp.where(spread < 0.5, 1.0, 0.0).astype(X.dtype)
        fall = self.fall(self._squared_distances(X, Y))
        return close * self.variance, self.variance * (fall + (1 - close))

    def _squared_distances(
        self, X: Real[Array, "N D"], Y: Real[Array, "M D"]
    ) -> Float[Array, "N M"]:
        """(Σ_d |x_d − y_d| / lengthscale_d)²."""
        return absolute_distances(self.scaled(X), self.scaled(Y)) ** 2


FAMILIES: tuple[type[Stationary], ...] = (
    RBF,
    Matern52,
    Matern32,
    Matern12,
    Laplace,
)  # ever rougher
