"""log p of every class, of rows whose marginals are known: in blocks, one program for all."""

import jax
import numpy as np
from jaxtyping import Array, Float

from gpclf.compilation import program
from gpclf.likelihoods import Likelihood

BLOCK = 256  # rows


@program
def _log_probabilities(
    likelihood: Likelihood, mu: Float[Array, "B C"], nu: Float[Array, "B C"]
) -> Float[Array, "B K"]:
    return jax.vmap(likelihood.log_probabilities)(mu, nu)


def log_probabilities(
    likelihood: Likelihood, mu: Float[np.ndarray, "N C"], nu: Float[np.ndarray, "N C"]
) -> Float[np.ndarray, "N K"]:
    """In float64, with rows of zero mean and unit variance to fill the last block up."""
    fill = np.ones((-len(mu) % BLOCK, mu.shape[1]), mu.dtype)
    filled = [np.concatenate(part) for part in ((mu, 0 * fill), (nu, fill))]
    firsts = range(0, len(filled[0]), BLOCK)
    parts = [
        _log_probabilities(likelihood, *(part[first : first + BLOCK] for part in filled))
        for first in firsts
    ]
    return np.concatenate([np.asarray(part, np.float64) for part in parts])[: len(mu)]
