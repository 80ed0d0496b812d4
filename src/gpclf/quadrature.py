"""Integrals by deterministic rules, each row on its own.

`graded`: Gaussian expectations of functions that bend near 0 and grow like a polynomial beyond.
`panels`: integrals over the winner's value, where every class bends the integrand at its own scale.
`normal_nodes`: few places with equal weights that stand for a normal law of any dimension.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Scalar = Float[Array, ""]
Points = Float[Array, "nodes"]
T = TypeVar("T")

GRADED_NODES = 64
GRADED_REACH = 8.0  # standard deviations
BEND = 1.5  # the scale on which g bends at 0


def graded(mean: Scalar, variance: Scalar, count: int = GRADED_NODES) -> tuple[Points, Points]:
    """Nodes and positive weights with Σ w g(f) ≈ E g(f) for g that bends near 0 only.

    g may grow like a polynomial. A Gaussian that is narrow, or far from 0, gets equally spaced
    nodes about its mean. Else they are spaced equally in t with f = 1.5 sinh t: close together at
    0, ever wider beyond.
    """
    sd = jnp.sqrt(variance)
    near = (sd < BEND) | (jnp.abs(mean) > 6 * sd)
    low, high = mean - GRADED_REACH * sd, mean + GRADED_REACH * sd
    first = jnp.where(near, low, jnp.arcsinh(low / BEND))
    last = jnp.where(near, high, jnp.arcsinh(high / BEND))
    step = (last - first) / (count - 1)
    t = first + step * jnp.arange(count, dtype=mean.dtype)
    stretched = jnp.where(near, 0.0, t)  # cosh of a node about a far mean would overflow
    nodes = jnp.where(near, t, BEND * jnp.sinh(stretched))
    # about the mean the standard places are known without rounding, however small sd is
    even = jnp.linspace(-GRADED_REACH, GRADED_REACH, count, dtype=mean.dtype)
    standard = jnp.where(near, even, (nodes - mean) / sd)
    slope = jnp.where(near, even[1] - even[0], step * BEND * jnp.cosh(stretched) / sd)
    return nodes, slope * jnp.exp(-0.5 * standard**2) / math.sqrt(2 * math.pi)


@cache
def normal_nodes(count: int, dimensions: int) -> Float[np.ndarray, "S D"]:
    """`count` places of N(0, I) by a Sobol sequence, each coordinate with mean 0 and variance 1.

    One place alone is 1 in every coordinate, for signs that are drawn elsewhere.
    """
    if count == 1:
        return np.ones((1, dimensions))
    from scipy.special import ndtri
    from scipy.stats import qmc  # slow to import

    if dimensions == 1:
        places = (np.arange(count)[:, None] + 0.5) / count
    else:
        sobol = qmc.Sobol(dimensions, rng=np.random.default_rng(0))
        places = sobol.random_base2((count - 1).bit_length())[:count]
    nodes = ndtri(places)
    nodes -= nodes.mean(axis=0)
    return nodes / np.sqrt(np.mean(nodes**2, axis=0))


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
