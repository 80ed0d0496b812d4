"""From rows to latent marginals to class probabilities, in chunks.

A row's result does not depend on the other rows of a call. Rows are padded to one of three lengths,
so that after the first calls nothing is compiled again.
"""

import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.compilation import PLAIN, compiled_once, program
from gpclf.inputs.scatter import scattered
from gpclf.posterior import Posterior
from gpclf.precision import cast, double_precision
from gpclf.quadrature import graded

LENGTHS = (32, 512, 2048)  # of chunks: the shortest that holds all rows, or the longest
DRAWS = 1024  # of several functions at once, by a Sobol sequence: always the same ones
ROWS_AT_ONCE = 64  # whose draws fit in the cache
AHEAD = 2  # chunks that are computed while an earlier one is copied
NODES = 512  # of the integral over where a row is whose inputs have errors
NODES_SPREAD = 64  # of the same where several functions are drawn at each
LENGTHS_SCATTERED = (4, 32)  # with so many nodes for each row
BLOCKS = 8  # of columns of a triangular matrix: 9/16 of the products are left
NARROWEST = 100  # columns of all functions together, below which a product is slow

Rows = Float[Array, "B D"]
Marginals = Float[Array, "B C"]
Errors = Float[Array, "B D"] | None  # standard deviations of the errors of rows


def _marginals(posterior: Posterior, X: Rows) -> tuple[Marginals, Marginals]:
    prepared = posterior.prepared
    if posterior.roots is None:
        return prepared.marginals(prepared.features(X), posterior.q)
    kernel, Z = prepared.model.kernel, jnp.asarray(prepared.Z)
    weights, root = posterior.roots.weights, jnp.asarray(posterior.roots.root)
    if posterior.roots.of_one is None:  # `exp`, a third faster than `expm1`
        K, shift = kernel.matrix(X, Z), jnp.zeros((), X.dtype)
        mu = K @ weights.T
    else:
        constant, K = kernel.parts(X, Z)
        mu_of_one, root_of_one = posterior.roots.of_one
        mu, shift = K @ weights.T + constant * mu_of_one, constant * root_of_one
    diagonal = kernel.diagonal(X)[:, None]
    shift = jnp.broadcast_to(shift, root.shape[:2])
    nu = diagonal - _squared_norms(K[:, : root.shape[1]], root, shift)
    nu = jnp.broadcast_to(nu, mu.shape)  # functions may have a root in common
    return mu, jnp.maximum(nu, jnp.finfo(X.dtype).eps * diagonal)


def _slope_variance(posterior: Posterior, X: Rows, std: Float[Array, "B D"]) -> Marginals:
    """Σ_d (std_d ∂μ/∂x_d)² of every function: what an error adds to ν to first order."""
    mu, pull = jax.vjp(lambda X: _marginals(posterior, X)[0], X)

    def of_function(chosen: Float[Array, "C"]) -> Float[Array, "B"]:
        (slope,) = pull(jnp.broadcast_to(chosen, mu.shape))
        return jnp.sum((std * slope) ** 2, axis=1)

    return jax.lax.map(of_function, jnp.eye(mu.shape[1], dtype=mu.dtype)).T


_marginals_program = program(_marginals, options=None)


@partial(program, options=PLAIN)
def _constant_program(posterior: Posterior) -> Float[Array, ""]:
    """The part of k that is the same for all rows, where points are close."""
    Z = jnp.asarray(posterior.prepared.Z)
    return posterior.prepared.model.kernel.parts(Z[:1], Z)[0]


def _squared_norms(
    K: Float[Array, "B M"], root: Float[Array, "G M M"], shift: Float[Array, "G M"]
) -> Float[Array, "B G"]:
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


@partial(program, options=None)
def _log_probabilities_program(posterior: Posterior, X: Rows, std: Errors) -> Float[Array, "B K"]:
    """The logarithm of the mean over the nodes that the inputs have for each row."""
    nodes = posterior.prepared.model.inputs.at_prediction(X, std, NODES)
    mu, nu = _marginals(posterior, nodes.X)
    if nodes.slope_std is not None:
        nu = nu + _slope_variance(posterior, nodes.X, nodes.slope_std)
    logs = jax.vmap(posterior.likelihood.log_probabilities)(mu, nu)
    return _normalised(jax.nn.logsumexp(logs.reshape(len(X), -1, logs.shape[1]), axis=1))


def _normalised(logs: Float[Array, "B K"]) -> Float[Array, "B K"]:
    """The same up to a constant a row, in float64, so that each row's exp sums to one."""
    return jax.nn.log_softmax(logs.astype(jnp.float64), axis=1)


_on_device: dict[int, Posterior] = {}


def _ready(posterior: Posterior) -> Posterior:
    """What rows need of a posterior, in their precision and on the device; made once, then kept."""
    key = id(posterior)
    if key not in _on_device:
        weakref.finalize(posterior, _on_device.pop, key, None)
        needed = cast(posterior, np.dtype(posterior.row_dtype))
        if posterior.roots is not None:
            needed = eqx.tree_at(lambda p: (p.prepared.whitening, p.q), needed, (None, None))
            if _constant_program(needed) == 0:
                needed = eqx.tree_at(lambda p: p.roots.of_one, needed, None)
        _on_device[key] = jax.device_put(needed)
    return _on_device[key]


def _filled(rows: np.ndarray, size: int) -> np.ndarray:
    """Rows and zeros after them, so many in all."""
    if len(rows) == size:
        return rows
    return np.concatenate([rows, np.zeros((size - len(rows), rows.shape[1]), rows.dtype)])


