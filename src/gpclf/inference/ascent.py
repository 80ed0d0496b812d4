"""One look at rows for those who climb the ELBO by its gradient in (m, L) and θ."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gpclf.data import ArrayStream, Chunk, reduce
from gpclf.inference.factored import Factored, elbo_pullback, moments
from gpclf.inference.hyper import Theta, theta_gradient
from gpclf.inference.plan import KEPT_FLOATS, Plan
from gpclf.inference.sites import Survey, gradient, survey, with_features
from gpclf.model import Prepared


class Seen(NamedTuple):
    """The ELBO, its gradient by q, and by θ where that was asked for."""

    elbo: float  # NaN where a row's bound is no number
    by_q: Factored
    by_theta: Theta | None


def look(prepared: Prepared, q: Factored, chunks: Iterable[Chunk], *, at_theta: bool) -> Seen:
    """Σ ℓ − KL and its gradients, by one pass over the chunks.

    The gradient by θ is that with q(v) held in whitened coordinates.
    """
    m, kl = moments(q)

    def sums(chunk: Chunk) -> tuple[Survey, Prepared | None]:
        if not at_theta:
            return survey(prepared, m, chunk).sums(), None
        chunk = with_features(prepared, chunk)
        seen = survey(prepared, m, chunk)
        return seen.sums(), gradient(prepared, seen.by_features, None, seen.sites, chunk)

    seen, by_prepared = reduce(sums, chunks)
    by_theta = None if by_prepared is None else theta_gradient(prepared, by_prepared, seen)
    elbo = np.nan if seen.not_finite else float(seen.bound) - kl
    return Seen(elbo, elbo_pullback(q, seen.by_q), by_theta)


def all_rows(
    prepared: Prepared, stream: ArrayStream, plan: Plan, *, one_theta: bool
) -> Callable[[], Iterable[Chunk]]:
    """Passes over everything; chunks are kept where they fit, for one θ with their features."""
    places = stream.n_rows * prepared.model.inputs.places
    if places * prepared.Z[..., 0].size > KEPT_FLOATS:
        return lambda: stream.whole(plan.chunk_rows)
    chunks = list(stream.whole(plan.chunk_rows))
    if one_theta:
        chunks = [with_features(prepared, chunk) for chunk in chunks]
    return lambda: chunks
