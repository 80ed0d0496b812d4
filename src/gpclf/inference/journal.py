"""The history of a fit, its clock, and how it fails."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpclf.gaussian import Natural
from gpclf.inference.hyper import Theta

NOT_A_NUMBER = (
    "The ELBO is not a number from the first step on; try fewer inducing points, a larger "
    'lengthscale, or precision="double".'
)


class FitError(ArithmeticError):
    """Numbers that are not numbers, where no smaller step or larger jitter helped."""


class Progress(NamedTuple):
    """One line of the history, and what is needed to look inside while the fit goes on."""

    stage: str
    seconds: float  # since the fit began, without the time spent by callbacks
    elbo: float  # per row
    share: float  # of the work planned, done
    theta: Theta
    q: Natural


class Journal:
    """Keeps the clock and the history, and tells the caller."""

    def __init__(self, report: Callable[[Progress], None], began: float):
        self.report = report
        self.began = began
        self.away = 0.0
        self.lines: list[Progress] = []

    def note(self, stage: str, elbo: float, share: float, theta: Theta, q: Natural) -> None:
        now = time.perf_counter()
        line = Progress(stage, now - self.began - self.away, elbo, share, theta, q)
        self.lines.append(line._replace(theta=None, q=None))  # type: ignore[arg-type]
        self.report(line)
        self.away += time.perf_counter() - now

    def history(self) -> dict[str, np.ndarray]:
        return {
            name: np.array([getattr(line, name) for line in self.lines])
            for name in ("stage", "seconds", "elbo")
        }