def _in_chunks(
    function: Callable,
    posterior: Posterior,
    X: np.ndarray,
    std: np.ndarray | None = None,
    in_pairs: bool = False,
) -> list[np.ndarray]:
    """The leaves of `function(posterior, rows, errors)` for all rows, in float64.

    Chunks of one function follow each other closely, without waiting for results; those of several,
    or of a `function` that goes row by row, go in pairs, because they keep one core busier than the
    other.
    """
    tables = [np.asarray(part, posterior.row_dtype) for part in (X, std) if part is not None]
    lengths = LENGTHS if std is None else LENGTHS_SCATTERED
    size = next((length for length in lengths if length >= len(X)), lengths[-1])
    ready = _ready(posterior)

    def start(first: int) -> list[Array]:
        parts = [_filled(part[first : first + size], size) for part in tables]
        return jax.tree.leaves(function(ready, parts[0], None if std is None else parts[1]))

    def collect(first: int, leaves: list[Array]) -> list[np.ndarray]:
        return [np.asarray(leaf, np.float64)[: len(X) - first] for leaf in leaves]

    firsts = range(0, len(X), size)
    if (in_pairs or posterior.n_latent > 1) and len(firsts) > 1:
        with ThreadPoolExecutor(2) as pool:
            whole = double_precision(lambda first: collect(first, start(first)))
            parts = list(pool.map(whole, firsts))
    else:
        parts, under_way = [], deque()
        for first in firsts:
            under_way.append((first, start(first)))
            if len(under_way) > AHEAD:
                parts.append(collect(*under_way.popleft()))
        parts += [collect(*each) for each in under_way]
    return [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]


@compiled_once
@double_precision
def latent_marginals(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every latent function at every row: two (N, C) arrays."""
    mu, nu = _in_chunks(lambda p, X, _: _marginals_program(p, X), posterior, X)
    return mu, nu


@compiled_once
@double_precision
def log_probabilities(
    posterior: Posterior, X: np.ndarray, std: np.ndarray | None = None
) -> np.ndarray:
    """log p(class | row), latent variance integrated out: (N, K); each row's exp sums to one.

    With the standard deviations of their errors, where rows may be is integrated out, too.
    """
    (logs,) = _in_chunks(_log_probabilities_program, posterior, X, std)
    return logs


class Spread(NamedTuple):
    """How far the probabilities p(k | f) of each row vary with f, under the posterior.

    Where a row may be in several places x: E_x of the variance there, and E_x of the information.
    """

    std: Float[Array | np.ndarray, "B K"]  # of each probability
    information: Float[Array | np.ndarray, "B"]  # H[E p] − E H[p] in nats, never negative


@cache
def _normal_draws(n_latent: int) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import qmc  # slow to import

    return ndtri(qmc.Sobol(n_latent, rng=np.random.default_rng(0)).random(DRAWS))


def _spread(posterior: Posterior, draws: Float[Array, "S C"], X: Rows, std: Errors) -> Spread:
    """At x, or the mean over nodes: what the error adds to ν is nothing that labels would tell."""
    if std is None:
        return _spread_at(posterior, draws, X)
    nodes = scattered(X, std, NODES if draws.shape[1] == 1 else NODES_SPREAD)
    each = _spread_at(posterior, draws, nodes)
    variance = jnp.mean(each.std.reshape(len(X), -1, each.std.shape[1]) ** 2, axis=1)
    return Spread(jnp.sqrt(variance), jnp.mean(each.information.reshape(len(X), -1), axis=1))


def _spread_at(posterior: Posterior, draws: Float[Array, "S C"], X: Rows) -> Spread:
    likelihood, n_latent = posterior.likelihood, draws.shape[1]
    classes = jnp.arange(max(2, n_latent))

    def of_row(marginals: tuple[Float[Array, "C"], Float[Array, "C"]]) -> Spread:
        mu, nu = marginals
        if n_latent == 1:
            f, weight = graded(mu[0], nu[0])
            f, weight = f[:, None], weight / jnp.sum(weight)
        else:
            f = mu + jnp.sqrt(nu) * draws
            weight = jnp.full(DRAWS, 1 / DRAWS, f.dtype)
        logs = jax.vmap(lambda f: jax.vmap(lambda y: likelihood.log_prob(y, f))(classes))(f)
        logs = jax.nn.log_softmax(logs, axis=1)  # rounding, and rules that end somewhere
        p = jnp.exp(logs)
        mean = weight @ p
        std = jnp.sqrt(weight @ (p - mean) ** 2)
        noise = -weight @ jnp.sum(p * jnp.maximum(logs, -1e4), axis=1)
        total = -jnp.sum(jax.scipy.special.xlogy(mean, mean))
        return Spread(std, jnp.maximum(total - noise, 0.0))

    return jax.lax.map(of_row, _marginals(posterior, X), batch_size=ROWS_AT_ONCE)


_spread_program = program(_spread, options=None)


@compiled_once
@double_precision
def spread(posterior: Posterior, X: np.ndarray, std: np.ndarray | None = None) -> Spread:
    """How far each row's probabilities vary under the posterior, at x or where x may be.

    With one function by a rule of 64 nodes, with several by 1,024 points of a Sobol sequence.
    """
    draws = np.zeros((1, 1))  # stand for one function
    if posterior.n_latent > 1:
        draws = _normal_draws(posterior.n_latent)
    draws = jax.device_put(draws.astype(posterior.row_dtype))

    def of_chunk(ready: Posterior, X: Any, std: Any) -> Spread:
        return _spread_program(ready, draws, X, std)

    return Spread(*_in_chunks(of_chunk, posterior, X, std, in_pairs=True))
