"""Rows known exactly, and the interface that noisy ones will share.

A kind of input says what the rows of a chunk look like to one latent function: their marginals
(μ, ν) given the features a(x) and q(v). No engine knows which kind it is.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float

from gpclf.gaussian import Moments
from gpclf.linalg import quadratic_forms

Rows = Float[Array, "B D"]
Features = tuple[Float[Array, "B M"], Float[Array, "B"]]


class Inputs(eqx.Module):
    """From rows to the marginals of one latent function."""

    @abstractmethod
    def project(
        self, features: Callable[[Rows], Features], q: Moments, X: Rows
    ) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
        """μ and ν of the rows X under q, `features` giving (a(x), k(x, x))."""


class Exact(Inputs):
    """x is what was measured: μ = aᵀm, ν = k(x, x) − aᵀa + aᵀSa."""

    def project(
        self, features: Callable[[Rows], Features], q: Moments, X: Rows
    ) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
        """MATH §1; the features of rows are shared by all classes, which `vmap` leaves so."""
        A, diagonal = features(X)
        return A @ q.mean, diagonal + quadratic_forms(A, q.excess)
