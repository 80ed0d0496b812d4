"""Orthogonally decoupled bases: more inducing points, for the mean alone.

Salimbeni, Cheng, Boots & Deisenroth (2018); "ORTH" in Liu et al. (2019). Points Zβ come after Z in
the Cholesky factor that whitens, so the features of [Z; Zβ] are (a, b): a those of Z, b what Zβ
add in the orthogonal complement. The family is q(v) = N((m, m_β), diag(S, I)): ν = k − aᵀa + aᵀSa
does not know of b, μ = aᵀm + bᵀm_β, and KL has ½‖m_β‖² more than that of (m, S).

Given sites, S is the closed form of Z alone, Λ = I + Σ τaaᵀ, and the mean solves
(I + Σ τ(a,b)(a,b)ᵀ)(m, m_β) = Σ λ(a, b): by conjugate gradients, each a pass of 2N(M + Mβ)
products, so no matrix of Zβ and rows is squared. The features take N(M + Mβ)² once a kernel.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from gpclf.data import Chunk, Rows
from gpclf.gaussian import Moments, Natural, divergence, moments
from gpclf.inference.incremental import new_points
from gpclf.inference.journal import Journal, Place
from gpclf.inference.natural import SMALLEST_RATE, Limits
from gpclf.inference.passes import curvature, gradient_pass
from gpclf.inference.rules import searched
from gpclf.inference.stops import Stop
from gpclf.linalg import conjugate_gradients
from gpclf.model import Prepared, Theta

KNOWN = 0.001  # a row with less than this share of its variance left would add nothing but rounding
PASSES = 30  # over the rows of conjugate gradients, for one step
ENOUGH_SOLVED = 0.1  # of the residual left: the step is searched along, and the next one goes on

Means = Float[np.ndarray, "C K"]


class DecoupledForm(NamedTuple):
    """N((m, m_β), diag(Λ⁻¹, I)) for every function."""

    mean: Means
    precision: Float[np.ndarray, "C M M"]

    @classmethod
    def of(cls, m: Moments) -> "DecoupledForm":
        """The reverse of `moments`."""
        S = np.eye(m.excess.shape[-1]) + m.excess
        return cls(np.asarray(m.mean), np.linalg.inv(S))

    def moments(self) -> tuple[Moments, float]:
        """The moments, S − I of Z alone, and the sum of KL(q ‖ N(0, I))."""
        m, kl = moments(Natural(np.zeros_like(self.precision[..., 0]), self.precision))
        return Moments(self.mean, m.excess), kl + 0.5 * float(np.sum(self.mean**2))

    def along(self, way: "DecoupledForm", rate: float) -> "DecoupledForm":
        """A step of `rate`: straight in the mean and in the precision."""
        return DecoupledForm(self.mean + rate * way.mean, self.precision + rate * way.precision)


class Slopes(NamedTuple):
    """All rows under one q."""

    elbo: float  # NaN where q is no Gaussian or a site no number
    m: Moments
    by_mean: Means  # of the ELBO
    target: Float[np.ndarray, "C M M"]  # Λ of a full step


def look(prepared: Prepared, q: DecoupledForm, rows: Rows) -> Slopes:
    """The ELBO, its gradient by the means, and the closed form of Λ: N·M² and N·(M + Mβ)."""
    m, kl = q.moments()
    if not np.isfinite(kl):
        return Slopes(np.nan, m, q.mean, q.precision)
    sums = rows.sum(lambda chunk: gradient_pass(prepared, m, chunk).sums())
    by_S = np.asarray(sums.by_q.excess)
    target = np.eye(by_S.shape[-1]) - (by_S + np.swapaxes(by_S, 1, 2))
    elbo = np.nan if sums.not_finite else float(sums.bound) - kl
    return Slopes(elbo, m, np.asarray(sums.by_q.mean) - q.mean, target)


def bound_of(prepared: Prepared, m: Moments, rows: Rows) -> float:
    """The ELBO of all rows; NaN where a site is no number."""
    sums = rows.sum(lambda chunk: gradient_pass(prepared, m, chunk).sums())
    return np.nan if sums.not_finite else float(sums.bound) - divergence(m)


def _newton(prepared: Prepared, q: DecoupledForm, here: Slopes, some: Rows) -> Means:
    """Where the means go: Newton's step with the sites' precisions for the curvature.

    It needs no more rows than stand for all: an approximate curvature makes another way up.
    """
    size = q.precision.shape[-1]
    sites = some.keep(lambda chunk: gradient_pass(prepared, here.m, chunk).sites)

    def product(way: Means) -> Means:
        def bent(chunk: Chunk, own) -> Means:
            return np.asarray(curvature(prepared, own, way, chunk))

        return way + some.sum(bent, sites)

    def condition(rest: Means) -> Means:
        """Times S in the coordinates of Z."""
        changed = np.einsum("cij,cj->ci", here.m.excess, rest[:, :size])
        return rest + np.pad(changed, ((0, 0), (0, rest.shape[1] - size)))

    return conjugate_gradients(product, condition, here.by_mean, most=PASSES, left=ENOUGH_SOLVED)


def climb_decoupled(
    prepared: Prepared,
    q: DecoupledForm,
    rows: Rows,
    some: Rows,
    limits: Limits,
    on_step: Callable[[float, Moments], bool] = lambda elbo, m: False,
    place: Place | None = None,
) -> tuple[DecoupledForm, float, Stop]:
    """Steps on the mean and Λ; the ELBO does not fall by more than the slack.

    Along a step its slope is known: gᵀd for the means, ½ tr(δΛ S δΛ S) for Λ. `place`: where what
    it has come to is kept.
    """
    place = Journal().place("") if place is None else place
    first, q, here, rate = place.reached((0, q, None, 1.0))
    here = look(prepared, q, rows) if here is None else here
    for done in range(first, limits.steps):
        place.mark((done, q, here, rate))
        change = here.target - q.precision
        way = DecoupledForm(_newton(prepared, q, here, some), change)
        bent = change @ here.m.excess + change  # δΛ S
        rise = float(np.sum(here.by_mean * way.mean) + 0.5 * np.sum(bent * np.swapaxes(bent, 1, 2)))
        while True:
            ahead = q.along(way, rate)
            there = look(prepared, ahead, rows)
            gain = there.elbo - here.elbo
            verdict = searched(rise, gain, rate, limits.slack)
            if verdict.taken:
                break
            rate = verdict.rate
            if rate < SMALLEST_RATE:
                return q, here.elbo, Stop.NO_STEP
        q, here, used, rate = ahead, there, rate, verdict.rate
        late = on_step(here.elbo, here.m)
        if gain < limits.tolerance * used:
            return q, here.elbo, Stop.CONVERGED
        if late:
            return q, here.elbo, Stop.TIME
    return q, here.elbo, Stop.STEPS


def with_mean_points(
    theta: Theta, q: Natural, prepared: Prepared, candidates: np.ndarray, count: int
) -> tuple[Theta, DecoupledForm]:
    """θ with rows that Z says least about after Z, and q with means of 0 there.

    Each has more than 0.1 % of its variance left given those before it (`new_points`), so that the
    larger kernel matrix needs no larger jitter.
    """
    added = new_points(prepared, candidates, count, KNOWN)
    m, _ = moments(q)
    mean = np.pad(m.mean, ((0, 0), (0, len(added))))
    wider = Theta(theta.model, jax.device_put(np.concatenate([theta.Z, added])))
    return wider, DecoupledForm(mean, np.asarray(q.precision))
