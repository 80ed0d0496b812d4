"""L-BFGS-B on all rows, in (m, L) and, where they are free, the kernel's parameters and Z."""

from functools import partial
from typing import Any

import numpy as np

from gpclf.inference.ascent import look
from gpclf.inference.context import FitContext
from gpclf.inference.coordinates import Coordinates
from gpclf.inference.factored import Factored, moments
from gpclf.inference.hyper import log_prior
from gpclf.inference.passes import with_kept_features
from gpclf.inference.stops import Stop
from gpclf.model import Theta, prepare

GAIN = 0.01  # an iteration gains little: it has converged at this share of the tolerance
WORST = 1e10  # nats per row, where the bound is not a number: SciPy's search needs one
BETWEEN = 10  # iterations between two looks at validation rows
MOST_KEPT = 2**27  # numbers of a journal: SciPy's search goes on by being run again
PAIRS = 20  # changes of place and slope that are remembered


class _Climb:
    """What SciPy's search asks for, and the best point that it has seen."""

    def __init__(
        self, theta: Theta, q: Factored, context: FitContext, free: bool, evaluations: int
    ):
        self.context, self.free, self.evaluations = context, free, evaluations
        self.space = Coordinates(q, theta, free=free, move_points=context.moves.points)
        self.total = context.rows.total_weight
        self.prepared, _ = prepare(*theta, context.jitter)
        self.rows = context.rows.keeping(lambda chunk: chunk, context.rows.n_columns)
        if not free:
            self.rows = with_kept_features(self.prepared, context.rows)
        self.place = context.journal.place("best")
        self.best: tuple[float, Theta, Factored] = self.place.reached((-np.inf, theta, q))
        self.used = self.iterations = 0

    def objective(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """What is to be lowered, per row, and its slope."""
        self.used += 1
        once = self.context.journal.once
        value, slope = once("evaluation", lambda: self._evaluated(numbers))
        return value, slope.copy()  # SciPy's to change

    def _evaluated(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        space, free = self.space, self.free
        here, there = space.unpack(numbers)
        ready = prepare(*there, self.context.jitter)[0] if free else self.prepared
        seen = look(ready, here, self.rows, at_theta=free)
        slope = space.pack(seen.by_q, seen.by_theta)
        if not (np.isfinite(seen.elbo) and np.all(np.isfinite(slope))):
            return WORST, np.zeros_like(slope)
        value = seen.elbo
        if free:
            expected, by_model = log_prior(there.model)
            value += float(expected)
            slope += space.pack(space.nothing(), Theta(by_model, np.zeros_like(there.Z)))
        stage, done = "hyper-parameters" if free else "posterior", self.used / self.evaluations
        m, _ = moments(here)
        self.context.log.note(stage, seen.elbo / self.total, min(1.0, done), there, m)
        if value > self.best[0]:
            self.best = (value, there, here)
            self.place.put(self.best)
        return -value / self.total, -slope / self.total

    def after_iteration(self, intermediate_result: object) -> None:
        """Have the validation rows looked at now and then, and end where it is enough.

        SciPy reads the name of the parameter, too.
        """
        self.iterations += 1
        if self.free and self.iterations % BETWEEN == 0:
            self.context.log.score(self.best[1], moments(self.best[2])[0])
        if self.context.log.enough:
            raise StopIteration


def climb_by_lbfgs(
    theta: Theta, q: Factored, context: FitContext, *, free: bool, evaluations: int
) -> tuple[Theta, Factored, Stop]:
    """The best point of a run by the ELBO, and by the prior of θ where that moves: if `free`.

    The start is the first point seen, so no run ends below it.
    """
    unit = partial(_climbed, theta, q, context, free, evaluations)
    return context.journal.once("climb", unit)


def _climbed(
    theta: Theta, q: Factored, context: FitContext, free: bool, evaluations: int
) -> tuple[Theta, Factored, Stop]:
    from scipy.optimize import Bounds, minimize  # slow to import

    climb = _Climb(theta, q, context, free, evaluations)
    if context.journal.keeps and len(climb.space.pack(q, theta)) * evaluations > MOST_KEPT:
        raise ValueError(
            'optimizer="lbfgs" of the gradient engine would keep the slopes of all evaluations in '
            'the checkpoint, and here these are too many numbers: use optimizer="adam".'
        )
    limits: Any = climb.space.limits()  # SciPy's types know of numbers only
    found = minimize(
        climb.objective,
        climb.space.pack(q, theta),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(*limits),
        callback=climb.after_iteration,
        options={
            "maxfun": evaluations,
            "maxiter": evaluations,
            "maxcor": PAIRS,
            "ftol": GAIN * context.tolerance,
            "gtol": 0.0,
        },
    )
    value, theta, best = climb.best
    if not np.isfinite(value):
        raise context.failure(theta, moments(q)[0])
    if context.log.enough:
        return theta, best, context.log.ending
    return theta, best, Stop.CONVERGED if found.success else Stop.EVALUATIONS
