"""From rows to latent marginals to class probabilities, in chunks.

A row's result does not depend on the other rows of a call. Rows are padded to one of two lengths,
so that after the first calls nothing is compiled again.
"""

import weakref
from collections import deque
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.compilation import compiled_once, program
from gpclf.posterior import Posterior
from gpclf.precision import cast, double_precision

FEW, MANY = 32, 2048
AHEAD = 2  # chunks that are computed while an earlier one is copied
BLOCKS = 8  # of columns of a triangular matrix: 9/16 of the products are left
NARROWEST = 100  # columns of all functions together, below which a product is slow

Rows = Float[Array, "B D"]


def _marginals(posterior: Posterior, X: Rows) -> tuple[Float[Array, "B C"], Float[Array, "B C"]]:
    prepared = posterior.prepared
    if posterior.roots is None:
        return prepared.marginals(prepared.features(X), posterior.q)
    kernel = prepared.model.kernel
    roots = posterior.roots
    constant, rest = kernel.parts(X, jnp.asarray(prepared.Z))
    mu = rest @ roots.weights.T + constant * roots.weights_of_one
    diagonal = kernel.diagonal(X)[:, None]
    nu = diagonal - _squared_norms(rest, jnp.asarray(roots.root), constant * roots.root_of_one)
    return mu, jnp.maximum(nu, jnp.finfo(X.dtype).eps * diagonal)


_marginals_program = program(_marginals, options=None)


def _squared_norms(
    K: Float[Array, "B M"], root: Float[Array, "C M M"], shift: Float[Array, "C M"]
) -> Float[Array, "B C"]:
    """‖R_cᵀk + s_c‖² of every row k: products of blocks, those above the diagonal left out."""
    n_latent, size, _ = root.shape
    width = max(-(-size // BLOCKS), -(-NARROWEST // n_latent))
    total = jnp.zeros((K.shape[0], n_latent), K.dtype)
    for first in range(0, size, width):
        block = root[:, first:, first : first + width]
        joined = jnp.moveaxis(block, 0, 1).reshape(size - first, -1)
        projected = (K[:, first:] @ joined).reshape(K.shape[0], n_latent, -1)
        total = total + jnp.sum((projected + shift[:, first : first + width]) ** 2, axis=2)
    return total


def _log_probabilities(posterior: Posterior, X: Rows) -> Float[Array, "B K"]:
    mu, nu = _marginals(posterior, X)
    return jax.vmap(posterior.likelihood.log_probabilities)(mu, nu)


_log_probabilities_program = program(_log_probabilities, options=None)


_on_device: dict[int, Posterior] = {}


def _ready(posterior: Posterior) -> Posterior:
    """What rows need of a posterior, in their precision and on the device; made once, then kept."""
    key = id(posterior)
    if key not in _on_device:
        weakref.finalize(posterior, _on_device.pop, key, None)
        needed = cast(posterior, np.dtype(posterior.row_dtype))
        if posterior.roots is not None:
            needed = eqx.tree_at(lambda p: (p.prepared.whitening, p.q), needed, (None, None))
        _on_device[key] = jax.device_put(needed)
    return _on_device[key]


def _in_chunks(function: Callable, posterior: Posterior, X: np.ndarray) -> list[np.ndarray]:
    """The leaves of `function(posterior, rows)` for all rows, in float64."""
    X = np.asarray(X, posterior.row_dtype)
    size = FEW if len(X) <= FEW else MANY
    posterior = _ready(posterior)
    parts, under_way = [], deque()

    def collect() -> None:
        count, result = under_way.popleft()
        parts.append([np.asarray(leaf, np.float64)[:count] for leaf in jax.tree.leaves(result)])

    for first in range(0, len(X), size):
        rows = X[first : first + size]
        if len(rows) < size:
            rows = np.concatenate([rows, np.zeros((size - len(rows), X.shape[1]), X.dtype)])
        under_way.append((min(size, len(X) - first), function(posterior, rows)))
        if len(under_way) > AHEAD:
            collect()
    while under_way:
        collect()
    return [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]


@compiled_once
@double_precision
def latent_marginals(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every latent function at every row: two (N, C) arrays."""
    mu, nu = _in_chunks(_marginals_program, posterior, X)
    return mu, nu


@compiled_once
@double_precision
def log_probabilities(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    """log p(class | row), latent variance integrated out: (N, K); each row's exp sums to one."""
    (logs,) = _in_chunks(_log_probabilities_program, posterior, X)
    return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
