"""The one loop: hyper-parameters, then the posterior over all rows, and why it stopped."""

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from gpclf.data import ArrayStream, Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.inference.decoupled import run_decoupled
from gpclf.inference.gradient import run_gradient
from gpclf.inference.hyper import Known, Theta, compiled_beside, held_together, improve
from gpclf.inference.journal import (
    ENOUGH,
    NOT_A_NUMBER,
    FitError,
    Journal,
    Judge,
    Report,
)
from gpclf.inference.lbfgs import Memory
from gpclf.inference.mean_field import run_mean_field
from gpclf.inference.natural import (
    Climbed,
    begin,
    climb,
    less_prior,
    made_definite,
    no_sites,
    weakened,
)
from gpclf.inference.plan import KEPT_FLOATS, MANY_ROWS, Plan
from gpclf.inference.power_ep import run_power_ep
from gpclf.inference.sites import with_features
from gpclf.inference.stochastic import run_epochs
from gpclf.inference.work import Work
from gpclf.inputs import Whitening
from gpclf.linalg import one_thread
from gpclf.model import Model, Prepared, prepare

# Hyper-parameters see few rows first: the first evaluations of the dual bound gain the most, and
# few rows tell them the way.
FEW_ROWS, SHARE = 2048, 8  # so many of them, or one of so many that the last evaluations see
ON_FEW = 12  # evaluations
FIRST_STEPS, FEW_STEPS = 15, 5  # on q, for the first rows; where these are few
ROUND = 6  # evaluations between two refreshes of the sites
MANY_FUNCTIONS = 10  # above which one round sees the fewest rows: dear, and a class has few of them
STEPS = 3  # on q, for each refresh
LAST_STEPS = 6  # on q, for all rows of the hyper-parameters where few had gone before
LOOK_STEPS = 4  # on q, where all rows are seen between two stages, or some of many halfway
EASY_SHARE = 0.4  # of the work, under an easier likelihood
SOME_STEPS = 15  # on q, for the rows that are seen before many


class Result(NamedTuple):
    """The end of a fit."""

    theta: Theta
    q: Natural | Moments
    elbo: float  # of all rows; an estimate where the last steps were stochastic
    history: dict[str, np.ndarray]
    stopped: str
    jitter: float


