"""The sum over chunks: the only thing that leaves them, and the only place where they meet.

Full-batch passes, mini-batches, files and, later, several devices differ in where chunks come from,
not in what is done with them.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import jax
import numpy as np

C = TypeVar("C")
T = TypeVar("T")


def reduce(statistics: Callable[[C], T], chunks: Iterable[C]) -> T:
    """Σ statistics(chunk), leaf by leaf, as NumPy arrays: small ones, whatever the rows."""
    total = None
    for chunk in chunks:
        part = jax.tree.map(np.asarray, statistics(chunk))
        total = part if total is None else jax.tree.map(np.add, total, part)
    if total is None:
        raise ValueError("There are no rows to sum over.")
    return total
