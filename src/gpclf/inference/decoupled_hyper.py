"""Kernel, likelihood, Z and Zβ climb the bound of decoupled bases: its dual form.

Sites (τ, λ) with τ ≥ 0 are held, and q follows the features of θ: P(θ) = I + Σ τ(a,b)(a,b)ᵀ,
P (m, m_β) = Σ λ(a,b) + r, and Λ is the block of Z in P, plus R. The rest (r, R) makes q what it was
at the θ of the sites; so no round begins below the one before, and P is positive definite wherever
θ goes. An evaluation takes about 2C + 4 products of size N(M + Mβ)².
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, elbo_pullback
from gpclf.inference.context import FitContext
from gpclf.inference.decoupled import DecoupledForm, climb_decoupled
from gpclf.inference.hyper import Evaluation, Improved, improve, theta_gradient
from gpclf.inference.natural import Limits
from gpclf.inference.optim.lbfgs import Memory
from gpclf.inference.passes import Pass, gradient_pass, theta_pass, with_kept_features
from gpclf.inference.plan import ROUND
from gpclf.inference.rules import posterior_from_sites, without_negative
from gpclf.inference.stops import Stop
from gpclf.likelihoods import Sites
from gpclf.linalg import inverse, plain_cholesky
from gpclf.model import Prepared, Theta, prepare

FIRST_STEPS, STEPS = 30, 3  # on q, before the first round and before each other

Inverses = Float[np.ndarray, "C K K"]


class HeldDecoupled(NamedTuple):
    """What makes up q beside the prior, while θ changes."""

    sites: Kept[Sites]  # without negative precisions
    linear: Float[np.ndarray, "C K"]  # r
    precision: Float[np.ndarray, "C M M"]  # R

    def form(self, P: Natural) -> tuple[DecoupledForm, Inverses] | None:
        """q and P⁻¹, given the sum of prior and sites; None where that is no number."""
        size, factors = self.precision.shape[-1], [plain_cholesky(own) for own in P.precision]
        found = [inverse(factor) for factor in factors if factor is not None]
        if len(found) < len(factors):
            return None
        mean = np.einsum("cij,cj->ci", np.stack(found), P.linear + self.linear)
        block = np.asarray(P.precision)[:, :size, :size]
        return DecoupledForm(mean, block + self.precision), np.stack(found)


def _fresh(prepared: Prepared, m: Moments, rows: Rows) -> tuple[Kept[Sites], Natural]:
    """The sites of rows without negative precisions, and their sum with the prior."""

    def own(chunk: Chunk) -> Sites:
        return Sites(*map(np.asarray, gradient_pass(prepared, m, chunk).sites))

    sites = without_negative(prepared, m, rows.keep(own), rows)
    return sites, posterior_from_sites(prepared, sites, rows)


def curvature_of(prepared: Prepared, q: DecoupledForm, rows: Rows) -> Natural:
    """(h, P) with the mean of q: where steps on batches begin."""
    _, P = _fresh(prepared, q.moments()[0], rows)
    return P._replace(linear=np.einsum("cij,cj->ci", P.precision, q.mean))


def hold(prepared: Prepared, q: DecoupledForm, rows: Rows) -> HeldDecoupled:
    """The sites of rows under q, and what else q is made of."""
    size = q.precision.shape[-1]
    sites, P = _fresh(prepared, q.moments()[0], rows)
    linear = np.einsum("cij,cj->ci", P.precision, q.mean) - P.linear
    return HeldDecoupled(sites, linear, q.precision - P.precision[:, :size, :size])


def dual_bound(held: HeldDecoupled, rows: Rows, theta: Theta, jitter: float) -> Evaluation:
    """The ELBO of the q that is held under θ, and its gradient by θ."""
    prepared, _ = prepare(*theta, jitter)
    rows = with_kept_features(prepared, rows)
    nothing = Evaluation(np.nan, theta, DecoupledForm(held.linear, held.precision))
    found = held.form(posterior_from_sites(prepared, held.sites, rows))
    if found is None:
        return nothing
    q, inverses = found
    m, kl = q.moments()
    if not np.isfinite(kl):
        return nothing

    def one(chunk: Chunk) -> tuple[Pass, object]:
        own = gradient_pass(prepared, m, chunk)
        return own.sums(), own.by_features

    sums, by_features = rows.sum_and_keep(one)
    if sums.not_finite:
        return nothing
    by_P = _pullback(q, m, sums.by_q, inverses)
    by_prepared = rows.sum(
        lambda chunk, own, by: theta_pass(prepared, by, by_P, own, chunk), held.sites, by_features
    )
    return Evaluation(float(sums.bound) - kl, theta_gradient(prepared, by_prepared, sums), q)


def _pullback(q: DecoupledForm, m: Moments, by: Moments, inverses: Inverses) -> Natural:
    """The gradient by Σ λ(a,b) and P of F − KL, from that of F by ((m, m_β), S).

    P⁻¹g and −½(P⁻¹g (m, m_β)ᵀ + its transpose), g = ∂F/∂m − m; in the block of Z also what S has.
    """
    size, mean = q.precision.shape[-1], np.asarray(m.mean)
    by_linear = np.einsum("cij,cj->ci", inverses, np.asarray(by.mean) - mean)
    outer = by_linear[:, :, None] * mean[:, None, :]
    by_precision = -0.5 * (outer + np.swapaxes(outer, 1, 2))
    still = mean[:, :size]  # no slope by the mean: what is left is that by S
    through_S = elbo_pullback(
        Natural(np.zeros_like(still), q.precision),
        Moments(still, m.excess),
        Moments(still, np.asarray(by.excess)),
    )
    by_precision[:, :size, :size] += through_S.precision
    return Natural(by_linear, by_precision)


class LearnedDecoupled(NamedTuple):
    """Where rounds ended."""

    theta: Theta
    q: DecoupledForm
    stop: Stop


def learn_decoupled(
    theta: Theta, q: DecoupledForm, rows: Rows, context: FitContext, evaluations: int
) -> LearnedDecoupled:
    """Rounds: steps on q, then L-BFGS by θ on the dual bound, until one gains little."""
    unit = partial(_rounds, theta, q, rows, context, evaluations)
    return context.journal.once("rounds", unit)


def _rounds(
    theta: Theta, q: DecoupledForm, rows: Rows, context: FitContext, evaluations: int
) -> LearnedDecoupled:
    log, journal, stop = context.log, context.journal, Stop.EVALUATIONS
    place = journal.place("reached")
    first, theta, q, pairs, before = place.reached((0, theta, q, (), -np.inf))
    memory = Memory(pairs)
    for done in range(first, evaluations, ROUND):
        used = min(ROUND, evaluations - done)
        with journal.inside("round", done):
            q, held = _steps(theta, q, rows, context, done, evaluations)
            better = _hyper(theta, held, rows, context, memory, done, used, evaluations)
        if better.found is None:
            stop = Stop.NOT_A_NUMBER
            break
        theta, q = better.theta, better.found.q
        if better.value - before < 0.5 * used * context.tolerance * rows.total_weight:
            stop = Stop.CONVERGED
            break
        before = better.value
        log.score(theta, q.moments()[0])
        if log.enough:
            stop = log.ending
            break
        place.mark((done + ROUND, theta, q, memory.pairs, before))
    theta, m = log.best(theta, q.moments()[0])
    return LearnedDecoupled(theta, DecoupledForm.of(m), stop)


def _steps(
    theta: Theta, q: DecoupledForm, rows: Rows, context: FitContext, done: int, planned: int
) -> tuple[DecoupledForm, HeldDecoupled]:
    """Refresh q under θ, and what makes it up."""
    prepared, _ = prepare(*theta, context.jitter)
    kept, total = with_kept_features(prepared, rows), rows.total_weight
    steps = STEPS if done else FIRST_STEPS
    limits = Limits(steps, context.tolerance * total, context.slack(total))

    def note(elbo: float, m: Moments) -> bool:
        return context.log.note("posterior", elbo / total, done / planned, theta, m)

    place = context.journal.place("step")
    q, _, _ = climb_decoupled(prepared, q, kept, kept, limits, note, place)
    return q, hold(prepared, q, kept)


def _hyper(
    theta: Theta,
    held: HeldDecoupled,
    rows: Rows,
    context: FitContext,
    memory: Memory,
    done: int,
    evaluations: int,
    planned: int,
) -> Improved:
    """Improve θ while the sites are held."""
    total = rows.total_weight

    def note(elbo: float, theta: Theta, q: DecoupledForm, number: int) -> bool:
        share = (done + number + 1) / planned
        return context.log.note("hyper-parameters", elbo / total, share, theta, q.moments()[0])

    return improve(
        theta,
        lambda theta, _: dual_bound(held, rows, theta, context.jitter),
        memory,
        total=total,
        evaluations=evaluations,
        moves=context.moves,
        on_evaluation=note,
        journal=context.journal,
    )
