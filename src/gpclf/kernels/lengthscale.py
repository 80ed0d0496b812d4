"""What kernels with a lengthscale share: scaling of the inputs, and a start taken from the data."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from gpclf.kernels.active import Columns, check_columns, columns_from, seen
from gpclf.kernels.base import Kernel, Parameter, Scalar, log_of

SPREAD = 0.3  # of the logarithms of lengthscales around their mean


class Scaled(Kernel):
    """A kernel that sees x_d / lengthscale_d.

    `lengthscale`: one number, one per feature (automatic relevance determination), or None: the
    data decide where it starts, with one for each feature if `ard`. `active_dims`: the columns of
    the standardised rows that count, counted from 0; None: all. Lengthscales are then theirs.
    """

    log_lengthscale: Parameter
    log_variance: Parameter
    ard: bool = eqx.field(static=True)
    active_dims: Columns = eqx.field(static=True)

    def __init__(self, lengthscale: Any, variance: Any, ard: bool, active_dims: Any):
        given = lengthscale is not None
        self.log_lengthscale = (
            log_of("lengthscale", lengthscale, most_dimensions=1) if given else None
        )
        self.log_variance = log_of("variance", variance, most_dimensions=0)
        self.ard = ard
        self.active_dims = columns_from(active_dims)

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
        """Fill in the lengthscale if none was given; refuse one per feature of the wrong number.

        Of D columns that are alike, d have √(d/D) of the distance.
        """
        check_columns(self.active_dims, n_features)
        if self.active_dims is not None:
            count = len(self.active_dims)
            median_distance *= (count / n_features) ** 0.5
            n_features = count
        if self.log_lengthscale is None:
            prior = dict(self.priors).get("lengthscale")
            expected = None if prior is None else prior.start
            first = self.first_lengthscale(median_distance, n_features)
            first = np.log(first if expected is None else expected)
            return eqx.tree_at(
                lambda kernel: kernel.log_lengthscale,
                self,
                np.full((n_features,) if self.ard else (), first),
                is_leaf=lambda leaf: leaf is None,
            )
        if np.ndim(self.log_lengthscale) == 1 and np.size(self.log_lengthscale) != n_features:
            raise ValueError(
                f"{type(self).__name__} has {np.size(self.log_lengthscale)} lengthscales, but "
                f"{'X' if self.active_dims is None else 'active_dims'} has {n_features} features."
            )
        return self

    def log_prior(self) -> Scalar:
        """Lengthscales are alike, unless rows say otherwise: a Cauchy law around their mean log.

        Where rows are few, the evidence of many lengthscales misleads: they fit the rows, not the
        function. Its tails are wide enough to let a feature drop out. A prior of one's own stands
        in its place.
        """
        own = super().log_prior()
        if self.log_lengthscale is None or "lengthscale" in dict(self.priors):
            return own
        logs = jnp.asarray(self.log_lengthscale)
        return own - jnp.sum(jnp.log1p(((logs - jnp.mean(logs)) / SPREAD) ** 2))

    def scaled(self, X: Real[Array, "*N D"]) -> Float[Array, "*N E"]:
        """The columns of X that count, in units of the lengthscale."""
        if self.log_lengthscale is None:
            raise ValueError(
                f"{type(self).__name__} has no lengthscale yet: give one, or fit a classifier."
            )
        return seen(self.active_dims, X) * jnp.exp(-self.log_lengthscale)

    def relevance(self, n_features: int) -> Float[np.ndarray, "D"]:
        """variance / lengthscale², per feature; 0 for those that do not count."""
        logs = np.asarray(self.log_variance) - 2 * np.asarray(self.log_lengthscale)
        every = np.arange(n_features) if self.active_dims is None else np.array(self.active_dims)
        found = np.zeros(n_features)
        found[every] = np.exp(logs)
        return found
