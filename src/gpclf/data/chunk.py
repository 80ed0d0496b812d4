"""Chunk: the rows that travel together through one compiled pass."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int, PyTree, Shaped


class Chunk(eqx.Module):
    """Rows of fixed number; those that only fill up have weight 0.

    `scale` makes the chunk stand for all rows: N/B in a random batch, 1 in a pass over everything.
    `y` holds class indices, or what else a likelihood takes for labels. `rows` says which rows of
    the stream these are. `std` has the standard deviations of the errors of X, where there are
    some. `features` is what a kernel makes of X, or of places about X, where that is kept.
    `standard` has draws of N(0, I) for places of a batch's rows, where these are drawn anew.
    """

    X: Float[Array, "B D"]
    y: PyTree[Shaped[Array, "B"]]
    weight: Float[Array, "B"]
    scale: Float[Array, ""]
    rows: Int[Array, "B"]
    std: Float[Array, "#B D"] | None = None
    features: Any = None
    standard: Float[Array, "B S D"] | None = None
