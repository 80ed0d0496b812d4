"""A fit from beginning to end: an engine, the rows, and what is left of them."""

import time
from typing import Any, NamedTuple

import jax
import numpy as np

from gpclf.data import Rows
from gpclf.gaussian import Moments, Natural
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.engines import Engine
from gpclf.inference.history import History, Judge, Report
from gpclf.inference.hyper import Moves
from gpclf.inference.journal import Journal
from gpclf.inference.loo import LeaveOneOut
from gpclf.inference.plan import Plan
from gpclf.inference.stops import Stop
from gpclf.kernels import Stationary
from gpclf.linalg import one_thread
from gpclf.model import Theta, prepare


class Settings(NamedTuple):
    """What holds for every engine."""

    tolerance: float = 1e-4  # nats per row below which a step or round has converged
    dtype: np.dtype = np.dtype(np.float64)  # of work on rows
    move_points: bool = True  # Z is learned with the kernel; not for the full process, where Z is X
    families: tuple[type[Stationary], ...] = ()  # that the kernel may be of, ever rougher
    points: int = 0  # that q may have, of many functions with one covariance

    @property
    def jitter(self) -> float:
        """What is added to the diagonal of k(Z, Z), relative to its mean."""
        return 1e-6 if self.dtype == np.float32 else 1e-9


class Watch(NamedTuple):
    """Who hears of every step, who scores now and then, when the clock began, and when to end."""

    report: Report = lambda progress: None
    judge: Judge | None = None
    began: float | None = None
    max_seconds: float = np.inf
    journal: Journal | None = None  # of what has been found, to go on from


class Result(NamedTuple):
    """The end of a fit."""

    theta: Theta
    q: Natural | Moments
    objective: float  # of all rows; an estimate where the last steps were stochastic
    history: dict[str, np.ndarray]
    stopped: str
    jitter: float
    tried: list[dict[str, Any]] | None  # kernels, by rows left out
    left_out: LeaveOneOut | None
    interrupted: bool = False


def fit(
    theta: Theta,
    start: Natural | int,
    rows: Rows,
    engine: Engine,
    plan: Plan,
    settings: Settings,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> Result:
    """Fit q, and θ unless the plan keeps it.

    `start`: a q of these rows to go on from, or the number of functions. Ctrl-C ends it with the
    last θ and q that made a classifier, if there are some.
    """
    watch = Watch() if watch is None else watch
    began = watch.began or time.perf_counter()
    log = History(watch.report, began, watch.judge, watch.max_seconds)
    rows = rows.in_chunks(plan.chunk_rows)
    moves = Moves(points=settings.move_points)
    common = (settings.tolerance, settings.jitter, settings.dtype)
    journal = Journal() if watch.journal is None else watch.journal
    journal.begin(log, rng)
    common = (*common, moves, settings.families, settings.points)
    context = FitContext(rows, plan, log, rng, journal, *common)
    theta = jax.device_put(Theta(*theta))  # compiles nothing, unlike jnp.asarray
    q = Natural.standard(start, theta.Z.shape[-2]) if isinstance(start, int) else start
    with one_thread():
        try:
            known = not isinstance(start, int)
            end = journal.once("fit", lambda: engine.run(theta, q, context, known))
            journal.end()
        except KeyboardInterrupt:
            if log.last is None:
                raise
            last, why = log.last, (Stop.INTERRUPTED, Stop.INTERRUPTED)
            end = Outcome(last.theta, last.q, last.elbo * rows.total_weight, *why)
        if not np.isfinite(end.objective):
            raise context.failure(end.theta, end.q)
        jitter = float(prepare(*end.theta, settings.jitter)[1])
    told = (log.arrays(), end.stopped, jitter, end.tried, end.left_out)
    interrupted = end.posterior is Stop.INTERRUPTED
    return Result(end.theta, end.q, end.objective, *told, interrupted)
