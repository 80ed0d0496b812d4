"""The sum over chunks: the only thing that leaves them, and the only place where they meet.

Full-batch passes, mini-batches, files and, later, several devices differ in where chunks come from,
not in what is done with them.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import jax
import jax.numpy as jnp

from gpclf.data.chunk import Chunk

T = TypeVar("T")


@jax.jit
def _add(total, part):
    return jax.tree.map(jnp.add, total, part)


def reduce(statistics: Callable[[Chunk], T], chunks: Iterable[Chunk]) -> T:
    """Σ statistics(chunk), leaf by leaf."""
    chunks = iter(chunks)
    total = statistics(next(chunks))
    for chunk in chunks:
        total = _add(total, statistics(chunk))
    return total
