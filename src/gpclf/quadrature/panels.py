"""Integrals over the winner's value, where every class bends the integrand at its own scale."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

T = TypeVar("T")

GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)
REACH = 5.5  # beyond so many of its standard deviations a class is flat
PANEL = 3.2  # the width of a panel, in standard deviations of the narrowest class that bends in it


def panels(
    integrals: Callable[[Float[Array, "nodes *B"], Float[Array, "nodes *B"]], T],
    mean: Float[Array, "P *B"],
    sd: Float[Array, "P *B"],
    low: Float[Array, "*B"],
    high: Float[Array, "*B"],
    zero: T,
    most: int,
    add: Callable[[T, T], T] = lambda total, part: jax.tree.map(jnp.add, total, part),
) -> T:
    """∫ … dg from `low` to `high`, for what varies with each (g − mean_c)/sd_c.

    Gauss-Legendre rules on panels laid end to end: `integrals` gives the integral over one panel
    from its nodes and weights, `add` joins it to the total, which begins as `zero`. A panel is no
    wider than the narrowest class that bends inside it allows, and ends where a new one begins to
    bend: a step of width 1e-6 inside a range of 100 is met by panels of its own. The last of `most`
    panels takes what is left. Rows may lie along further axes, each with panels of its own.
    """
    across = (-1,) + (1,) * low.ndim
    places = jnp.asarray(GAUSS_NODES.reshape(across), low.dtype)
    weights = jnp.asarray(GAUSS_WEIGHTS.reshape(across), low.dtype)
    begin, end = mean - REACH * sd, mean + REACH * sd
    high = jnp.maximum(low, high)

    def more(state: tuple[Int[Array, ""], Float[Array, "*B"], T]) -> Bool[Array, ""]:
        return jnp.any(state[1] < high) & (state[0] < most)

    def panel(
        state: tuple[Int[Array, ""], Float[Array, "*B"], T],
    ) -> tuple[Int[Array, ""], Float[Array, "*B"], T]:
        count, start, total = state
        bends = (begin <= start) & (start < end)
        width = jnp.min(jnp.where(bends, PANEL * sd, jnp.inf), axis=0)
        ahead = jnp.min(jnp.where(begin > start, begin, jnp.inf), axis=0)
        stop = jnp.minimum(start + width, ahead)
        stop = jnp.where((count == most - 1) | (stop <= start), high, jnp.minimum(stop, high))
        half = 0.5 * (stop - start)  # 0 where a row is done
        part = integrals(0.5 * (start + stop) + half * places, half * weights)
        return count + 1, stop, add(total, part)

    return jax.lax.while_loop(more, panel, (jnp.asarray(0), low, zero))[2]
