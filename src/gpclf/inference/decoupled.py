"""Orthogonally decoupled bases: more inducing points, for the mean alone.

Salimbeni, Cheng, Boots & Deisenroth (2018); "ORTH" in Liu et al. (2019). Points Zβ come after Z in
the Cholesky factor that whitens, so the features of [Z; Zβ] are (a, b): a those of Z, b what Zβ
add in the orthogonal complement. The family is q(v) = N((m, m_β), diag(S, I)): ν = k − aᵀa + aᵀSa
does not know of b, μ = aᵀm + bᵀm_β, and KL has ½‖m_β‖² more than that of (m, S).

Given sites, S is the closed form of Z alone, Λ = I + Σ τaaᵀ, and the mean solves
(I + Σ τ(a,b)(a,b)ᵀ)(m, m_β) = Σ λ(a, b): by conjugate gradients, each a pass of 2N(M + Mβ)
products, so no matrix of Zβ and rows is squared. The features take N(M + Mβ)² once a kernel.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from gpclf.data import ArrayStream, Chunk, reduce
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.hyper import Theta
from gpclf.inference.natural import SMALLEST_RATE, peak
from gpclf.inference.online import new_points
from gpclf.inference.plan import KEPT_FLOATS, Plan
from gpclf.inference.sites import curvature, survey, with_features
from gpclf.inference.work import Work
from gpclf.linalg import conjugate_gradients
from gpclf.model import Prepared, prepare

CANDIDATES = 4000  # rows that may become points of the mean
KNOWN = 0.001  # a row with less than this share of its variance left would add nothing but rounding
STEPS = 30
PASSES = 30  # over the rows of conjugate gradients, for one step
ENOUGH_SOLVED = 0.1  # of the residual left: the step is searched along, and the next one goes on

Means = Float[np.ndarray, "C K"]
Passes = Callable[[], Iterable[Chunk]]


class Decoupled(NamedTuple):
    """N((m, m_β), diag(Λ⁻¹, I)) for every function."""

    mean: Means
    precision: Float[np.ndarray, "C M M"]

    def moments(self) -> tuple[Moments, float]:
        """The moments, S − I of Z alone, and the sum of KL(q ‖ N(0, I))."""
        m, kl = moments(Natural(np.zeros_like(self.precision[..., 0]), self.precision))
        return Moments(self.mean, m.excess), kl + 0.5 * float(np.sum(self.mean**2))

    def along(self, way: "Decoupled", rate: float) -> "Decoupled":
        """A step of `rate`: straight in the mean and in the precision."""
        return Decoupled(self.mean + rate * way.mean, self.precision + rate * way.precision)


class Seen(NamedTuple):
    """All rows under one q."""

    elbo: float  # NaN where q is no Gaussian or a site no number
    m: Moments
    by_mean: Means  # of the ELBO
    target: Float[np.ndarray, "C M M"]  # Λ of a full step


def look(prepared: Prepared, q: Decoupled, chunks: Iterable[Chunk]) -> Seen:
    """The ELBO, its gradient by the means, and the closed form of Λ: N·M² and N·(M + Mβ)."""
    m, kl = q.moments()
    if not np.isfinite(kl):
        return Seen(np.nan, m, q.mean, q.precision)
    seen = reduce(lambda chunk: survey(prepared, m, chunk).sums(), chunks)
    by_S = np.asarray(seen.by_q.excess)
    target = np.eye(by_S.shape[-1]) - (by_S + np.swapaxes(by_S, 1, 2))
    elbo = np.nan if seen.not_finite else float(seen.bound) - kl
    return Seen(elbo, m, np.asarray(seen.by_q.mean) - q.mean, target)


def _newton(prepared: Prepared, q: Decoupled, here: Seen, some: list[Chunk]) -> Means:
    """Where the means go: Newton's step with the sites' precisions for the curvature.

    It needs no more rows than stand for all: an approximate curvature makes another way up.
    """
    size = q.precision.shape[-1]
    sites = [survey(prepared, here.m, chunk).sites for chunk in some]

    def product(way: Means) -> Means:
        pairs = zip(some, sites, strict=True)
        return way + reduce(lambda pair: curvature(prepared, pair[1], way, pair[0]), pairs)

    def condition(rest: Means) -> Means:
        """Times S in the coordinates of Z."""
        changed = np.einsum("cij,cj->ci", here.m.excess, rest[:, :size])
        return rest + np.pad(changed, ((0, 0), (0, rest.shape[1] - size)))

    return conjugate_gradients(product, condition, here.by_mean, most=PASSES, left=ENOUGH_SOLVED)


def climb_decoupled(
    prepared: Prepared,
    q: Decoupled,
    chunks: Passes,
    some: list[Chunk],
    *,
    max_steps: int,
    tolerance: float,
    slack: float,
    on_step: Callable[[float, Moments], None] = lambda elbo, m: None,
) -> tuple[Decoupled, float, str]:
    """Steps on the mean and Λ; the ELBO does not fall by more than `slack`.

    Along a step its slope is known: gᵀd for the means, ½ tr(δΛ S δΛ S) for Λ. With the gain it
    makes a parabola, whose peak is the rate tried next.
    """
    here, rate = look(prepared, q, chunks()), 1.0
    for _ in range(max_steps):
        change = here.target - q.precision
        way = Decoupled(_newton(prepared, q, here, some), change)
        bent = change @ here.m.excess + change  # δΛ S
        rise = float(np.sum(here.by_mean * way.mean) + 0.5 * np.sum(bent * np.swapaxes(bent, 1, 2)))
        while True:
            ahead = q.along(way, rate)
            there = look(prepared, ahead, chunks())
            gain = there.elbo - here.elbo
            best = peak(rise, gain, rate)
            if gain >= -slack:  # not where it is no number
                break
            rate = float(np.clip(best, rate / 8, rate / 2)) if np.isfinite(gain) else rate / 4
            if rate < SMALLEST_RATE:
                return q, here.elbo, "no step raises the ELBO"
        q, here, used = ahead, there, rate
        on_step(here.elbo, here.m)
        rate = min(1.0, float(np.clip(best, rate / 2, 2 * rate)))
        if gain < tolerance * used:
            return q, here.elbo, "converged"
    return q, here.elbo, "step limit"


def with_mean_points(
    theta: Theta, q: Natural, stream: ArrayStream, plan: Plan, rng: np.random.Generator
) -> tuple[Theta, Decoupled]:
    """θ with rows that Z says least about after Z, and q with means of 0 there.

    Each has more than 0.1 % of its variance left given those before it (`new_points`), so that the
    larger kernel matrix needs no larger jitter.
    """
    prepared, _ = prepare(*theta, plan.jitter)
    part = stream.sample(CANDIDATES, rng)
    rows = np.asarray(next(part.whole(part.n_rows)).X, np.float64)
    added = new_points(prepared, rows, plan.mean_points, KNOWN)
    m, _ = moments(q)
    mean = np.pad(m.mean, ((0, 0), (0, len(added))))
    return Theta(theta.model, np.concatenate([theta.Z, added])), Decoupled(
        mean, np.asarray(q.precision)
    )


def run_decoupled(
    theta: Theta,
    q: Natural,
    work: Work,
    elbo: float,
) -> tuple[Theta, Natural | Moments, float, str]:
    """What the coupled engine found, with its ELBO, and points for the mean added to it.

    Also the ELBO of all rows, and why the climb ended. Without such points q is as it was.
    """
    stream, plan, rng, log = work
    wider, here = with_mean_points(theta, q, stream, plan, rng)
    size = here.mean.shape[1]
    if size == q.linear.shape[1]:
        return theta, q, elbo, "mean: no row needs a point of its own"
    theta = wider
    prepared, _ = prepare(*theta, plan.jitter)
    part = stream.sample(max(plan.chunk_rows, KEPT_FLOATS // size), rng)
    some = [with_features(prepared, chunk) for chunk in part.whole(plan.chunk_rows)]
    total = float(stream.weight.sum())
    here, elbo, why = climb_decoupled(
        prepared,
        here,
        (lambda: some) if part is stream else (lambda: stream.whole(plan.chunk_rows)),
        some,
        max_steps=STEPS,
        tolerance=plan.tolerance * total,
        slack=float(np.finfo(plan.dtype).eps) * 10 * total,
        on_step=lambda elbo, m: log.note("mean", elbo / total, 1.0, theta, m),
    )
    return theta, here.moments()[0], elbo, f"mean: {why}"
