"""The frozen result of a fit: inducing points, q, kernel and likelihood. It needs no data."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.hyper import Theta
from gpclf.model import Prepared, prepare
from gpclf.precision import double_precision
from gpclf.storage import describe, restore


class Posterior(eqx.Module):
    """A model seen from its inducing points, and the moments of q(v) there.

    Its arrays are NumPy's, in float64: it can be copied, pickled and sent to another process.
    """

    prepared: Prepared
    q: Moments
    row_dtype: Any = eqx.field(static=True)

    @property
    def n_latent(self) -> int:
        """The number of latent functions."""
        return self.q.mean.shape[0]


def parts(posterior: Posterior, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A posterior as JSON, its arrays put into `arrays`."""
    return {
        "prepared": describe(posterior.prepared, arrays),
        "q": describe(posterior.q, arrays),
        "row_dtype": posterior.row_dtype,
    }


def from_parts(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Posterior:
    """The posterior that `parts` described."""
    prepared, q = (restore(description[name], arrays) for name in ("prepared", "q"))
    return Posterior(prepared, q, description["row_dtype"])


@double_precision
def freeze(theta: Theta, q: Natural, jitter: float, row_dtype: Any) -> Posterior:
    """The posterior of the parameters and the q that a fit ended with."""
    prepared, _ = prepare(*theta, jitter)
    m, _ = moments(q)
    prepared, m = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (prepared, m))
    return Posterior(prepared, m, np.dtype(row_dtype).name)
