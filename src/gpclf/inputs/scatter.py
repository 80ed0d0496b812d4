"""Nodes about rows whose inputs have errors: fixed ones, with signs of each row's own."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.quadrature import normal_nodes

Rows = Float[Array, "B D"]


def scattered(X: Rows, std: Float[Array, "#B D"], places: int) -> Float[Array, "R D"]:
    """Places about each row that stand for N(x, std²), all with the same weight.

    Those of the standard law are the same for all rows, but for signs: each number of a row chooses
    its own by its last digits, so that rows differ and their order does not matter.
    """
    moved = X[:, None, :] + std[:, None, :] * standard_places(X, places)
    return moved.reshape(-1, X.shape[1])


def standard_places(X: Rows, places: int) -> Float[Array, "B S D"]:
    """Those of N(0, I) for each row, with signs of its own."""
    bits = X.astype(jnp.float32).view(jnp.uint32)
    mixed = (bits ^ (bits >> 15)) * np.uint32(2654435761)
    signs = jnp.where((mixed >> 20) & 1 == 1, 1.0, -1.0).astype(X.dtype)
    return signs[:, None, :] * jnp.asarray(normal_nodes(places, X.shape[1]), X.dtype)
