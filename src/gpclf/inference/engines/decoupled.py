"""The decoupled engine: from what the natural engine found, with more points for the mean alone."""

import itertools
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import Rows
from gpclf.data.rows import KEPT_FLOATS
from gpclf.gaussian import Moments
from gpclf.gaussian import Natural as NaturalForm
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.decoupled import (
    DecoupledForm,
    bound_of,
    climb_decoupled,
    with_mean_points,
)
from gpclf.inference.decoupled_hyper import curvature_of, learn_decoupled
from gpclf.inference.drivers.epochs import run_epochs
from gpclf.inference.drivers.natural_steps import DecoupledSteps
from gpclf.inference.engines.base import Asked
from gpclf.inference.engines.natural import Natural
from gpclf.inference.hyper import log_prior
from gpclf.inference.natural import FIRST_ROWS, Limits
from gpclf.inference.passes import with_kept_features
from gpclf.inference.plan import rows_for_points
from gpclf.inference.stops import Stop
from gpclf.model import Theta, prepare

MORE_POINTS = 2  # times as many for the mean alone
CANDIDATES = 4000  # rows that may become points of the mean
STEPS = 30
COUPLED = 0.6  # share of the work, before the points of the mean
LEARNING = 0.8  # of the rest, for kernel and points


class Decoupled(Natural):
    """Orthogonally decoupled bases (Salimbeni et al. 2018): "ORTH" in Liu et al. (2019).

    The natural engine goes before. Then there are more points, for the mean alone, and kernel,
    likelihood and all points climb the bound with these.

    Parameters
    ----------
    n_mean : "auto" or int, default="auto"
        More points for the mean alone, or as many as rows need; "auto": twice as many as inducing
        points. 0: the natural engine.
    optimizer : "auto", "lbfgs", "adam" or None, default="auto"
        For hyper-parameters, before there are more points and after: L-BFGS on the dual bound,
        after them by half as many evaluations; Adam beside stochastic steps; or None to keep the
        kernel, the inducing points and the rows that are points of the mean. "auto": L-BFGS.
    batch_size : "auto" or int, default="auto"
        Rows in a stochastic step. "auto": no stochastic steps but all rows at once, in chunks;
        with Adam 1,024. There are `max_epochs` epochs before there are more points and after.
    learning_rate : "auto" or float, default="auto"
        The first rate of stochastic steps, above 0 and at most 1; it falls to 0 with the last.
    learn_inducing : bool, default=True
        Whether inducing points and those of the mean move, too, when the kernel is learned.
    """

    name = "decoupled"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_mean": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        **{
            name: values
            for name, values in Natural._parameter_constraints.items()
            if name not in ("class_subset", "select")
        },
    }
    class_subset, select = None, False

    def __init__(
        self,
        n_mean: Any = "auto",
        optimizer: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "auto",
        learn_inducing: Any = True,
    ):
        self.n_mean = n_mean
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learn_inducing = learn_inducing

    def refuse(self, asked: Asked) -> None:
        """The points of the mean are those of one kernel."""
        if not asked.shared:
            raise ValueError(
                'inference="decoupled" needs one kernel and one set of points for all functions: '
                'use share="both".'
            )

    def run(self, theta: Theta, q: NaturalForm, context: FitContext, known: bool) -> Outcome:
        """The coupled fit, then θ and q on the bound with more points for the mean."""
        with context.log.scope(0.0, 1.0 if self.n_mean == 0 else COUPLED):
            coupled = context.journal.once(
                "coupled", lambda: super(Decoupled, self).run(theta, q, context, known)
            )
        size = coupled.theta.Z.shape[-2]
        count = MORE_POINTS * size if self.n_mean == "auto" else int(self.n_mean)
        if count == 0 or not np.isfinite(coupled.objective):
            return coupled
        if context.log.late:
            return coupled._replace(more=f"; mean: {Stop.TIME}")
        assert isinstance(coupled.q, NaturalForm)
        prepared, _ = prepare(*coupled.theta, context.jitter)
        part = context.rows.sample(CANDIDATES, context.rng)
        candidates = np.concatenate(part.keep(_real_rows))
        theta, here = with_mean_points(coupled.theta, coupled.q, prepared, candidates, count)
        if here.mean.shape[1] == size:
            return coupled._replace(more=f"; mean: {Stop.NO_POINT}")
        with context.log.scope(COUPLED, 1.0, named="mean: "):
            return self._with_more(theta, here, context, coupled)

    def _with_more(
        self, theta: Theta, q: DecoupledForm, context: FitContext, coupled: Outcome
    ) -> Outcome:
        """θ by rounds where L-BFGS learns it, then q of all rows, or both on batches."""
        plan, rows, log = context.plan, context.rows, context.log
        evaluations = plan.evaluations // 2
        if plan.optimizer != "lbfgs" or log.enough or evaluations == 0:
            return _posterior(theta, q, context, coupled)
        part = rows.sample(rows_for_points(plan, *theta.Z.shape), context.rng)
        with log.scope(0.0, LEARNING):
            learned = learn_decoupled(theta, q, part, context, evaluations)
        with log.scope(LEARNING, 1.0):
            found = coupled._replace(hyper=learned.stop)
            found = _posterior(learned.theta, learned.q, context, found, part)
        if not plan.full_batch or _value(found) >= _value(coupled):
            return found
        with log.scope(1.0, 1.0):  # what some rows said was not so of all of them
            return _posterior(theta, q, context, coupled)


