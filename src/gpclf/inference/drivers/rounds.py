"""Rounds: closed-form steps on q, then L-BFGS on the dual objective, coarse to fine; any rule."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpclf.data import Rows
from gpclf.gaussian import Natural
from gpclf.inference.ahead import compiled_beside
from gpclf.inference.context import FitContext
from gpclf.inference.hyper import Improved, Known, Problem, dual_objective, improve
from gpclf.inference.natural import (
    Limits,
    Settled,
    Start,
    initial_posterior,
    less_prior,
    settle,
    tempered,
)
from gpclf.inference.optim.lbfgs import Memory
from gpclf.inference.passes import with_kept_features
from gpclf.inference.plan import MANY_ROWS, Round, schedule
from gpclf.inference.rules import Held, Rule, Seen, held_posterior, no_sites
from gpclf.inference.stops import Stop
from gpclf.model import Prepared, Theta, prepare

LOOK_STEPS = 4  # on q, where all rows are seen between two stages, or some of many halfway
SOME_STEPS = 15  # on q, for the rows that are seen before many

MakeRule = Callable[[Rows], Rule]


class Learned(NamedTuple):
    """Where rounds ended; what makes up q, and the rows that it is of."""

    theta: Theta
    q: Natural
    held: Held | None
    n_rows: int
    stop: Stop


class Sweep(NamedTuple):
    """Steps on q over all rows of a source, under one θ."""

    stage: str
    steps: int
    behind: int  # rows that q knows
    shares: tuple[float, float]  # of the work planned, done before and after
    rate: float = 1.0


class _Stage:
    """The rows that some rounds see, and what they know of them."""

    def __init__(self, rule: Rule, rows: Rows):
        self.rule, self.rows = rule, rows
        self.kept = rows  # with their features under the θ of a round
        self.held: Held | None = None
        self.rate, self.before = 1.0, -np.inf
        self.here: Seen | None = None  # under the q of the last evaluation that was best


def run_rounds(theta: Theta, q: Natural, context: FitContext, make_rule: MakeRule) -> Learned:
    """Rounds until one gains little, or all are done."""
    plan, log, rows = context.plan, context.log, context.rows
    rounds = schedule(plan, rows.n_rows, len(q.linear))
    memory, done, stop = Memory(), 0, Stop.EVALUATIONS
    stage, seen = None, 0
    for now in rounds:
        prepared, _ = prepare(*theta, context.jitter)
        behind, new = seen, now.rows != seen
        if now.look is not None:
            share = done / plan.evaluations
            q, behind = _look(now, prepared, theta, q, context, make_rule, seen, share)
        if stage is None or new:
            first = stage is None
            stage, q = _enter(now, prepared, q, context, make_rule, 0 if first else behind)
            seen = now.rows
        stage.kept = with_kept_features(prepared, stage.rows)
        share = done / plan.evaluations
        settled = _steps(stage, prepared, theta, q, context, now.steps, share)
        if log.late:
            stage.held, q, stop = settled.held, settled.q, log.ending
            break
        count = itertools.count(done + 1)
        better = _hyper(stage, settled, prepared, theta, context, memory, now.evaluations, count)
        if better.found is None:  # the held sites add up to no Gaussian in this precision
            if not np.isfinite(settled.objective):
                raise context.failure(theta, settled.q)
            q, stop = settled.q, Stop.NOT_A_NUMBER
            break
        theta, q, here = better.theta, better.found.q, better.found.here
        stage.here = here if here is not None and here.target is not None else None
        done += now.evaluations
        total, last = stage.rows.total_weight, seen == plan.learning_rows
        little = 0.5 * now.evaluations * context.tolerance * total
        if last and better.value - stage.before < little:
            stop = Stop.CONVERGED
            break
        stage.before = better.value
        if last:
            log.score(theta, q)
        if log.enough:
            stop = log.ending
            break
    held = stage.held if stage is not None and stage.rows is rows else None  # of all rows
    theta, q = log.best(theta, q)
    return Learned(theta, q, held, min(seen, rows.n_rows), stop)


def _look(
    now: Round,
    prepared: Prepared,
    theta: Theta,
    q: Natural,
    context: FitContext,
    make_rule: MakeRule,
    seen: int,
    share: float,
) -> tuple[Natural, int]:
    """A few steps on all rows, or on some of many: a good classifier early.

    With one function also a better start for the rows that follow; with many, these start from q
    as it was: from one of all rows letter ended with an NLL of 0.202 instead of 0.186.
    """
    rows = context.rows
    if now.look == "some rows":
        rows = rows.sample(MANY_ROWS // 8, context.rng)
    sweep = Sweep(str(now.look), LOOK_STEPS, seen, shares=(share, share))
    found = sweep_over(make_rule(rows), prepared, theta, Start(q), rows, context, sweep)
    if now.look == "all rows" and len(q.linear) == 1:
        return found.q, now.rows
    return q, seen


def _enter(
    now: Round,
    prepared: Prepared,
    q: Natural,
    context: FitContext,
    make_rule: MakeRule,
    behind: int,
) -> tuple[_Stage, Natural]:
    """Other rows, other sites: their programs, and a first q for them."""
    chunk_rows = context.rows.chunk_rows
    whole_chunks = max(1, round(now.rows / chunk_rows))  # no work on rows that fill up
    rows = context.rows.sample(whole_chunks * chunk_rows, context.rng)
    stage = _Stage(make_rule(rows), rows)
    compiled_beside(stage.rule, prepared, rows.blank(), q.prior()).wait_for_steps()
    if behind:
        known = behind / now.rows  # less of q, and a smaller first step, the fewer rows it knew
        q, stage.rate = tempered(q, known**2), 1.0 if known == 1 else 0.5 * known
        stage.held = Held(no_sites(prepared, rows, q), less_prior(q))
    else:
        q, stage.held = initial_posterior(prepared, q, with_kept_features(prepared, rows))
    return stage, q


def _steps(
    stage: _Stage,
    prepared: Prepared,
    theta: Theta,
    q: Natural,
    context: FitContext,
    steps: int,
    share: float,
) -> Settled:
    """Refresh the sites."""
    total = stage.rows.total_weight
    settled = settle(
        stage.rule,
        prepared,
        Start(q, stage.held, stage.rate, stage.here),
        stage.kept,
        Limits(steps, context.tolerance * total, context.slack(total)),
        keep_features=True,
        on_step=lambda value, q: context.log.note("posterior", value / total, share, theta, q),
    )
    stage.rate = settled.rate
    return settled


def _hyper(
    stage: _Stage,
    settled: Settled,
    prepared: Prepared,
    theta: Theta,
    context: FitContext,
    memory: Memory,
    evaluations: int,
    count: itertools.count,
) -> Improved:
    """Improve θ while the sites are held."""
    assert settled.held is not None
    total = stage.rows.total_weight
    sites = stage.rule.held_still(prepared, settled.q, settled.held.sites, stage.kept)
    stage.held = settled.held._replace(sites=sites)
    problem = Problem(
        stage.rule, stage.rows, stage.held, context.jitter, context.moves, settled.here.improper
    )
    known: list[Known] = []
    if sites is settled.held.sites and settled.here.by_features is not None:
        known.append(Known(settled.q, settled.here, stage.kept))
    compiled_beside(stage.rule, prepared, stage.rows.blank(), settled.q.prior()).wait()
    return improve(
        theta,
        lambda theta: dual_objective(problem, theta, known.pop() if known else None),
        memory,
        total=total,
        evaluations=evaluations,
        moves=context.moves,
        on_evaluation=lambda value, theta, q: context.log.note(
            "hyper-parameters", value / total, next(count) / context.plan.evaluations, theta, q
        ),
    )


def sweep_over(
    rule: Rule,
    prepared: Prepared,
    theta: Theta,
    start: Start,
    rows: Rows,
    context: FitContext,
    sweep: Sweep,
) -> Settled:
    """Full-batch steps on all rows of a source, from a q that knows so many rows.

    If the time is up there is one step, or a few from a q that knows none.
    """
    total, q, held = rows.total_weight, start.q, start.held
    kept = with_kept_features(prepared, rows)
    if held is None and sweep.behind:
        q = tempered(q, min(1.0, sweep.behind / rows.n_rows))
        if rule.needs_sites:
            held = Held(no_sites(prepared, rows, q), less_prior(q))
    elif held is None:
        q, first = initial_posterior(prepared, q, kept)
        held = first if rule.needs_sites else None
    fewest, count = 1 if sweep.behind else LOOK_STEPS, itertools.count(1)

    def note(value: float, q: Natural) -> bool:
        step, (low, high) = next(count), sweep.shares
        share = low + (high - low) * step / sweep.steps
        late = context.log.note(sweep.stage, value / total, share, theta, q)
        return late and step >= fewest

    return settle(
        rule,
        prepared,
        Start(q, held, sweep.rate),
        kept,
        Limits(sweep.steps, context.tolerance * total, context.slack(total)),
        on_step=note,
    )


def posterior_of_all_rows(
    rule: Rule, theta: Theta, learned: Learned | None, q: Natural, context: FitContext, known: bool
) -> Settled:
    """q of all rows under the θ that was learned; most steps on some of many rows first."""
    prepared, _ = prepare(*theta, context.jitter)
    rows, rate, held = context.rows, 1.0, None
    behind = rows.n_rows if known else 0
    if learned is not None:
        behind, held = learned.n_rows, learned.held if rule.needs_sites else None
    if rows.n_rows > MANY_ROWS:  # then few are enough
        part = rows.sample(MANY_ROWS // 4, context.rng)
        some = Sweep("some rows", SOME_STEPS, behind, shares=(0.0, 0.3))
        found = sweep_over(rule, prepared, theta, Start(q), part, context, some)
        if context.log.late:  # the objective is an estimate, then
            return found._replace(held=None, reason=Stop.TIME)
        q = found.q
        behind, rate = max(behind, part.n_rows), 0.5  # a full step mostly fails, for a pass
    if held is not None:
        q = held_posterior(prepared, held, rows)
    low = 0.3 if rows.n_rows > MANY_ROWS else 0.0
    end = Sweep("all rows", context.plan.max_epochs, behind, (low, 1.0), rate)
    return sweep_over(rule, prepared, theta, Start(q, held), rows, context, end)
