"""A Gaussian for the true input of each row, with parameters of the row's own."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.inputs.base import NO_ROWS, Errors, Nodes, Own, Rows
from gpclf.inputs.latent import Latent
from gpclf.inputs.scatter import standard_places

PRIOR_VARIANCE = 1000.0


class Parametric(Latent):
    """q(x) = N(x̃ + std·shift, std²·exp(log-variance)), both learned for each row (NIMGP).

    The bound of a row is E ℓ(x) − KL(q(x) ‖ p(x | x̃)) with the prior p(x) = N(0, P·I) of the
    standardised inputs, P = `prior_variance`, and ℓ averaged over `count` samples x̃ + std·(shift +
    exp(½ log-variance)·ε): Villacampa-Calvo et al. (2020), eq. 9, less log p(x̃), which no q(x)
    changes. It starts at the error's own law, as rows have it that a fit has not seen. In batches
    the ε are drawn anew for each step; on all rows at once those of a row are fixed, and one would
    be learned by heart.
    """

    count: int = eqx.field(static=True, default=1)
    prior_variance: float = eqx.field(static=True, default=PRIOR_VARIANCE)
    shift: Any = None  # (N, D) in units of the error, while a fit lasts
    log_variance: Any = None

    def __check_init__(self) -> None:
        if not (isinstance(self.prior_variance, float | int) and self.prior_variance > 0):
            raise ValueError(
                f"prior_variance must be a number above 0, got {self.prior_variance!r}."
            )

    @property
    def by_row(self) -> bool:
        """A mean and a variance for each."""
        return True

    def for_rows(self, n_rows: int, n_features: int) -> "Parametric":
        """Each with the law of its error."""
        start = np.zeros((n_rows, n_features))
        return replace(self, shift=start, log_variance=start)

    def without_rows(self) -> "Parametric":
        """Prediction integrates over the error, whatever was learned of training rows."""
        return replace(self, shift=None, log_variance=None)

    def nodes(self, X: Rows, std: Errors, y: Any, own: Own = NO_ROWS) -> Nodes:
        """Samples of q(x)."""
        standard = standard_places(X, self.count) if own.standard is None else own.standard
        return self.drawn(X, std, y, standard, own)

    def drawn(
        self, X: Rows, std: Errors, y: Any, standard: Float[Array, "B S D"], own: Own = NO_ROWS
    ) -> Nodes:
        """Samples of q(x), each of which counts −KL."""
        errors, (shift, log_variance) = self.std(X, std), self._law(X, own)
        moved = shift[:, None] + jnp.exp(0.5 * log_variance)[:, None] * standard
        nodes = X[:, None] + errors[:, None] * moved
        log_weight = -self.divergence(X, errors, shift, log_variance)
        return Nodes(nodes.reshape(-1, X.shape[1]), jnp.repeat(log_weight, standard.shape[1]))

    def _law(self, X: Rows, own: Own) -> tuple[Rows, Rows]:
        """The shift and the log-variance of rows, in units of the error."""
        if own.rows is None or self.shift is None:
            return jnp.zeros_like(X), jnp.zeros_like(X)
        return jnp.asarray(self.shift)[own.rows], jnp.asarray(self.log_variance)[own.rows]

    def divergence(
        self, X: Rows, errors: Float[Array, "#B D"], shift: Rows, log_variance: Rows
    ) -> Float[Array, "B"]:
        """KL(q(x) ‖ p(x | x̃)), p(x | x̃) = N(κx̃, κ·std²) with κ = P / (P + std²).

        There is no division by std, and features without error count nothing.
        """
        wider = errors**2 / self.prior_variance  # 1/κ = 1 + wider
        away = shift + errors * X / (self.prior_variance + errors**2)
        each = (jnp.exp(log_variance) + away**2) * (1 + wider) - 1 - log_variance - jnp.log1p(wider)
        return 0.5 * jnp.sum(jnp.where(errors > 0, each, 0.0), axis=1)

    def joined(
        self, bounds: Float[Array, "R"], log_weight: Float[Array, "R"] | None
    ) -> Float[Array, "B"]:
        """E ℓ − KL."""
        assert log_weight is not None
        return jnp.mean((bounds + log_weight).reshape(-1, self.count), axis=1)

    def joined_draws(
        self, bounds: Float[Array, "B T"], log_weight: Float[Array, "B T"]
    ) -> Float[Array, "B"]:
        """E ℓ − KL."""
        return jnp.mean(bounds + log_weight, axis=1)
