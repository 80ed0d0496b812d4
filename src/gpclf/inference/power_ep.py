"""Power-EP: sweeps of all sites at once, and hyper-parameters on its energy.

q ∝ N(v; 0, I) Π tₙ, each tₙ so that α of it in the place of α of its row's likelihood leaves q's
moments as they are. α = 1 is EP, with inducing points EP-FITC; α → 0 is variational inference (Bui,
Yan & Turner 2017). The energy, an approximate log-evidence, is

    Σ w { 1/α log E_q (p̃ₙ/tₙ)^α + E_q log tₙ } − KL(q ‖ N(0, I)),   p̃ₙ^α = E p(y | f)^α given ω,

stationary in the sites at their fixed point: for θ they are held, as in the dual bound.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gpclf.data import ArrayStream, Chunk, reduce
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.hyper import Evaluation, Theta, dual_bound, held_together, improve
from gpclf.inference.journal import ENOUGH, NOT_A_NUMBER, FitError
from gpclf.inference.lbfgs import Memory
from gpclf.inference.natural import begin, mixed, slope
from gpclf.inference.plan import Plan
from gpclf.inference.power_sites import Fraction, Swept, power_survey, sweep_chunk
from gpclf.inference.sites import Survey, with_features
from gpclf.inference.stochastic_ep import run_stochastic_ep
from gpclf.inference.work import Work
from gpclf.likelihoods import Sites
from gpclf.model import Prepared, prepare

ROUND = 6  # evaluations between two refreshes of the sites
FIRST_SWEEPS, SWEEPS = 15, 4  # before the first of them, and for each refresh
SMALLEST_RATE = 2.0**-10
WORSE = 4.0  # a sweep after which sites would move so many times as far is taken back
SHARE = 0.1  # of the tolerance: how far q may be from its sites' target
KEPT_FLOATS = 2**25  # of features, for sweeps over all rows: 128 MB in float32

Chunks = Callable[[], Iterable[Chunk]]


class Seen(NamedTuple):
    """All rows under one q and its sites; NaN where q is no Gaussian or a site no number."""

    energy: float
    gap: float  # to the fresh sites, squared, in the metric of q: 0 at the fixed point
    target: Natural | None
    fresh: list[Sites]
    kept: int  # rows that keep their site


def see_all(
    prepared: Prepared, q: Natural, held: Sequence[Sites], chunks: Chunks, fraction: Fraction
) -> Seen:
    """The energy, and where all fresh sites together would bring q."""
    m, kl = moments(q)
    if not np.isfinite(kl):
        return Seen(np.nan, np.nan, None, [], 0)
    fresh: list[Sites] = []

    def sums(pair: tuple[Chunk, Sites]) -> Swept:
        seen = sweep_chunk(prepared, m, *pair, fraction)
        assert seen.sites is not None
        fresh.append(Sites(*map(np.asarray, seen.sites)))
        return seen._replace(sites=None)

    seen = reduce(sums, zip(chunks(), held, strict=True))
    if seen.not_finite:
        return Seen(np.nan, np.nan, None, [], 0)
    target = seen.target()
    return Seen(float(seen.bound) - kl, slope(q, m, target), target, fresh, int(seen.kept))


class Settled(NamedTuple):
    """The end of some sweeps."""

    q: Natural
    held: list[Sites]
    energy: float
    kept: int
    rate: float
    reason: str


def sweep(
    prepared: Prepared,
    q: Natural,
    held: list[Sites],
    chunks: Chunks,
    fraction: Fraction,
    *,
    max_sweeps: int,
    tolerance: float,
    rate: float = 1.0,
    on_sweep: Callable[[float, Natural], None] = lambda energy, q: None,
) -> Settled:
    """Parallel updates of all sites, damped, until their gap is below `tolerance`.

    EP climbs nothing. What tells whether a rate is too large is the gap between q and where its
    sites would bring it: a sweep after which it is much wider, or q no Gaussian, is taken back at
    half the rate; where it is a little wider, the next one is shorter.
    """
    here = see_all(prepared, q, held, chunks, fraction)
    for _ in range(max_sweeps):
        if here.target is None:
            return Settled(q, held, np.nan, here.kept, rate, "not a number")
        if here.gap <= tolerance:
            return Settled(q, held, here.energy, here.kept, rate, "converged")
        while True:
            ahead = q.towards(here.target, rate)
            pairs = zip(held, here.fresh, strict=True)
            moved = [mixed(old, new, rate) for old, new in pairs]
            there = see_all(prepared, ahead, moved, chunks, fraction)
            if np.isfinite(there.energy) and there.gap <= WORSE * here.gap:
                break
            rate /= 2
            if rate < SMALLEST_RATE:
                reason = "no step along the sites brings them closer"
                return Settled(q, held, here.energy, here.kept, 1.0, reason)
        rate = min(1.0, 1.5 * rate) if there.gap < here.gap else 0.5 * rate
        q, held, here = ahead, moved, there
        on_sweep(here.energy, q)
    return Settled(q, held, here.energy, here.kept, rate, "sweep limit")


def energy_bound(fraction: Fraction, most_improper: int) -> Callable:
    """The energy of held sites as a function of θ; not a number where cavities are lost."""

    def bound(theta, sites, chunks, jitter, rest=None) -> Evaluation:
        improper = []

        def see(prepared: Prepared, m: Moments, chunk: Chunk, sites: Sites) -> Survey:
            seen, count = power_survey(prepared, m, chunk, sites, fraction)
            improper.append(int(count))
            return seen

        found = dual_bound(theta, sites, chunks, jitter, rest, see)
        return found if sum(improper) <= most_improper else found._replace(elbo=np.nan)

    return bound


def _learn(theta: Theta, q: Natural, work: Work) -> tuple[Theta, Natural, list[Sites] | None, str]:
    """Rounds of sweeps and of L-BFGS on the energy of at most `plan.learning_rows` rows.

    Also the sites of all rows, where these were all.
    """
    stream, plan, rng, log = work
    rows = stream.sample(plan.learning_rows, rng)
    fraction, total = fraction_for(plan, rows), float(rows.weight.sum())
    chunks, memory = list(rows.whole(plan.chunk_rows)), Memory()
    prepared, _ = prepare(*theta, plan.jitter)
    q, held = begin(prepared, q, lambda: chunks)
    done, before, rate, stopped = 0, -np.inf, 1.0, "evaluation limit"
    while done < plan.evaluations:
        prepared, _ = prepare(*theta, plan.jitter)
        kept = [with_features(prepared, chunk) for chunk in chunks]
        share = done / plan.evaluations
        settled = sweep(
            prepared,
            q,
            held,
            lambda k=kept: k,
            fraction,
            max_sweeps=SWEEPS if done else FIRST_SWEEPS,
            tolerance=SHARE * plan.tolerance * total,
            rate=rate,
            on_sweep=lambda energy, q, t=theta, s=share: log.note(
                "posterior", energy / total, s, t, q
            ),
        )
        held, rate = settled.held, settled.rate
        evaluations = min(ROUND, plan.evaluations - done)
        theta, better, energy = improve(
            theta,
            held,
            chunks,
            memory,
            evaluations=evaluations,
            jitter=plan.jitter,
            move_points=plan.move_points,
            bound=energy_bound(fraction, settled.kept),
            on_evaluation=lambda energy, theta, q, s=share: log.note(
                "hyper-parameters", energy / total, s, theta, q
            ),
        )
        if better is None:
            if not np.isfinite(settled.energy):
                raise FitError(NOT_A_NUMBER)
            q, stopped = settled.q, "the energy is not a number: kept as they were"
            break
        q, done = better.q, done + evaluations
        log.score(theta, q)
        if log.enough:
            stopped = ENOUGH
            break
        if energy - before < 0.5 * evaluations * plan.tolerance * total:
            stopped = "converged"
            break
        before = energy
    return *log.best(theta, q), held if rows is stream else None, stopped


def fraction_for(plan: Plan, stream: ArrayStream) -> Fraction:
    """α, and whether some rows count less than one."""
    return Fraction(plan.alpha, bool(np.any(stream.weight < 1)))


def run_power_ep(theta: Theta, q: Natural, work: Work) -> tuple[Theta, Natural, float, str]:
    """θ unless the plan keeps it, then q by sweeps over all rows, or by stochastic EP.

    Also the energy, and why it ended.
    """
    stream, plan, _, log = work
    held, stopped = None, "fixed"
    if plan.optimizer == "lbfgs":
        theta, q, held, stopped = _learn(theta, q, work)
    reasons = f"hyper-parameters: {stopped}; posterior: "
    if not plan.full_batch:
        behind = min(plan.learning_rows, stream.n_rows) if plan.optimizer == "lbfgs" else 0
        theta, q, energy, why = run_stochastic_ep(theta, q, work, behind)
        return theta, q, energy, reasons + why
    prepared, _ = prepare(*theta, plan.jitter)
    fraction, total = fraction_for(plan, stream), float(stream.weight.sum())
    kept = None
    if stream.n_rows * theta.Z[..., 0].size <= KEPT_FLOATS:
        kept = [with_features(prepared, chunk) for chunk in stream.whole(plan.chunk_rows)]

    def chunks() -> Iterable[Chunk]:
        return stream.whole(plan.chunk_rows) if kept is None else kept

    if held is None:
        q, held = begin(prepared, q, chunks)
    else:
        q = held_together(prepared, held, list(chunks()))
    settled = sweep(
        prepared,
        q,
        held,
        chunks,
        fraction,
        max_sweeps=plan.max_epochs,
        tolerance=SHARE * plan.tolerance * total,
        on_sweep=lambda energy, q: log.note("all rows", energy / total, 1.0, theta, q),
    )
    why = settled.reason
    if settled.kept:
        why += f", {settled.kept} rows without a proper cavity kept their sites"
    return theta, settled.q, settled.energy, reasons + why
