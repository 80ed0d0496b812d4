"""L-BFGS whose memory outlives a change of the function.

The dual bound is another function after every refresh of the sites, but one that bends nearly the
same way. SciPy's L-BFGS forgets at every call what it has learnt about that, and then needs half as
many evaluations again.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

PAIRS = 20
LONGEST = 2.0  # a step of any coordinate: logarithms, and standardised inputs
TRIES = 3  # along one direction
ROUNDING = 1e-12  # a promise of less, relative to the value, is none
SUFFICIENT = 1e-4  # share of the decrease promised by the slope (Armijo)

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Memory:
    """How a function bends: the last changes of place and slope."""

    def __init__(self, pairs: Iterable[tuple[np.ndarray, np.ndarray]] = ()) -> None:
        self._pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(pairs, maxlen=PAIRS)

    @property
    def pairs(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """They, to begin another memory with."""
        return tuple(self._pairs)

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Take in a step and the change of slope along it, unless the function bends down there."""
        if step @ change > 1e-10 * (change @ change):
            self._pairs.append((step, change))

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """Downhill: −H·slope, H the inverse Hessian by the two loops of Nocedal (1980)."""
        if not self._pairs:
            return steepest(slope)
        rest, shares = slope.copy(), []
        for step, change in reversed(self._pairs):
            shares.append(step @ rest / (step @ change))
            rest -= shares[-1] * change
        step, change = self._pairs[-1]
        rest *= (step @ change) / (change @ change)
        for (step, change), share in zip(self._pairs, reversed(shares), strict=True):
            rest += (share - change @ rest / (step @ change)) * step
        return -rest

    def forget(self) -> bool:
        """Keep the last pair only, or none if there was but one; False if there was none."""
        if not self._pairs:
            return False
        last = self._pairs.pop()
        several = len(self._pairs) > 0
        self._pairs.clear()
        if several:
            self._pairs.append(last)
        return True


def steepest(slope: np.ndarray) -> np.ndarray:
    """Straight downhill, a first step of length one at most."""
    return -slope * min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1e-300))


class Point(NamedTuple):
    """A point, and the function there."""

    x: np.ndarray
    value: float
    slope: np.ndarray


class DescentResult(NamedTuple):
    """Where a descent ended."""

    x: np.ndarray
    value: float
    evaluations: int


def _search(
    objective: Objective,
    here: Point,
    way: np.ndarray,
    evaluations: int,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[Point | None, int]:
    """The first point along `way` that is low enough, by shorter and shorter steps; evaluations."""
    length = min(1.0, LONGEST / max(float(np.abs(way).max()), 1e-300))
    for used in range(1, evaluations + 1):
        there = np.clip(here.x + length * way, low, high)
        promised = float(here.slope @ (there - here.x))
        if promised >= 0:
            return None, used - 1
        value, slope = objective(there)
        if value <= here.value + SUFFICIENT * promised:
            return Point(there, value, slope), used
        if np.isfinite(value):  # to the lowest point of a parabola
            length *= min(max(0.5 * promised / (promised + here.value - value), 0.1), 0.5)
        else:
            length *= 0.2
    return None, evaluations


def descend(
    objective: Objective,
    x: np.ndarray,
    memory: Memory,
    *,
    evaluations: int,
    low: np.ndarray,
    high: np.ndarray,
    late: Callable[[], bool] = lambda: False,
) -> DescentResult:
    """From x to a lower point between `low` and `high`, by at most so many values and slopes.

    The objective may be infinite or not a number: a step there is shortened. A direction along
    which nothing lower is found after a few tries is the fault of the memory, which then forgets.
    Ends early where not even the slope itself leads down, or where it is `late`.
    """
    here = Point(x, *objective(x))
    used = 1
    while used < evaluations and np.isfinite(here.value) and not late():
        way = memory.direction(here.slope)
        if abs(here.slope @ way) <= ROUNDING * max(1.0, abs(here.value)):
            break
        there, tried = _search(objective, here, way, min(TRIES, evaluations - used), low, high)
        used += tried
        if there is not None:
            memory.learn(there.x - here.x, there.slope - here.slope)
            here = there
        elif not memory.forget():
            break
    return DescentResult(here.x, float(here.value), used)
