"""Rows known exactly, and the interface that noisy ones will share.

A kind of input says what a row looks like to one latent function, in two steps: its features under
the kernel, which do not know q, and from them its marginals (μ, ν) under q. No engine knows which
kind it is.
"""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from gpclf.gaussian import Moments
from gpclf.kernels import Kernel
from gpclf.linalg import quadratic_forms

Rows = Float[Array, "B D"]


class Whitening(eqx.Module):
    """L⁻¹, LLᵀ = k(Z, Z) + jitter, and L⁻¹1 for a constant part of k: a sum that cancels."""

    matrix: Float[Array | np.ndarray, "*G M M"]
    ones: Float[Array | np.ndarray, "*G M"]


class Features(NamedTuple):
    """What the kernel makes of rows: a(x) = L⁻¹k(Z, x), and k(x, x)."""

    A: Float[Array, "*C B M"]
    diagonal: Float[Array, "*C B"]


class Inputs(eqx.Module):
    """From rows to the marginals of one latent function."""

    @abstractmethod
    def features(
        self, kernel: Kernel, Z: Float[Array, "M D"], whitening: Whitening, X: Rows
    ) -> Features:
        """The features of the rows X."""

    @abstractmethod
    def marginals(
        self, features: Features, q: Moments
    ) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
        """μ and ν of the rows under q."""


class Exact(Inputs):
    """x is what was measured: μ = aᵀm, ν = k(x, x) − aᵀa + aᵀSa (docs/mathematics.md)."""

    def features(
        self, kernel: Kernel, Z: Float[Array, "M D"], whitening: Whitening, X: Rows
    ) -> Features:
        """One product for the kernel, one for the whitening."""
        constant, rest = kernel.parts(X, Z)
        return Features(constant * whitening.ones + rest @ whitening.matrix.T, kernel.diagonal(X))

    def marginals(
        self, features: Features, q: Moments
    ) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
        """One product: A(S − I)."""
        A, diagonal = features
        return A @ q.mean, diagonal + quadratic_forms(A, q.excess)
