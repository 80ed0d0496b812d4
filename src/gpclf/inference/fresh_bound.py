"""The bound of rows on nodes that nothing was learned from: that of all rows at the end of a fit.

Where inputs have errors, a fit sees each row at a few fixed nodes, and climbs the bound on these:
with many inputs kernel and network come to suit the nodes, and what is climbed lies above the
integral that it stands for. Here the nodes are others, and more: Sobol points, all shifted by a
vector that is as good as random, made of the row's digits, so that a row's bound depends on nothing
but the row. By Jensen's inequality the bound on random nodes is on average at most the integral
over where the row may be (Burda, Grosse & Salakhutdinov 2016).
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Int, UInt32

from gpclf.compilation import program
from gpclf.data import Chunk, Rows
from gpclf.gaussian import Moments, divergence
from gpclf.inputs.base import NO_ROWS, Errors, Own
from gpclf.model import Prepared
from gpclf.precision import rounded

MORE, FEWEST = 4, 64  # times as many nodes as the fit had, and no fewer
AT_ONCE = 16  # nodes of a row
EDGE = 1e-12  # of the unit interval, beyond which the normal law is cut off
SEED = 1


def fresh_bound(prepared: Prepared, q: Moments, rows: Rows) -> float:
    """Σ w ℓ − KL(q ‖ N(0, I)) of all rows."""

    def of_chunk(chunk: Chunk) -> Array:
        return _of_chunk(*rounded((prepared, q), chunk.X.dtype), chunk)

    return float(rows.sum(of_chunk)) - divergence(q)


@partial(program, options=None)
def _of_chunk(prepared: Prepared, q: Moments, chunk: Chunk) -> Float[Array, ""]:
    own = Own(chunk.rows)
    values = row_values(prepared, q, chunk.X, chunk.y, chunk.std, own)
    return jnp.sum(chunk.scale * chunk.weight * values, dtype=jnp.float64)


def row_values(
    prepared: Prepared,
    q: Moments,
    X: Float[Array, "B D"],
    y: Int[Array, "B"],
    std: Errors,
    own: Own = NO_ROWS,
) -> Float[Array, "B"]:
    """ℓ of every row, on fresh nodes."""
    inputs, n_rows = prepared.model.inputs, len(X)
    shift = _shift(X)[:, None]

    def at(points: Float[Array, "S D"]) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
        uniform = jnp.clip((points + shift) % 1.0, EDGE, 1.0 - EDGE)
        nodes = inputs.drawn(X, std, y, ndtri(uniform).astype(X.dtype), own)
        labels = jnp.repeat(y, len(nodes.X) // n_rows, axis=0)
        bounds = prepared.bounds(labels, *prepared.marginals(prepared.features(nodes.X), q))
        log_weight = jnp.zeros_like(bounds) if nodes.log_weight is None else nodes.log_weight
        return bounds.reshape(n_rows, -1), log_weight.reshape(n_rows, -1)

    parts = jax.lax.map(at, jnp.asarray(_points(prepared.nodes(1), X.shape[1])))
    bounds, log_weight = (jnp.moveaxis(part, 0, 1).reshape(n_rows, -1) for part in parts)
    return inputs.joined_draws(bounds, log_weight)


@cache
def _points(fitted: int, n_features: int) -> Float[np.ndarray, "R S D"]:
    """More of them in the unit cube than the nodes of a fit."""
    from scipy.stats import qmc  # slow to import

    count = 2 ** int(np.ceil(np.log2(max(MORE * fitted, FEWEST))))
    points = qmc.Sobol(n_features, rng=np.random.default_rng(SEED)).random(count)
    return points.reshape(-1, AT_ONCE, n_features)


def _shift(X: Float[Array, "B D"]) -> Float[Array, "B D"]:
    """For each row a vector in the unit cube, in which every digit of the row has a part."""
    random = np.random.default_rng(SEED)
    factor, start = random.integers(2**32, size=(2, X.shape[1]), dtype=np.uint32)
    digits = _mixed(X.astype(jnp.float32).view(jnp.uint32))
    row = jnp.sum(digits * (factor | np.uint32(1)), axis=1, dtype=jnp.uint32, keepdims=True)
    return _mixed(_mixed(row) + start).astype(jnp.float64) / 2.0**32


def _mixed(bits: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """Each bit changed by all others: the end of MurmurHash3."""
    bits = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
