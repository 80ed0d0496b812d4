"""Algebra on M×M matrices: NumPy in float64, no compilation; and one quadratic form over rows.

A fit factorises a few small matrices a step. LAPACK called from here does that without the seconds
that XLA takes to compile it, and without its batched calls, which can wait for each other for ever
in the CPU thread pool (seen with jaxlib 0.10 on two cores).
"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import get_lapack_funcs
from threadpoolctl import ThreadpoolController


def one_thread():
    """A scope in which BLAS keeps to one thread.

    Beside XLA's own threads a second pool fights for the same cores; on two of them small
    factorisations then take many times as long as alone.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """Those with threads; to find them takes a tenth of a second."""
    return ThreadpoolController()


_potrf, _potri, _trtri = get_lapack_funcs(("potrf", "potri", "trtri"), dtype=np.float64)

GROWTH = 10.0
LARGEST_JITTER = 0.1

Matrix = Float[np.ndarray, "M M"]


def cholesky(K: Matrix, jitter: float) -> tuple[Matrix, float]:
    """The lower factor of `K + jitter·mean(diag K)·I`, and the jitter that was used.

    Where the factorisation fails, the jitter grows tenfold until it succeeds, to at most 0.1. What
    cannot be factorised even so (a NaN) gives a factor of NaN: a value the caller looks at.
    """
    scale = np.mean(np.diagonal(K))
    while jitter <= LARGEST_JITTER:
        factor = plain_cholesky(K + jitter * scale * np.eye(len(K)))
        if factor is not None:
            return factor, jitter
        jitter *= GROWTH
    return np.full_like(K, np.nan), jitter


def plain_cholesky(K: Matrix) -> Matrix | None:
    """The lower factor of K, or None if K is not positive definite."""
    factor, info = _potrf(K.T, lower=1, clean=1)  # LAPACK reads columns: K.T needs no rearranging
    return factor if info == 0 and np.isfinite(factor[-1, -1]) else None


def lower_inverse(L: Matrix) -> Matrix:
    """The inverse of a lower triangular matrix: once a step, so that rows meet only products."""
    return _trtri(L, lower=1)[0]


def inverse(factor: Matrix) -> Matrix:
    """K⁻¹ from the lower factor of K, symmetric to the last bit."""
    lower = _potri(factor, lower=1)[0]  # above the diagonal the factor's zeros
    whole = lower + lower.T
    whole[np.diag_indices_from(whole)] *= 0.5
    return whole


def lower_inverse_pullback(inverse: Matrix, by_inverse: Matrix) -> Matrix:
    """From the gradient by W = chol(K)⁻¹ to the one by K: −WᵀΦ(W̄Wᵀ)W, made symmetric.

    Φ keeps the lower triangle and halves its diagonal: dW = −Φ(W dK Wᵀ) W.
    """
    inner = np.tril(by_inverse @ inverse.T)
    inner[np.diag_indices_from(inner)] *= 0.5
    by_K = -inverse.T @ inner @ inverse
    return 0.5 * (by_K + by_K.T)


@jax.custom_vjp
def quadratic_forms(A: Float[Array, "B M"], S: Float[Array, "M M"]) -> Float[Array, "B"]:
    """aᵀSa for every row a of A; S symmetric.

    Its own derivative rule spends one product where the automatic one spends two: the gradient by
    A is twice the product A S that the value needed anyway.
    """
    return jnp.sum(A * (A @ S), axis=1)


def _quadratic_forms_forward(A, S):
    product = A @ S
    return jnp.sum(A * product, axis=1), (A, product)


def _quadratic_forms_backward(residuals, g):
    A, product = residuals
    return 2 * g[:, None] * product, (g[:, None] * A).T @ A


quadratic_forms.defvjp(_quadratic_forms_forward, _quadratic_forms_backward)


Vectors = Float[np.ndarray, "C K"]


def conjugate_gradients(
    product: Callable[[Vectors], Vectors],
    condition: Callable[[Vectors], Vectors],
    right: Vectors,
    *,
    most: int,
    left: float,
) -> Vectors:
    """C vectors x with P x ≈ `right`, P positive definite and known by `product` alone.

    By at most so many products, until the residual has so much `left` of its length; `condition`
    is multiplication with about P⁻¹. From 0 on every iterate has rightᵀx ≥ 0: a way up.
    """

    def dot(x: Vectors, y: Vectors) -> Float[np.ndarray, "C 1"]:
        return np.sum(x * y, axis=1, keepdims=True)

    tiny = np.finfo(np.float64).tiny
    x, rest = np.zeros_like(right), right
    way = condition(rest)
    size = dot(rest, way)
    for _ in range(most):
        bent = product(way)
        length = size / np.maximum(dot(way, bent), tiny)
        x, rest = x + length * way, rest - length * bent
        if np.all(dot(rest, rest) <= left**2 * dot(right, right)):
            break
        near = condition(rest)
        before, size = size, dot(rest, near)
        way = near + size / np.maximum(before, tiny) * way
    return x
