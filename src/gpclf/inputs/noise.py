"""What kinds of input with measurement error share: its size, given row by row or learned."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.inputs.base import Errors, Inputs, Rows

FIRST_STD = 0.25  # of a learned error, in units of the standardised inputs


class Noisy(Inputs):
    """x̃ = x + ε, ε ~ N(0, std²) feature by feature.

    The standard deviations come with the rows, or, learned, from `log_std`: one number for all
    features or one for each, 0 where `known` says that a feature has no error.
    """

    log_std: Any = None
    known: tuple[bool, ...] | None = eqx.field(static=True, default=None)

    @property
    def learned(self) -> bool:
        """Whether the size of the error is a parameter."""
        return self.log_std is not None

    def learned_std(self, n_features: int) -> Float[Array, "D"]:
        """The learned standard deviations."""
        std = jnp.broadcast_to(jnp.exp(jnp.asarray(self.log_std)), (n_features,))
        return std if self.known is None else std * (1.0 - np.array(self.known))

    def std(self, X: Rows, given: Errors) -> Float[Array, "#B D"]:
        """The standard deviations of rows, given or learned."""
        if self.learned:
            return self.learned_std(X.shape[1]).astype(X.dtype)[None]
        if given is None:
            raise ValueError("These inputs need the errors of rows: give X_std, or learn them.")
        return given
