"""The gradient engine: the same ELBO, climbed in (m, L), the kernel's parameters and Z together.

Full batch by L-BFGS-B, first with the kernel and Z frozen, then freed (Hensman et al. 2015, §5);
or on batches by Adam or Adadelta.
"""

from numbers import Real
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import Rows
from gpclf.gaussian import Moments, Natural
from gpclf.inference.ascent import look
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.drivers.epochs import Mover, Step, run_epochs
from gpclf.inference.engines.base import COUNT, RATE, Asked, Engine
from gpclf.inference.factored import Factored, factored, moments
from gpclf.inference.hyper import uphill
from gpclf.inference.natural import first_for_batches
from gpclf.inference.optim.adaptive import RATES, Adaptive, falling
from gpclf.inference.plan import Plan, Sizes, make_plan
from gpclf.inference.quasi_newton import climb_by_lbfgs
from gpclf.inference.stops import Stop
from gpclf.model import Theta, prepare

FROZEN = 0.25  # share of the evaluations, before kernel and Z are freed
SMALL_ROWS, SMALL_NUMBERS = 5000, 2**21  # up to which all rows are seen at once
EVALUATIONS, BATCHES = 400, 2000  # full batch or stochastic
EPSILON = {"adam": None, "adadelta": 1e-3}  # None: Optax's own


class Gradient(Engine):
    """The bound of the natural engine by ordinary gradients, as in Hensman et al. (2015).

    Parameters
    ----------
    optimizer : "auto", "lbfgs", "adam", "adadelta" or None
        L-BFGS-B on all rows, or Adam or Adadelta on batches, of posterior and hyper-parameters
        together; None keeps kernel and inducing points as they start. "auto": L-BFGS-B up to 5,000
        rows, if no batch is asked for, else Adam.
    batch_size : "auto" or int
        Rows in a stochastic step; "auto": 1,024.
    learning_rate : "auto" or float
        The first rate of Adam ("auto": 0.05) or Adadelta (1), above 0 and at most 1; it falls to 0.
    epsilon : "auto" or float
        What keeps the first steps of Adam ("auto": 1e-8) and Adadelta (1e-3) from being too long
        or too short. Adadelta begins with steps of about the root of it.
    learn_inducing : bool
        Whether inducing points move, too, when the kernel is learned.
    """

    name = "gradient"
    by_sums = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "optimizer": [StrOptions({"auto", "lbfgs", "adam", "adadelta"}), None],
        "batch_size": COUNT,
        "learning_rate": RATE,
        "epsilon": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "learn_inducing": ["boolean"],
    }

    def __init__(
        self,
        optimizer: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "auto",
        epsilon: Any = "auto",
        learn_inducing: Any = True,
    ):
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.learn_inducing = learn_inducing

    def refuse(self, asked: Asked) -> None:
        """L-BFGS-B has no batches."""
        if self.optimizer == "lbfgs" and self.batch_size != "auto":
            raise ValueError(
                'optimizer="lbfgs" of the gradient engine sees all rows at once: leave batch_size '
                'at "auto", or use optimizer="adam".'
            )

    def plan(self, sizes: Sizes, max_epochs: int | str) -> Plan:
        """L-BFGS-B on few rows, batches else."""
        numbers = sizes.n_latent * sizes.n_inducing * (sizes.n_inducing + 3) // 2
        small = sizes.n_rows <= SMALL_ROWS and numbers <= SMALL_NUMBERS
        automatic = "lbfgs" if small and self.batch_size == "auto" else "adam"
        plan = make_plan(
            sizes,
            optimizer=automatic if self.optimizer == "auto" else self.optimizer,
            max_epochs=max_epochs,
            batch_size=self.batch_size,
            rate=self.learning_rate,
        )
        if max_epochs != "auto":
            return plan
        batches = max(10, -(-BATCHES * plan.batch_rows // sizes.n_rows))
        return plan._replace(max_epochs=EVALUATIONS if plan.full_batch else batches)

    def run(self, theta: Theta, q: Natural, context: FitContext, known: bool) -> Outcome:
        """θ and q where the climb ended, and the ELBO of all rows there."""
        plan, rows = context.plan, context.rows
        here = factored(first_for_batches(theta, q, rows, context.jitter, context.rng)[0])
        if plan.full_batch:
            theta, here, stop = _on_all_rows(theta, here, context)
            theta, m = context.log.best(theta, moments(here)[0])
        else:
            end = run_epochs(_Ascent(theta, here, context, self._epsilon()), context)
            theta, m, stop = end.theta, end.q, end.stop
        assert isinstance(m, Moments)
        prepared, _ = prepare(*theta, context.jitter)
        elbo = look(prepared, factored(m), rows, at_theta=False).elbo
        return Outcome(theta, m, elbo, Stop.FIXED if plan.optimizer is None else stop, stop)

    def _epsilon(self) -> float | None:
        name = self.optimizer if self.optimizer in EPSILON else "adam"
        return EPSILON[name] if self.epsilon == "auto" else float(self.epsilon)


def _on_all_rows(theta: Theta, q: Factored, context: FitContext) -> tuple[Theta, Factored, Stop]:
    """L-BFGS-B with θ frozen, then freed unless it is kept."""
    plan, log = context.plan, context.log
    frozen = 1.0 if plan.optimizer is None else FROZEN
    first = max(1, round(frozen * plan.max_epochs))
    with log.scope(0.0, frozen):
        theta, q, stop = climb_by_lbfgs(theta, q, context, free=False, evaluations=first)
    rest = plan.max_epochs - first
    if plan.optimizer is None or rest == 0 or log.enough:
        return theta, q, stop
    with log.scope(frozen, 1.0):
        return climb_by_lbfgs(theta, q, context, free=True, evaluations=rest)


class _Ascent(Mover):
    """q and, unless it is kept, θ: moved together by Adam or Adadelta."""

    def __init__(self, theta: Theta, q: Factored, context: FitContext, epsilon: float | None):
        self.context, self.free = context, context.plan.optimizer is not None
        self.name = context.plan.optimizer or "adam"
        self.theta = theta
        self.place: Any = jax.device_put((q, theta) if self.free else (q,))
        self.adaptive = Adaptive(self.name, self.place, epsilon)
        self.prepared, _ = prepare(*theta, context.jitter)

    def step(self, batch: Rows, now: Step) -> float:
        """Uphill, by a rate that falls to 0."""
        if self.free:
            self.prepared, _ = prepare(self.theta.model, self.theta.Z, self.context.jitter)
        seen = look(self.prepared, self.place[0], batch, at_theta=self.free)
        slope: Any = (seen.by_q,)
        if seen.by_theta is not None:
            slope = seen.by_q, uphill(self.theta, seen.by_theta, self.context.moves.points)
        rate = falling(self.context.plan.rate or RATES[self.name], now.share)
        self.place = self.adaptive.step(self.place, slope, rate)
        self.theta = self.place[1] if self.free else self.theta
        return seen.elbo

    def point(self) -> tuple[Theta, Moments]:
        """θ, and the moments of q."""
        return self.theta, moments(jax.tree.map(np.asarray, self.place[0]))[0]

    def state(self) -> Any:
        """The place, and what was seen on the way."""
        return self.place, self.adaptive.numbers()

    def go_on(self, state: Any) -> None:
        """From another's."""
        self.place, numbers = state
        self.adaptive.go_on(numbers)
        self.theta = self.place[1] if self.free else self.theta
