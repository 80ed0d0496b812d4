"""Gaussian expectations of functions that bend near 0 and grow like a polynomial beyond."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Points = Float[Array, "nodes"]

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
