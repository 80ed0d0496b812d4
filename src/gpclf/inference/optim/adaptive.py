"""Adam (Kingma & Ba 2015) and Adadelta (Zeiler 2012), by Optax, on trees of arrays."""

from functools import cache
from typing import Any

import jax
import numpy as np

from gpclf.compilation import program

# By the bound after 2,000 and 750 steps on magic and landsat 0.05 is ahead of 0.02 and 0.01, as it
# falls to 0. A step of Adadelta finds its own length.
RATES = {"adam": 0.05, "adadelta": 1.0}


def falling(rate: float, share: float) -> float:
    """The rate after a share of all steps: half a cosine, from `rate` to 0.

    The noise of the batches moves a point by about the rate: a last one that falls to nothing
    stands for the mean of many. So there is no earlier point where epochs have converged.
    """
    return rate * 0.5 * (1 + np.cos(np.pi * share))


@cache
def _rule(name: str, epsilon: float | None) -> tuple[Any, Any]:
    """The rule and its compiled step."""
    import optax  # slow to import, and seldom needed

    made = {"adam": optax.scale_by_adam, "adadelta": optax.scale_by_adadelta}[name]
    rule = made() if epsilon is None else made(eps=epsilon)

    def step(point: Any, uphill: Any, state: Any, rate: Any) -> Any:
        updates, state = rule.update(uphill, state)
        moved = jax.tree.map(lambda leaf, update: leaf + rate * update, point, updates)
        return moved, state

    return rule, program(step)


class Adaptive:
    """Steps uphill whose length each number finds for itself, by what it has seen."""

    def __init__(self, name: str, point: Any, epsilon: float | None = None):
        self._rule, self._step = _rule(name, epsilon)
        self._state = self._rule.init(point)

    def numbers(self) -> list[Any]:
        """What has been seen."""
        return jax.tree.leaves(self._state)

    def go_on(self, numbers: list[Any]) -> None:
        """From what another has seen."""
        self._state = jax.tree.unflatten(jax.tree.structure(self._state), numbers)

    def step(self, point: Any, uphill: Any, rate: float) -> Any:
        """The next point."""
        moved, self._state = self._step(point, uphill, self._state, rate)
        return moved
