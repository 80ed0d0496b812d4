"""A fit under way: what every engine is given beside θ and q."""

from typing import NamedTuple

import numpy as np

from gpclf.data import ArrayStream
from gpclf.inference.journal import Journal
from gpclf.inference.plan import Plan


class Work(NamedTuple):
    """The rows, what to do with them, random numbers, and where it is written down."""

    stream: ArrayStream
    plan: Plan
    rng: np.random.Generator
    log: Journal
