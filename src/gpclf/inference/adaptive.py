"""Adam (Kingma & Ba 2015) and Adadelta (Zeiler 2012) on batches, in (m, L) and θ together."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from gpclf.compilation import program
from gpclf.inference.ascent import look
from gpclf.inference.factored import Factored, moments
from gpclf.inference.hyper import Theta, log_prior
from gpclf.inference.journal import ENOUGH, FitError
from gpclf.inference.plan import Plan
from gpclf.inference.stochastic import ROWS_PER_NOTE, falling
from gpclf.inference.work import Work
from gpclf.model import prepare

# By the bound after 2,000 and 750 steps on magic and landsat 0.05 is ahead of 0.02 and 0.01, as it
# falls to 0. A step of Adadelta finds its own length.
RATES = {"adam": 0.05, "adadelta": 1.0}


def _rule(name: str) -> Any:
    import optax  # slow to import, and seldom needed

    return {"adam": optax.scale_by_adam, "adadelta": optax.scale_by_adadelta}[name]()


def _step_of(name: str) -> Callable:
    def step(place: Any, slope: Any, state: Any, rate: Any) -> Any:
        updates, state = _rule(name).update(slope, state)
        moved = jax.tree.map(lambda leaf, update: leaf + rate * update, place, updates)
        return moved, state

    return program(step)


_STEPS = {name: _step_of(name) for name in RATES}


def run_batches(theta: Theta, q: Factored, work: Work) -> tuple[Theta, Factored, str]:
    """Epochs of steps on batches, on q alone where the plan keeps θ; and why they stopped.

    The rate falls to 0 at the last of them, so there is no earlier place where they have converged.
    """
    stream, plan, rng, log = work
    name, free = plan.optimizer or "adam", plan.optimizer is not None
    place: Any = jax.device_put((q, theta) if free else (q,))
    state, step = _rule(name).init(place), _STEPS[name]
    prepared, _ = prepare(*theta, plan.jitter)
    total = float(stream.weight.sum())
    n_batches = -(-stream.n_rows // plan.batch_rows)
    between = max(1, ROWS_PER_NOTE // plan.batch_rows)
    for epoch in range(plan.max_epochs):
        estimates = []
        for batch, rows in enumerate(stream.batches(plan.batch_rows, rng), 1):
            share = (epoch + (batch - 1) / n_batches) / plan.max_epochs
            if free:
                prepared, _ = prepare(theta.model, theta.Z, plan.jitter)
            seen = look(prepared, q, [rows], at_theta=free)
            slope = (seen.by_q, _moving(theta, seen.by_theta, plan)) if free else (seen.by_q,)
            rate = falling(plan.rate or RATES[name], share)
            place, state = step(place, slope, state, rate)
            q = place[0]
            if free:
                theta = place[1]
            estimates.append(seen.elbo)
            if batch % between == 0 or batch == n_batches:
                elbo = float(np.mean(estimates[-between:])) / total
                log.note("epochs", elbo, share, theta, moments(q)[0])
        if not np.isfinite(np.mean(estimates)):
            raise FitError(f"epoch {epoch + 1}: the ELBO is not a number.")
        log.score(theta, moments(q)[0])
        if log.enough:
            return theta, q, ENOUGH
    return theta, q, "epoch limit"


def _moving(theta: Theta, by_theta: Theta | None, plan: Plan) -> Theta:
    """The gradient by θ and its prior; none by points that do not move."""
    assert by_theta is not None
    _, by_model = log_prior(theta.model)
    by_Z = by_theta.Z if plan.move_points else np.zeros_like(by_theta.Z)
    return Theta(jax.tree.map(np.add, by_theta.model, by_model), by_Z)
