"""What is expected of one positive parameter of a kernel, before any row is seen."""

from abc import abstractmethod
from numbers import Real
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float


class Prior(eqx.Module):
    """A law of a positive parameter; its numbers are static fields, for arrays would be learned."""

    @abstractmethod
    def log_density(self, log_value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The log-density of the parameter's logarithm, up to a constant."""

    @property
    def start(self) -> float | None:
        """Where a lengthscale starts that was left to the data; None: where they say."""
        return None


class LogNormal(Prior):
    """log θ ~ N(log median, spread²): with spread 0.7, half to twice the median is likely."""

    median: float = eqx.field(static=True)
    spread: float = eqx.field(static=True)

    def __init__(self, median: Any, spread: Any):
        for name, value in (("median", median), ("spread", spread)):
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise ValueError(f"{name} must be a positive and finite number, got {value!r}.")
        self.median, self.spread = float(median), float(spread)

    def log_density(self, log_value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """−½ ((log θ − log median) / spread)²."""
        return -0.5 * ((log_value - np.log(self.median)) / self.spread) ** 2

    @property
    def start(self) -> float:
        """The median."""
        return self.median
