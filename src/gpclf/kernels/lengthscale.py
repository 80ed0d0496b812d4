"""What kernels with a lengthscale share: scaling of the inputs, and a start taken from the data."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from gpclf.kernels.base import Kernel, Parameter, Scalar, log_of

SPREAD = 0.3  # of the logarithms of lengthscales around their mean


class Scaled(Kernel):
    """A kernel that sees x_d / lengthscale_d.

    `lengthscale`: one number, one per feature (automatic relevance determination), or None: the
    data decide where it starts, with one for each feature if `ard`.
    """

    log_lengthscale: Parameter
    log_variance: Parameter
    ard: bool = eqx.field(static=True)

    def __init__(self, lengthscale: Any, variance: Any, ard: bool):
        given = lengthscale is not None
        self.log_lengthscale = (
            log_of("lengthscale", lengthscale, most_dimensions=1) if given else None
        )
        self.log_variance = log_of("variance", variance, most_dimensions=0)
        self.ard = ard

    @property
    def lengthscale(self) -> Array | None:
        """The distance over which k changes, per feature or one for all; None until fitted."""
        return None if self.log_lengthscale is None else jnp.exp(self.log_lengthscale)

    @property
    def variance(self) -> Array:
        """The factor in front."""
        return jnp.exp(self.log_variance)

    @abstractmethod
    def first_lengthscale(self, median_distance: float, n_features: int) -> float:
        """Where the lengthscale starts if none is given."""

    def started(self, median_distance: float, n_features: int) -> Kernel:
        """Fill in the lengthscale if none was given; refuse one per feature of the wrong number."""
        if self.log_lengthscale is None:
            first = np.log(self.first_lengthscale(median_distance, n_features))
            return eqx.tree_at(
                lambda kernel: kernel.log_lengthscale,
                self,
                np.full((n_features,) if self.ard else (), first),
                is_leaf=lambda leaf: leaf is None,
            )
        if np.ndim(self.log_lengthscale) == 1 and np.size(self.log_lengthscale) != n_features:
            raise ValueError(
                f"{type(self).__name__} has {np.size(self.log_lengthscale)} lengthscales, "
                f"but X has {n_features} features."
            )
        return self

    def log_prior(self) -> Scalar:
        """Lengthscales are alike, unless rows say otherwise: a Cauchy law around their mean log.

        Where rows are few, the evidence of many lengthscales misleads: they fit the rows, not the
        function. Its tails are wide enough to let a feature drop out.
        """
        if self.log_lengthscale is None:
            return jnp.zeros(())
        logs = jnp.asarray(self.log_lengthscale)
        return -jnp.sum(jnp.log1p(((logs - jnp.mean(logs)) / SPREAD) ** 2))

    def scaled(self, X: Real[Array, "*N D"]) -> Float[Array, "*N D"]:
        """X in units of the lengthscale."""
        if self.log_lengthscale is None:
            raise ValueError(
                f"{type(self).__name__} has no lengthscale yet: give one, or fit a classifier."
            )
        return X * jnp.exp(-self.log_lengthscale)

    def relevance(self, n_features: int) -> Float[np.ndarray, "D"]:
        """variance / lengthscale², per feature."""
        logs = np.asarray(self.log_variance) - 2 * np.asarray(self.log_lengthscale)
        return np.exp(np.broadcast_to(logs, (n_features,)))
