"""Few places with equal weights that stand for a normal law of any dimension."""

from functools import cache

import numpy as np
from jaxtyping import Float


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
