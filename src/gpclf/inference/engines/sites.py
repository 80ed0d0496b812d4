"""What engines of sites share: rounds for hyper-parameters, then steps on rows or batches."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from gpclf import inducing
from gpclf.data import Rows
from gpclf.gaussian import Natural
from gpclf.inference.ahead import compile_ahead
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.drivers.epochs import Mover, run_epochs
from gpclf.inference.drivers.rounds import Learned, MakeRule, posterior_of_all_rows, run_rounds
from gpclf.inference.engines.base import Engine
from gpclf.inference.loo import LeaveOneOut, leave_one_out
from gpclf.inference.natural import Settled
from gpclf.inference.plan import Plan
from gpclf.inference.rules import Rule, Variational
from gpclf.inference.selection import select
from gpclf.inference.stops import Stop
from gpclf.kernels import Stationary
from gpclf.model import Model, Points, Prepared, Theta, prepare

EASY_SHARE = 0.4  # of the work, under an easier likelihood
MOST_IN_FOLDS = 400
COMMON = 8  # functions, from which on they may have one covariance, whatever the rows
FEW_ROWS = 1000  # up to which each function has its own while θ is learned
MANY_ROWS = 2**15  # above which more points for fewer functions are dear, and gain nothing
LEFT_OUT = 2**15  # rows whose score without them is found
LEARNING, ROUGH, SELECTED = 0.45, 0.65, 0.9  # of the work, before rows left out choose, and after
ROUGH_EVALUATIONS, ROUGH_ROWS = 30, 4096  # for the roughest kernel
FEWEST = 100  # rows for which it is learned, with a lengthscale for each feature
WIDEST = 128  # columns for which it is learned: absolute differences are no product of matrices


class SiteEngine(Engine):
    """An engine that is a rule for full batches and a mover for epochs."""

    @abstractmethod
    def rule(self, rows: Rows) -> Rule:
        """From marginals to sites, for these rows."""

    @abstractmethod
    def steps(self, theta: Theta, q: Natural, context: FitContext, seen: int) -> Mover:
        """What moves on batches, from a q that knows so many rows."""

    def remark(self, improper: int, steps: Mover | None) -> str:
        """What else there is to say at the end."""
        return ""

    def selects(self, model: Model, plan: Plan) -> bool:
        """Whether rows left out choose how rough and how sure the kernel is."""
        return False

    def _learns_in_common(self, model: Model, plan: Plan, n_latent: int, n_rows: int) -> bool:
        """Whether functions have one covariance while θ is learned: C times cheaper, and as good.

        Where rows left out have the last word on the kernel, the bound need not be the highest.
        Where rows are few it costs little to have more, and their probabilities gain from it.
        """
        several = n_latent > 1 and n_rows > FEW_ROWS
        return several and model.shared and self.selects(model, plan)

    def run(self, theta: Theta, q: Natural, context: FitContext, known: bool) -> Outcome:
        """Hyper-parameters unless they are kept, then the posterior of all rows."""
        log, first, selects = context.log, theta.Z, self.selects(theta.model, context.plan)
        n_rows = context.rows.n_rows
        if not known and self._learns_in_common(theta.model, context.plan, len(q.linear), n_rows):
            q = q.in_common()
        with log.scope(0.0, LEARNING if selects else 1.0):
            theta, q, learned = learn(theta, q, context, known, self.rule)
        hyper = Stop.FIXED if learned is None else learned.stop
        if not context.plan.full_batch:
            steps = self.steps(theta, q, context, 0 if learned is None else learned.n_rows)
            end = run_epochs(steps, context)
            hyper = end.stop if context.plan.optimizer == "adam" else hyper
            return Outcome(end.theta, end.q, end.objective, hyper, end.stop, self.remark(0, steps))
        rule, chosen = self.rule(context.rows), None
        if selects and learned is not None and not log.enough:
            before = theta
            with log.scope(LEARNING, ROUGH, named="roughest kernel: ", judged=False):
                starts = (theta, *roughest(theta, q, context, self.rule))
            starts, q, first = more_points(starts, q, first, context)
            theta = starts[0]
            with log.scope(ROUGH, SELECTED):
                chosen = select(rule, starts, q, context, first)
            theta = theta if chosen is None else chosen.theta
            hyper = Stop.TIME if log.late else hyper  # while rows left out were asked
            if len(starts[0].Z) == len(before.Z):  # else many points, of a covariance in common
                q = q.each_its_own()
            if theta is not before:  # q was of another kernel, or other points
                q = q.prior()
                learned = learned._replace(theta=theta, q=q, held=None, n_rows=0)
        with log.scope(SELECTED if selects else share_of_rounds(context, learned), 1.0):
            found = posterior_of_all_rows(rule, theta, learned, q, context, known)
        prepared, _ = prepare(*theta, context.jitter)
        more = "" if chosen is None else chosen.remark
        return Outcome(
            theta,
            found.q,
            found.objective,
            hyper,
            found.reason,
            more + self.remark(found.here.improper, None),
            None if chosen is None else [tried._asdict() for tried in chosen.tried],
            context.journal.once("left out", lambda: left_out(prepared, found, context, rule)),
        )

    def compile_ahead(
        self, model: Model, n_inducing: int, rows: Rows, n_latent: int, plan: Plan
    ) -> None:
        """The programs of the first rounds, which an easier likelihood may have."""
        if plan.optimizer == "lbfgs":
            first, _ = easier(model, n_latent, plan)
            rule = self.rule(rows) if first is model else Variational()
            blank = rows.in_chunks(plan.chunk_rows).blank()
            common = self._learns_in_common(model, plan, n_latent, rows.n_rows)
            prior = Natural.standard(n_latent, n_inducing, common=common)
            compile_ahead(rule, first, blank, prior)


def left_out(
    prepared: Prepared, found: Settled, context: FitContext, rule: Rule
) -> LeaveOneOut | None:
    """The score of rows left out one by one, of some where they are many.

    None where a row is seen in several nodes, or the time was up: q is no sum of its sites then.
    Sites that are held are those of all rows.
    """
    if found.reason is Stop.TIME or prepared.nodes(1) > 1 or not prepared.sites_say_all:
        return None
    if rule.needs_sites and found.held is not None:
        return leave_one_out(prepared, found.q, context.rows, found.held.sites)
    return leave_one_out(prepared, found.q, context.rows.sample(LEFT_OUT, context.rng), None)


def roughest(
    theta: Theta, q: Natural, context: FitContext, make_rule: MakeRule
) -> tuple[Theta, ...]:
    """θ for the roughest kernel of the family, where that is to be chosen from.

    Learned from where θ is, in fewer evaluations, on fewer rows: lengthscales that suit a smooth
    kernel do not suit the roughest, which sees features one by one.
    """
    kernel, families, plan = theta.model.kernel, context.families, context.plan
    worth = theta.Z.shape[-1] <= WIDEST and context.rows.n_rows >= FEWEST
    if not families or not worth or not isinstance(kernel, Stationary):
        return ()
    model = replace(theta.model, kernel=kernel.of_family(families[-1]))
    few = plan._replace(
        evaluations=min(ROUGH_EVALUATIONS, plan.evaluations),
        learning_rows=min(ROUGH_ROWS, plan.learning_rows),
    )
    start = theta._replace(model=model)
    found = run_rounds(start, q.prior(), context._replace(plan=few), make_rule).theta
    return (found,) if type(found.model.kernel) is families[-1] else ()


def more_points(
    starts: tuple[Theta, ...], q: Natural, first: Points, context: FitContext
) -> tuple[tuple[Theta, ...], Natural, Any]:
    """Further inducing points, where functions have one covariance in common from here on.

    After those that were learned; and some after the first ones, for folds, of which many are
    fitted. A step on q then costs nearly as little
    as with one function, so that several times as many points are affordable; what the covariance
    of each would tell is little where classes are far away from any one row.
    """
    known = len(first) if starts[0].model.shared else context.points
    if context.points <= known:
        return starts, q, first
    some = context.rows.sample(inducing.CLUSTERED_ROWS, context.rng)
    X = np.concatenate(some.keep(lambda chunk: np.asarray(chunk.X)[np.asarray(chunk.weight) > 0]))
    added = inducing.choose(X.astype(np.float64), context.points - known, context.rng)
    starts = tuple(
        own._replace(Z=jax.device_put(np.concatenate([np.asarray(own.Z), added]))) for own in starts
    )
    few = context.rng.permutation(len(added))[: max(0, MOST_IN_FOLDS - known)]
    first = np.concatenate([np.asarray(first), added[few]])
    return starts, Natural.standard(len(q.linear), known + len(added), common=True), first


def variational(rows: Rows) -> Rule:
    """The rule of an easy beginning, whatever the rows."""
    return Variational()


def share_of_rounds(context: FitContext, learned: Learned | None) -> float:
    """Of the work of a fit, before its last steps: an evaluation is three passes, a step one."""
    if learned is None:
        return 0.0
    rounds = 3.0 * context.plan.evaluations * min(learned.n_rows, context.rows.n_rows)
    steps = min(8, context.plan.max_epochs) * context.rows.n_rows
    return rounds / (rounds + steps)


def easier(model: Model, n_latent: int, plan: Plan) -> tuple[Model, Plan]:
    """A model whose bound has fewer optima, and a plan for it; itself where it has but one."""
    likelihood = model.likelihood.easier(n_latent)
    if likelihood is model.likelihood:
        return model, plan
    first = replace(model, likelihood=likelihood, inputs=model.inputs.coarser())
    return first, plan._replace(evaluations=plan.evaluations // 2)


def learn(
    theta: Theta,
    q: Natural,
    context: FitContext,
    known: bool,
    make_rule: MakeRule,
) -> tuple[Theta, Natural, Learned | None]:
    """Hyper-parameters by rounds, where L-BFGS learns them; a first θ under an easier likelihood.

    A bound that is flat far from the boundary has many optima: θ would stay at the q that it began
    with. The size of the inputs' errors is left alone, which an easier likelihood takes for noise
    of its own.
    """
    if context.plan.optimizer != "lbfgs":
        return theta, q, None
    model, plan = easier(theta.model, len(q.linear), context.plan)
    end = share_of_rounds(context, Learned(theta, q, None, plan.learning_rows, Stop.FIXED))
    begin = 0.0
    if model is not theta.model and not known:
        begin = EASY_SHARE * end
        name = type(model.likelihood).__name__.lower()
        moves = context.moves._replace(inputs=False)
        first = context._replace(plan=plan, moves=moves)
        with context.log.scope(0.0, begin, named=f"{name}: ", judged=False):
            found = run_rounds(theta._replace(model=model), q, first, variational)
        kernel = found.theta.model.kernel
        theta = found.theta._replace(model=replace(theta.model, kernel=kernel))
    with context.log.scope(begin, end):
        learned = run_rounds(theta, q, context, make_rule)
    return learned.theta, learned.q, learned
