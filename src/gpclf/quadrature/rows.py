"""Loops over rows as vector code, for what is written for one row."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def rows_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one row, of arrays with the classes along their first axis, if they have any.

    It must do for rows along a further, last axis as well: there `vmap` puts them. Loops over rows
    are then vector code for any number of classes; over a few classes, or a few nodes of an
    integral, XLA unrolls them, compiles for longer, and runs at a third of the speed.
    """
    one = jax.custom_batching.custom_vmap(function)

    @one.def_vmap
    def many(count: int, batched: list[bool], *arrays: Array) -> tuple[Any, Any]:
        every = (
            x if own else jnp.broadcast_to(x, (count, *x.shape))
            for x, own in zip(arrays, batched, strict=True)
        )
        found = function(*(jnp.moveaxis(x, 0, -1) for x in every))
        return (
            jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), found),
            jax.tree.map(lambda x: True, found),
        )

    return one
