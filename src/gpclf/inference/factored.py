"""q(v) = N(m, LLᵀ) by a lower triangular factor: numbers that may take any value.

The diagonal of L is held as its logarithm, so that no step of an optimiser leaves the Gaussians:
L_ii = exp(l_ii) > 0 makes LLᵀ positive definite, and log det S = 2 Σ l_ii is smooth everywhere.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from gpclf.gaussian import Moments, Natural
from gpclf.gaussian import moments as moments_of_natural
from gpclf.linalg import plain_cholesky


class Factored(NamedTuple):
    """Means, and factors with the logarithm of their diagonal; zero above it.

    Where m has more entries than L has rows, the others have the prior's variance.
    """

    mean: Float[Array | np.ndarray, "C K"]
    root: Float[Array | np.ndarray, "C M M"]


def factors(q: Factored) -> Float[np.ndarray, "C M M"]:
    """L of every function."""
    L = np.tril(np.asarray(q.root), -1)
    at = np.arange(L.shape[-1])
    L[:, at, at] = np.exp(np.diagonal(q.root, axis1=1, axis2=2))
    return L


def factored(q: Natural | Moments) -> Factored:
    """The same Gaussians by their factors."""
    m = moments_of_natural(q)[0] if isinstance(q, Natural) else q
    eye = np.eye(m.excess.shape[-1])
    root = np.empty_like(m.excess)
    for c, excess in enumerate(np.asarray(m.excess)):
        L = plain_cholesky(eye + excess)
        root[c] = np.full_like(excess, np.nan) if L is None else np.tril(L)
        root[c][np.diag_indices_from(excess)] = np.log(np.diagonal(root[c]))
    return Factored(np.array(m.mean), root)


def moments(q: Factored) -> tuple[Moments, float]:
    """The moments, and Σ KL(q ‖ N(0, I)) = ½(‖L‖² + mᵀm − M) − Σ log L_ii."""
    L, mean = factors(q), np.asarray(q.mean)
    n_latent, size, _ = L.shape
    excess = L @ np.swapaxes(L, 1, 2)
    excess[:, np.arange(size), np.arange(size)] -= 1.0
    logs = np.sum(np.diagonal(q.root, axis1=1, axis2=2))
    kl = 0.5 * (np.sum(L**2) + np.sum(mean**2) - n_latent * size) - logs
    return Moments(mean, excess), float(kl)


def elbo_pullback(q: Factored, by: Moments) -> Factored:
    """The gradient of F(m, S) − KL by (m, L), from the gradient (g, G) of F by (m, S).

    g − m by m. By L, where dS = dL Lᵀ + L dLᵀ: the lower triangle of (G + Gᵀ)L − L, and + 1/L_ii on
    the diagonal; by log L_ii that times L_ii.
    """
    L, by_S = factors(q), np.asarray(by.excess)
    by_root = np.tril((by_S + np.swapaxes(by_S, 1, 2)) @ L - L)
    at = np.arange(L.shape[-1])
    by_root[:, at, at] = by_root[:, at, at] * L[:, at, at] + 1.0
    return Factored(np.asarray(by.mean) - np.asarray(q.mean), by_root)
