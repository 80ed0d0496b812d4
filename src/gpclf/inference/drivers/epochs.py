"""Epochs: steps on batches, by whatever moves; as many as planned, with a rate that falls to 0."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpclf.data import Rows
from gpclf.gaussian import Moments, Natural
from gpclf.inference.context import FitContext
from gpclf.inference.journal import Place
from gpclf.inference.stops import Stop
from gpclf.model import Theta

ROWS_PER_NOTE = 2**17  # an epoch of more rows is heard of while it runs
FIRST_RATE, FALL = 0.5, 0.6  # of natural steps: falls as this power of their number
LEAST_RATE = 0.02  # beside Adam, whose θ moves on


def natural_rate(step: float, seen: float) -> float:
    """The rate of a step: at first its share of the batches that q already stands for."""
    late = max(1.0, FIRST_RATE * seen) ** (1 / FALL) - 1
    return FIRST_RATE * (1 + step / 10 + late) ** -FALL


class Step(NamedTuple):
    """Which step of an epoch's it is, and the share of all steps done before it."""

    number: int
    share: float


class Mover(ABC):
    """θ and q, and how a batch moves them."""

    @abstractmethod
    def step(self, batch: Rows, now: Step) -> float:
        """One step; an estimate of the objective before it."""

    @abstractmethod
    def point(self) -> tuple[Theta, Natural | Moments]:
        """Where it has come to."""

    @abstractmethod
    def state(self) -> Any:
        """All that changes with a step, to go on from."""

    @abstractmethod
    def go_on(self, state: Any) -> None:
        """From another's state."""


class Epochs(NamedTuple):
    """The end of all epochs, and an estimate of the objective."""

    theta: Theta
    q: Natural | Moments
    objective: float
    stop: Stop


class EpochReached(NamedTuple):
    """Where epochs have come to."""

    epoch: int = 0
    number: int = 0  # batches of it that were seen
    drawn: dict | None = None  # the generator before them
    estimates: list[float] | tuple[()] = ()  # of the objective, by these
    state: Any = None


def run_epochs(mover: Mover, context: FitContext) -> Epochs:
    """Every row once an epoch, in batches, until the time is up."""
    return context.journal.once("epochs", lambda: _run(mover, context))


def _run(mover: Mover, context: FitContext) -> Epochs:
    plan, log, place = context.plan, context.log, context.journal.place("reached")
    at = place.reached(EpochReached())
    if at.state is not None:
        mover.go_on(at.state)
    objective = np.nan
    for epoch in range(at.epoch, plan.max_epochs):
        at = _epoch(mover, context, at._replace(epoch=epoch), place)
        objective, at = float(np.mean(at.estimates)), EpochReached()  # another epoch, another q
        if not np.isfinite(objective):
            raise context.failure(*mover.point())
        log.score(*mover.point())
        if log.enough:
            break
    stop = log.ending if log.enough else Stop.EPOCHS
    theta, q = log.best(*mover.point())  # type: ignore[type-var]
    return Epochs(theta, q, objective, stop)


def _epoch(mover: Mover, context: FitContext, at: EpochReached, place: Place) -> EpochReached:
    """One, or the rest of it."""
    plan, log, rows = context.plan, context.log, context.rows
    n_batches = -(-rows.n_rows // plan.batch_rows)
    between = max(1, ROWS_PER_NOTE // plan.batch_rows)
    estimates = list(at.estimates)
    drawn = at.drawn or dict(context.rng.bit_generator.state)
    for number, batch in _batches(context, at, drawn):
        before, planned = at.epoch * n_batches + number, n_batches * plan.max_epochs
        estimates.append(mover.step(batch, Step(before, before / planned)))
        late = log.late
        if late or (number + 1) % between == 0 or number + 1 == n_batches:
            recent = float(np.mean(estimates[-between:])) / rows.total_weight
            log.note("epochs", recent, (before + 1) / planned, *mover.point())
        at = EpochReached(at.epoch, number + 1, drawn, estimates, mover.state())
        place.mark(at)
        if late:
            break
    return at


def _batches(context: FitContext, at: EpochReached, drawn: dict) -> Iterator[tuple[int, Rows]]:
    """The batches of an epoch with their numbers, from the first that was not seen."""
    numbered = enumerate(context.rows.batches(context.plan.batch_rows, context.rng))
    if at.number:
        with context.journal.as_then(drawn):  # the same order
            for _ in range(at.number):
                next(numbered)
    return numbered
