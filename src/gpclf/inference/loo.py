"""Leave one out: the score of every row under q without the row's own site, in one pass.

With s = aᵀSa for a row and a function, and (τ, λ) its site,

    s₋ = s/(1 − τs),  μ₋ = (μ − sλ)/(1 − τs),  ν₋ = ν − s + s₋.

That is exact where q is the sum of its sites and these would stay as they are without the row. A
site that is nearly all that is known of its row, 1 − τs close to 0, would have been another one:
such rows are counted, and where they are many the score is not to be trusted. Folds are, then.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import log_softmax

from gpclf.compilation import PLAIN, program
from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.passes import as_q_takes, features_of
from gpclf.inference.predictive import log_probabilities
from gpclf.likelihoods import Likelihood, Sites
from gpclf.model import Prepared
from gpclf.precision import rounded

UNSURE = 0.1  # a row whose 1 − τs is below is not to be trusted
KEPT_NUMBERS = 2**22  # of the log-probabilities of single rows


class LeaveOneOut(NamedTuple):
    """The mean log-probability of a row under q without its site, and whether to trust it."""

    score: float
    unsure: float  # the share of rows whose site is nearly all that is known of them
    logs: Float[np.ndarray, "N K"] | None = None  # of every row and class, where not too many


@partial(program, options=PLAIN)
def _without_own_site(
    prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites | None
) -> tuple[Float[Array, "B C"], Float[Array, "B C"], Float[Array, "B"]]:
    """μ₋ and ν₋ of every row, and the least 1 − τs of its functions."""
    features = features_of(prepared, chunk)
    mu, nu = prepared.marginals(features, q)
    own = as_q_takes(prepared.sites(chunk.y, mu, nu), mu, q) if sites is None else sites
    known = features.diagonal - jnp.sum(features.A**2, axis=-1)  # of the variance, what q leaves
    s = jnp.maximum(nu - (known[:, None] if known.ndim == 1 else known.T), 0.0)
    left = 1 - own.precision * s
    safe = jnp.maximum(left, jnp.finfo(s.dtype).eps)
    return (mu - s * own.linear) / safe, nu - s + s / safe, jnp.min(left, axis=1)


def leave_one_out(
    prepared: Prepared, q: Natural, rows: Rows, held: Kept[Sites] | None
) -> LeaveOneOut:
    """One pass; `held`: the sites that make up q, or None for the ELBO's, which q tells."""
    m, _ = moments(q)
    likelihood = prepared.model.likelihood
    assert isinstance(likelihood, Likelihood)  # of all classes
    n_rows = rows.n_rows

    def found(chunk: Chunk, own: Sites | None = None) -> tuple[tuple[Any, Any, Any], Any]:
        weight = np.asarray(chunk.weight, np.float64)
        ready = rounded((prepared, m), chunk.X.dtype)
        mu, nu, left = map(np.asarray, _without_own_site(*ready, chunk, own))
        logs = log_probabilities(likelihood, mu, nu)
        of_own = np.where(weight > 0, logs[np.arange(len(logs)), chunk.y], 0.0)
        kept = logs[weight > 0] if n_rows * logs.shape[1] <= KEPT_NUMBERS else None
        return (weight @ of_own, weight @ (left < UNSURE), weight.sum()), kept

    (score, unsure, total), kept = rows.sum_and_keep(found, *([] if held is None else [held]))
    logs = None if kept[0] is None else log_softmax(np.concatenate(kept), axis=1)
    return LeaveOneOut(float(score / total), float(unsure / total), logs)
