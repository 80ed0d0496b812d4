"""The history of a fit, its clock, and whether it should end early."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from gpclf.gaussian import Moments, Natural
from gpclf.inference.stops import Stop
from gpclf.model import Theta

Gaussian = TypeVar("Gaussian", Natural, Moments)
PATIENCE = 3  # scores without a better one


class Progress(NamedTuple):
    """One line of the history, and what is needed to look inside while the fit goes on."""

    stage: str
    seconds: float  # since the fit began, without the time spent by callbacks
    elbo: float  # per row
    share: float  # of the work planned, done
    theta: Theta
    q: Natural | Moments


class Told(NamedTuple):
    """What decisions of a fit depend on, of all that was written down."""

    lines: int  # so many
    late: bool
    enough: bool
    lowest: float
    in_vain: int
    best: tuple[Theta, Any] | None


Report = Callable[[Progress], bool | None]  # True: that is enough
Judge = Callable[[Progress], float]  # the lower the better


class History:
    """Keeps the clock and the history, and tells the caller.

    A `judge` scores what has been learnt so far; after a few scores without a better one it is
    enough, and the best is kept. It is also enough when the fit has taken `max_seconds`: then not
    only kernels are learned no more, but steps on q end, too, after the first.
    """

    def __init__(
        self,
        report: Report,
        began: float,
        judge: Judge | None = None,
        max_seconds: float = np.inf,
    ):
        self.report = report
        self.judge = judge
        self.began = began
        self.away = 0.0
        self.max_seconds = max_seconds
        self.lines: list[Progress] = []
        self.last: Progress | None = None  # that is a classifier of the kind that is asked for
        self.earlier = 0.0  # seconds of processes before this one
        self.silent = False  # while a fit comes to where it was
        self.sampled = False  # the clock is looked at with each line only
        self._late, self._aside = False, False
        self._told_enough = False
        self._named, self._done, self._span = "", 0.0, 1.0
        self._best: tuple[Theta, Any] | None = None
        self._lowest, self._in_vain = np.inf, 0

    @property
    def seconds(self) -> float:
        """Since the fit began, without what callbacks took, and the time between processes."""
        return time.perf_counter() - self.began - self.away + self.earlier

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self._late if self.sampled else self.seconds >= self.max_seconds

    def told(self) -> Told:
        """How all stands; to be taken up again, the clock is looked at."""
        self._late |= self.seconds >= self.max_seconds
        counts = (self._late, self._told_enough, self._lowest, self._in_vain)
        return Told(len(self.lines), *counts, self._best)

    def take_up(self, told: Told, lines: list[Progress]) -> None:
        """Go on from how all stood, with the first of these lines."""
        count, self._late, self._told_enough, self._lowest, self._in_vain, self._best = told
        self.lines = lines[:count]

    @property
    def enough(self) -> bool:
        """Whether hyper-parameters should be learned no longer."""
        return self._told_enough or self.late

    @property
    def ending(self) -> Stop:
        """Why it is enough."""
        return Stop.ENOUGH if self._told_enough else Stop.TIME

    def note(
        self,
        stage: str,
        elbo: float,
        share: float,
        theta: Theta,
        q: Natural | Moments,
        *,
        learnt: bool = True,
    ) -> bool:
        """Write a line; whether the time is up."""
        if self.silent:
            return self.late
        now = time.perf_counter()
        stage, share = self._named + stage, self._done + self._span * share
        seconds = now - self.began - self.away + self.earlier
        line = Progress(stage, seconds, elbo, share, theta, q)
        self._late |= seconds >= self.max_seconds
        self.lines.append(line._replace(theta=None, q=None))  # type: ignore[arg-type]
        if learnt and not self._aside and np.isfinite(elbo):
            self.last = line
        self._told_enough |= bool(self.report(line))
        self.away += time.perf_counter() - now
        return self.late

    def remind(self, stage: str, share: float, theta: Theta, q: Natural | Moments) -> None:
        """A line of work that leaves θ and q, and so the ELBO, as they were."""
        elbo = self.lines[-1].elbo if self.lines else np.nan
        self.note(stage, elbo, share, theta, q, learnt=False)

    @contextmanager
    def scope(
        self, low: float, high: float, *, named: str = "", judged: bool = True
    ) -> Iterator[None]:
        """A part of the work, from share to share; its lines have another name before theirs.

        Lines of another likelihood are not `judged`.
        """
        before = self.judge, self._named, self._done, self._span, self._aside
        self.judge = self.judge if judged else None
        self._aside |= not judged
        self._named = before[1] + named
        self._done = before[2] + before[3] * low
        self._span = before[3] * (high - low)
        yield
        self.judge, self._named, self._done, self._span, self._aside = before

    def score(self, theta: Theta, q: Natural | Moments) -> None:
        """Have the judge look, if there is one; its time counts."""
        if self.judge is None or self.silent:
            return
        line = self.lines[-1]._replace(theta=theta, q=q)
        score = self.judge(line)
        if score < self._lowest:
            self._lowest, self._in_vain = score, 0
            self._best = theta, jax.tree.map(np.array, q)  # some engines write in it
        else:
            self._in_vain += 1
            self._told_enough |= self._in_vain >= PATIENCE

    def best(self, theta: Theta, q: Gaussian) -> tuple[Theta, Gaussian]:
        """What the judge liked best, or without one what is given; then it starts afresh."""
        found = (theta, q) if self._best is None else self._best
        self._best, self._lowest, self._in_vain = None, np.inf, 0
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """One entry a line."""
        return {
            name: np.array([getattr(line, name) for line in self.lines])
            for name in ("stage", "seconds", "elbo")
        }
