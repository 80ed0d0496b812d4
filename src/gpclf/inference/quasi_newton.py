"""L-BFGS-B on all rows, in (m, L) and, where they are free, the kernel's parameters and Z."""

from typing import Any

import numpy as np

from gpclf.data import ArrayStream
from gpclf.inference.ascent import all_rows, look
from gpclf.inference.coordinates import Coordinates
from gpclf.inference.factored import Factored, moments
from gpclf.inference.hyper import Theta, log_prior
from gpclf.inference.journal import ENOUGH, NOT_A_NUMBER, FitError, Journal
from gpclf.inference.plan import Plan
from gpclf.model import prepare

GAIN = 0.01  # an iteration gains little: it has converged at this share of the tolerance
WORST = 1e10  # nats per row, where the bound is not a number: SciPy's search needs one
BETWEEN = 10  # iterations between two looks at validation rows
PAIRS = 20  # changes of place and slope that are remembered


def climb_by_lbfgs(
    theta: Theta,
    q: Factored,
    stream: ArrayStream,
    plan: Plan,
    log: Journal,
    *,
    free: bool,
    evaluations: int,
    share: tuple[float, float] = (0.0, 1.0),
) -> tuple[Theta, Factored, str]:
    """The best place of a run by the ELBO, and by the prior of θ where that moves: if `free`.

    `share`: of the work planned, done before and after. The start is the first place seen, so no
    run ends below it.
    """
    from scipy.optimize import Bounds, minimize  # slow to import

    total = float(stream.weight.sum())
    space = Coordinates(q, theta, free=free, move_points=plan.move_points)
    stage, used, iterations = "hyper-parameters" if free else "posterior", 0, 0
    prepared, _ = prepare(*theta, plan.jitter)
    chunks = all_rows(prepared, stream, plan, one_theta=not free)
    limits: Any = space.limits()  # SciPy's types know of numbers only
    best: tuple[float, Theta, Factored] = (-np.inf, theta, q)

    def objective(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal used, best
        used += 1
        here, there = space.unpack(numbers)
        ready = prepare(*there, plan.jitter)[0] if free else prepared
        seen = look(ready, here, chunks(), at_theta=free)
        slope = space.pack(seen.by_q, seen.by_theta)
        if not (np.isfinite(seen.elbo) and np.all(np.isfinite(slope))):
            return WORST, np.zeros_like(slope)
        value = seen.elbo
        if free:
            expected, by_model = log_prior(there.model)
            value += float(expected)
            slope += space.pack(space.nothing(), Theta(by_model, np.zeros_like(there.Z)))
        done = share[0] + (share[1] - share[0]) * min(1.0, used / evaluations)
        log.note(stage, seen.elbo / total, done, there, moments(here)[0])
        if value > best[0]:
            best = (value, there, here)
        return -value / total, -slope / total

    def after_iteration(intermediate_result: object) -> None:
        nonlocal iterations
        iterations += 1
        if free and iterations % BETWEEN == 0:
            log.score(best[1], moments(best[2])[0])
        if log.enough:
            raise StopIteration

    found = minimize(
        objective,
        space.pack(q, theta),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(*limits),
        callback=after_iteration,
        options={
            "maxfun": evaluations,
            "maxiter": evaluations,
            "maxcor": PAIRS,
            "ftol": GAIN * plan.tolerance,
            "gtol": 0.0,
        },
    )
    if not np.isfinite(best[0]):
        raise FitError(NOT_A_NUMBER)
    if log.enough:
        return best[1], best[2], ENOUGH
    return best[1], best[2], "converged" if found.success else "evaluation limit"