def _rounds(plan: Plan, n_rows: int, n_latent: int) -> Iterator[tuple[int, int, int]]:
    """Rows, evaluations and steps, round by round; not many more rows need no coarse ones."""
    rows, left, steps = plan.learning_rows, plan.evaluations, FIRST_STEPS
    few = max(FEW_ROWS, rows // SHARE)
    if 2 * few < n_rows and 2 * few <= rows:
        on_few = min(ON_FEW if n_latent <= MANY_FUNCTIONS else ROUND, left)
        yield from _some_rounds(few, on_few, FEW_STEPS)
        left, steps = left - on_few, LAST_STEPS
    yield from _some_rounds(rows, left, steps)


def _some_rounds(rows: int, evaluations: int, steps: int) -> Iterator[tuple[int, int, int]]:
    for first in range(0, evaluations, ROUND):
        yield rows, min(ROUND, evaluations - first), steps if first == 0 else STEPS


def _by_lbfgs(theta: Theta, q: Natural, work: Work) -> tuple[Theta, Natural, str]:
    """Rounds of closed-form steps on q and L-BFGS on the dual bound, until a round gains little."""
    stream, plan, rng, log = work
    done, before, stopped = 0, -np.inf, "evaluation limit"
    memory, programs, looked, better = Memory(), None, False, None
    seen, chunks, held, rate, total = 0, [], [], 1.0, 0.0
    rest = less_prior(Natural.standard(*q.linear.shape))  # of q, that the sites do not say
    for n_rows, evaluations, steps in _rounds(plan, stream.n_rows, len(q.linear)):
        new, behind = n_rows != seen, seen
        prepared, _ = prepare(*theta, plan.jitter)
        if seen and plan.full_batch and n_rows < stream.n_rows and not looked:
            # a good classifier early, and with one function a better start for the rows that
            # follow; with many, these start from q as it was: from one of all rows letter ended
            # with an NLL of 0.202 instead of 0.186
            many = stream.n_rows > MANY_ROWS
            looked = 2 * done >= plan.evaluations if many else new
            if looked:
                part = stream.sample(MANY_ROWS // 8, rng) if many else stream
                look = (part, plan, log, theta, "some rows" if many else "all rows")
                share = done / plan.evaluations
                found = _over(prepared, q, *look, behind=seen, max_steps=LOOK_STEPS, share=share)
                if new and len(q.linear) == 1:
                    q, behind = found.q, n_rows
        if new:  # other rows, other sites
            whole_chunks = max(1, round(n_rows / plan.chunk_rows))  # no work on rows that fill up
            rows = stream.sample(whole_chunks * plan.chunk_rows, rng)
            chunks = list(rows.whole(plan.chunk_rows))
            total = float(rows.weight.sum())
            programs = compiled_beside(prepared, chunks[0], len(q.linear))
            programs.wait_for_steps()
        share = done / plan.evaluations
        kept = [with_features(prepared, chunk) for chunk in chunks]
        if new and seen:
            known = behind / n_rows  # less of q, and a smaller first step, the fewer rows it knew
            q, rate = weakened(q, known**2), 1.0 if known == 1 else 0.5 * known
            held, rest = no_sites(prepared, chunks, len(q.linear)), less_prior(q)
        elif new:
            q, held = begin(prepared, q, lambda k=kept: k)
        if new:
            before, seen, better = -np.inf, n_rows, None
        climbed = climb(
            prepared,
            q,
            lambda k=kept: k,
            max_steps=steps,
            tolerance=plan.tolerance * total,
            slack=_slack(plan, total),
            rate=rate,
            held=held,
            here=None if better is None else better.here,
            keep_features=True,
            on_step=lambda elbo, q, t=theta, n=total, s=share: log.note(
                "posterior", elbo / n, s, t, q
            ),
        )
        assert climbed.held is not None
        rate = climbed.rate
        held = made_definite(prepared, climbed.q, climbed.held, kept)
        rest = Natural(*(climbed.left * part for part in rest))
        bends = theta.model.inputs.bends
        if bends:
            own = held_together(prepared, held, kept).linear
            rest = rest._replace(linear=climbed.q.linear - own)
        known = None
        if held is climbed.held and climbed.here.by_features is not None and not bends:
            known = Known(climbed.q, climbed.here, kept)
        assert programs is not None
        programs.wait()
        count = itertools.count(done + 1)
        theta, better, elbo = improve(
            theta,
            held,
            chunks,
            memory,
            evaluations=evaluations,
            jitter=plan.jitter,
            move_points=plan.move_points,
            move_inputs=plan.move_inputs,
            rest=rest,
            known=known,
            on_evaluation=lambda elbo, theta, q, n=total, c=count: log.note(
                "hyper-parameters", elbo / n, next(c) / plan.evaluations, theta, q
            ),
        )
        if better is None:  # the held sites add up to no Gaussian in this precision
            if not np.isfinite(climbed.elbo):
                raise FitError(NOT_A_NUMBER)
            q, stopped = climbed.q, "the bound is not a number: kept as they were"
            break
        q = better.q
        done += evaluations
        if (
            seen == plan.learning_rows
            and elbo - before < 0.5 * evaluations * plan.tolerance * total
        ):
            stopped = "converged"
            break
        before = elbo
        if seen == plan.learning_rows:
            log.score(theta, q)
        if log.enough:
            stopped = ENOUGH
            break
    return *log.best(theta, q), stopped


def _easier(model: Model, n_latent: int, plan: Plan) -> tuple[Model, Plan]:
    """A model whose bound has fewer optima, and a plan for it; itself where it has but one."""
    easier = model.likelihood.easier(n_latent)
    if easier is model.likelihood:
        return model, plan
    half = plan.evaluations // 2
    first = replace(model, likelihood=easier, inputs=model.inputs.coarser())
    return first, plan._replace(evaluations=half, move_inputs=False)


def _easily(theta: Theta, q: Natural, work: Work) -> Theta:
    """A first θ by half as many evaluations under an easier likelihood, where there is one.

    A bound that is flat far from the boundary has many optima: θ would stay at the q that it began
    with. The size of the inputs' errors is left alone, which an easier likelihood takes for noise
    of its own.
    """
    easy, first = _easier(theta.model, len(q.linear), work.plan)
    if easy is theta.model:
        return theta
    with work.log.preface(type(easy.likelihood).__name__.lower(), EASY_SHARE):
        found, _, _ = _by_lbfgs(theta._replace(model=easy), q, work._replace(plan=first))
    return found._replace(model=replace(theta.model, kernel=found.model.kernel))


def _over(
    prepared: Prepared,
    q: Natural,
    stream: ArrayStream,
    plan: Plan,
    log: Journal,
    theta: Theta,
    stage: str,
    *,
    behind: int,
    max_steps: int,
    rate: float = 1.0,
    share: float = 1.0,
) -> Climbed:
    """Full-batch steps on all rows of a stream, from a q with so many rows `behind` it."""
    total = float(stream.weight.sum())
    kept = None
    places = stream.n_rows * theta.model.inputs.places
    if places * (theta.Z.size // theta.Z.shape[-1]) <= KEPT_FLOATS:
        kept = [with_features(prepared, chunk) for chunk in stream.whole(plan.chunk_rows)]

    def chunks() -> Iterable[Chunk]:
        return stream.whole(plan.chunk_rows) if kept is None else kept

    if behind:
        q = weakened(q, min(1.0, behind / stream.n_rows))
    else:
        q, _ = begin(prepared, q, chunks)
    return climb(
        prepared,
        q,
        chunks,
        max_steps=max_steps,
        tolerance=plan.tolerance * total,
        slack=_slack(plan, total),
        rate=rate,
        on_step=lambda elbo, q: log.note(stage, elbo / total, share, theta, q),
    )


def compile_ahead(
    model: Model, n_inducing: int, stream: ArrayStream, n_latent: int, plan: Plan
) -> None:
    """Begin to compile the programs of a fit whose inducing points are not known yet."""
    if plan.optimizer == "lbfgs" and plan.inference in ("natural", "decoupled"):
        model, plan = _easier(model, n_latent, plan)
        own, rows = () if model.shared else (n_latent,), stream.blank(plan.chunk_rows)
        Z = np.zeros((*own, n_inducing, rows.X.shape[1]))
        whitening = Whitening(np.zeros((*own, n_inducing, n_inducing)), Z[..., 0])
        blank: Prepared = jax.device_put(Prepared(model, Z, whitening))
        compiled_beside(blank, rows, n_latent)


def _slack(plan: Plan, total: float) -> float:
    """How much of an ELBO is rounding."""
    return float(np.finfo(plan.dtype).eps) * 10 * total


def fit(
    model: Model,
    Z: Float[Array | np.ndarray, "*G M D"],
    stream: ArrayStream,
    n_latent: int,
    plan: Plan,
    rng: np.random.Generator,
    report: Report = lambda progress: None,
    start: Natural | None = None,
    began: float | None = None,
    judge: Judge | None = None,
) -> Result:
    """Fit q, and θ = (model, Z) unless the plan keeps it; `report` hears of every step.

    `began`: when the clock of the history started, if before this call. `judge` scores θ and q
    now and then, and the θ with the lowest score is kept.
    """
    log = Journal(report, time.perf_counter() if began is None else began, judge)
    with one_thread():
        return _fit(model, Z, n_latent, Work(stream, plan, rng, log), start)


def _fit(model, Z, n_latent: int, work: Work, start: Natural | None) -> Result:
    plan = work.plan
    theta: Theta = jax.device_put(Theta(model, Z))  # compiles nothing, unlike jnp.asarray
    q = Natural.standard(n_latent, Z.shape[-2]) if start is None else start
    if plan.inference == "gradient":
        theta, q, elbo, reasons = run_gradient(theta, q, work)
    elif plan.inference == "power-ep":
        theta, q, elbo, reasons = run_power_ep(theta, q, work)
    elif plan.inference.startswith("mean-field"):
        theta, q, elbo, reasons = run_mean_field(theta, q, work)
    else:
        theta, q, elbo, reasons = _run_natural(theta, q, work, start is not None)
        if plan.inference == "decoupled" and plan.mean_points > 0 and np.isfinite(elbo):
            theta, q, elbo, why = run_decoupled(theta, q, work, elbo)
            reasons = f"{reasons}; {why}"
    if not np.isfinite(elbo):
        raise FitError(NOT_A_NUMBER)
    jitter = prepare(*theta, plan.jitter)[1]
    return Result(theta, q, elbo, work.log.history(), reasons, float(jitter))


def _run_natural(
    theta: Theta,
    q: Natural,
    work: Work,
    known: bool,
) -> tuple[Theta, Natural, float, str]:
    """Hyper-parameters, then natural steps on all rows or on batches.

    `known`: q is of these rows.
    """
    stream, plan, rng, log = work
    stopped = "fixed"
    if plan.optimizer == "lbfgs":
        if not known:
            theta = _easily(theta, q, work)
        theta, q, stopped = _by_lbfgs(theta, q, work)
    behind = min(plan.learning_rows, stream.n_rows) if plan.optimizer == "lbfgs" else 0
    if plan.full_batch:
        prepared, _ = prepare(*theta, plan.jitter)
        if plan.optimizer is None and known:
            behind = stream.n_rows
        rate, common = 1.0, (plan, log, theta)
        if stream.n_rows > MANY_ROWS:  # most steps on some of them; then few are enough
            part = stream.sample(MANY_ROWS // 4, rng)
            some = (*common, "some rows")
            q = _over(prepared, q, part, *some, behind=behind, max_steps=SOME_STEPS).q
            behind, rate = max(behind, part.n_rows), 0.5  # a full step mostly fails, for a pass
        end = (*common, "all rows")
        climbed = _over(
            prepared, q, stream, *end, behind=behind, max_steps=plan.max_epochs, rate=rate
        )
        q, elbo, why = climbed.q, climbed.elbo, climbed.reason
    else:
        theta, q, elbo, why = run_epochs(theta, q, work, behind)
    return theta, q, elbo, f"hyper-parameters: {stopped}; posterior: {why}"
