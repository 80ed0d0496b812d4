"""The bound of all rows at the end of a fit, on nodes that nothing was learned from.

Where inputs have errors, a fit sees each row at a few fixed nodes, and climbs the bound on these:
with many inputs kernel and network come to suit the nodes, and what is climbed lies above the
integral that it stands for. Here the nodes are others, more of them, and random: Sobol points,
shifted for each row anew. By Jensen's inequality the bound on them is on average at most the
integral over where the row may be (Burda, Grosse & Salakhutdinov 2016).
"""

from collections.abc import Iterable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

from gpclf.compilation import program
from gpclf.data import Chunk, reduce
from gpclf.gaussian import Moments
from gpclf.model import Prepared
from gpclf.precision import rounded

MORE, FEWEST = 4, 64  # times as many nodes as the fit had, and no fewer
AT_ONCE = 16  # nodes of a row
EDGE = 1e-12  # of the unit interval, beyond which the normal law is cut off
SEED = 1


def fresh_bound(prepared: Prepared, q: Moments, chunks: Iterable[Chunk], fitted: int) -> float:
    """Σ w ℓ − KL(q ‖ N(0, I)) of the rows of `chunks`, whose fit had `fitted` nodes for each."""
    from scipy.stats import qmc  # slow to import

    rng = np.random.default_rng(SEED)
    count = 2 ** int(np.ceil(np.log2(max(MORE * fitted, FEWEST))))
    points = qmc.Sobol(prepared.Z.shape[-1], rng=rng).random(count)
    points = points.reshape(-1, AT_ONCE, points.shape[1])

    def of_chunk(chunk: Chunk) -> Array:
        shift = rng.random(chunk.X.shape)
        return _of_chunk(*rounded((prepared, q), chunk.X.dtype), points, shift, chunk)

    return float(reduce(of_chunk, chunks)) - divergence(q)


def divergence(q: Moments) -> float:
    """KL(q ‖ N(0, I)) of all functions, ½(tr S + mᵀm − M − log det S)."""
    total = 0.0
    for mean, excess in zip(q.mean, q.excess, strict=True):
        log_det = np.linalg.slogdet(np.eye(len(excess)) + excess)[1]
        total += 0.5 * (np.trace(excess) + mean @ mean - log_det)
    return float(total)


@partial(program, options=None)
def _of_chunk(
    prepared: Prepared,
    q: Moments,
    points: Float[Array, "R S D"],
    shift: Float[Array, "B D"],
    chunk: Chunk,
) -> Float[Array, ""]:
    inputs, n_rows = prepared.model.inputs, len(chunk.weight)

    def at(points: Float[Array, "S D"]) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
        uniform = jnp.clip((points + shift[:, None]) % 1.0, EDGE, 1.0 - EDGE)
        standard = ndtri(uniform).astype(chunk.X.dtype)
        nodes = inputs.drawn(chunk.X, chunk.std, chunk.y, standard)
        y = jnp.repeat(chunk.y, len(nodes.X) // n_rows, axis=0)
        bounds = prepared.bounds(y, *prepared.marginals(prepared.features(nodes.X), q))
        log_weight = jnp.zeros_like(bounds) if nodes.log_weight is None else nodes.log_weight
        return bounds.reshape(n_rows, -1), log_weight.reshape(n_rows, -1)

    parts = jax.lax.map(at, points)
    bounds, log_weight = (jnp.moveaxis(part, 0, 1).reshape(n_rows, -1) for part in parts)
    values = inputs.joined_draws(bounds, log_weight)
    return jnp.sum(chunk.scale * chunk.weight * values, dtype=jnp.float64)
