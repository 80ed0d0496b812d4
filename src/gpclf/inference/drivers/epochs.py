"""Epochs: steps on batches, by whatever moves; as many as planned, with a rate that falls to 0."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpclf.data import Rows
from gpclf.gaussian import Moments, Natural
from gpclf.inference.context import FitContext
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


class Epochs(NamedTuple):
    """The end of all epochs, and an estimate of the objective."""

    theta: Theta
    q: Natural | Moments
    objective: float
    stop: Stop


def run_epochs(mover: Mover, context: FitContext) -> Epochs:
    """Every row once an epoch, in batches, until the time is up."""
    plan, log, total = context.plan, context.log, context.rows.total_weight
    n_batches = -(-context.rows.n_rows // plan.batch_rows)
    between = max(1, ROWS_PER_NOTE // plan.batch_rows)
    estimates: list[float] = []
    for epoch in range(plan.max_epochs):
        estimates = []  # those of other epochs are of another q
        for number, batch in _numbered(context, n_batches, epoch):
            share = number / (n_batches * plan.max_epochs)
            estimates.append(mover.step(batch, Step(number, share)))
            of_epoch = number + 1 - epoch * n_batches
            late = log.late
            if late or of_epoch % between == 0 or of_epoch == n_batches:
                done, recent = (number + 1) / (n_batches * plan.max_epochs), estimates[-between:]
                log.note("epochs", float(np.mean(recent)) / total, done, *mover.point())
            if late:
                break
        if not np.isfinite(np.mean(estimates)):
            raise context.failure(*mover.point())
        log.score(*mover.point())
        if log.enough:
            break
    stop = log.ending if log.enough else Stop.EPOCHS
    theta, q = log.best(*mover.point())  # type: ignore[type-var]
    return Epochs(theta, q, float(np.mean(estimates)), stop)


def _numbered(context: FitContext, n_batches: int, epoch: int) -> Iterator[tuple[int, Rows]]:
    batches = context.rows.batches(context.plan.batch_rows, context.rng)
    return enumerate(batches, epoch * n_batches)