def _value(of: Outcome) -> float:
    """What is climbed: the ELBO, and the prior of θ."""
    return of.objective + float(log_prior(of.theta.model)[0])


def _posterior(
    theta: Theta, q: DecoupledForm, context: FitContext, before: Outcome, known: Rows | None = None
) -> Outcome:
    """q of all rows, by full steps or on batches; `known`: rows that q knows."""
    if context.plan.full_batch:
        unit = partial(_of_all_rows, theta, q, context)
        q, elbo, stop = context.journal.once("posterior", unit)
        more = f"; mean: {stop}"
        return before._replace(theta=theta, q=q.moments()[0], objective=elbo, more=more)
    prepared, _ = prepare(*theta, context.jitter)
    some = context.rows.sample(FIRST_ROWS, context.rng) if known is None else known
    first = curvature_of(prepared, q, with_kept_features(prepared, some))
    size = q.precision.shape[-1]
    steps = DecoupledSteps(theta, first, context, some.n_rows, size)
    end = run_epochs(steps, context)
    assert isinstance(end.q, Moments)
    hyper = end.stop if steps.learns else before.hyper
    prepared, _ = prepare(*end.theta, context.jitter)
    elbo = bound_of(prepared, end.q, context.rows)
    return Outcome(end.theta, end.q, elbo, hyper, before.posterior, f"; mean: {end.stop}")


def _of_all_rows(
    theta: Theta, q: DecoupledForm, context: FitContext
) -> tuple[DecoupledForm, float, Stop]:
    """Steps on the mean and Λ together, the curvature from as many rows as features fit of."""
    prepared, _ = prepare(*theta, context.jitter)
    most = max(context.rows.chunk_rows, KEPT_FLOATS // q.mean.shape[1])
    some = with_kept_features(prepared, context.rows.sample(most, context.rng))
    total, step = context.rows.total_weight, itertools.count(1)
    return climb_decoupled(
        prepared,
        q,
        some if some.n_rows == context.rows.n_rows else context.rows,
        some,
        Limits(STEPS, context.tolerance * total, context.slack(total)),
        lambda elbo, m: context.log.note("all rows", elbo / total, next(step) / STEPS, theta, m),
        context.journal.place("step"),
    )


def _real_rows(chunk: Any) -> np.ndarray:
    """Those of a chunk that count, in float64."""
    return np.asarray(chunk.X, np.float64)[np.asarray(chunk.weight) > 0]
