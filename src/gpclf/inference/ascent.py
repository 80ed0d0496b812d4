"""One pass over rows for those who climb the ELBO by its gradient in (m, L) and θ."""

from typing import NamedTuple

import numpy as np

from gpclf.data import Rows
from gpclf.inference.factored import Factored, elbo_pullback, moments
from gpclf.inference.hyper import batch_gradient
from gpclf.inference.passes import gradient_pass
from gpclf.model import Prepared, Theta


class Climb(NamedTuple):
    """The ELBO, its gradient by q, and by θ where that was asked for."""

    elbo: float  # NaN where a row's bound is no number
    by_q: Factored
    by_theta: Theta | None


def look(prepared: Prepared, q: Factored, rows: Rows, *, at_theta: bool) -> Climb:
    """Σ ℓ − KL and its gradients, by one pass over the rows.

    The gradient by θ is that with q(v) held in whitened coordinates.
    """
    m, kl = moments(q)
    by_theta = None
    if at_theta:
        sums, by_theta, _ = batch_gradient(prepared, m, rows)
    else:
        sums = rows.sum(lambda chunk: gradient_pass(prepared, m, chunk).sums())
    elbo = np.nan if sums.not_finite else float(sums.bound) - kl
    return Climb(elbo, elbo_pullback(q, sums.by_q), by_theta)
