"""What a kind of input is: from a row as it was measured to the marginals of a latent function.

In four steps, and no engine knows which kind it is. `nodes`: the places where x may be, a fixed
number of them a row, and how much each counts. `features`: what the kernel makes of each, which
does not know q. `marginals`: (μ, ν) of each under q, to which `extra` may add a variance. `joined`:
one bound for the row from those of its places.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.gaussian import Moments
from gpclf.inputs.scatter import scattered
from gpclf.kernels import Kernel
from gpclf.linalg import quadratic_forms

Rows = Float[Array, "B D"]
Errors = Float[Array, "#B D"] | None  # the standard deviations of rows, where they are given


class Whitening(eqx.Module):
    """L⁻¹, LLᵀ = k(Z, Z) + jitter, and L⁻¹1 for a constant part of k: a sum that cancels."""

    matrix: Float[Array | np.ndarray, "*G M M"]
    ones: Float[Array | np.ndarray, "*G M"]


class Features(NamedTuple):
    """What the kernel makes of places: a(x) = L⁻¹k(Z, x), and k(x, x).

    Also ∂k(x, z)/∂p, where the slope of the mean is wanted and k knows products p only.
    """

    A: Float[Array, "*C R M"]
    diagonal: Float[Array, "*C R"]
    by_product: Float[Array, "*C R M"] | None = None


class Nodes(NamedTuple):
    """Places of rows; the logarithm of how much each counts, or None where all do alike."""

    X: Float[Array, "R D"]
    log_weight: Float[Array, "R"] | None


class Own(NamedTuple):
    """What rows of a fit have of their own: their numbers, and draws of N(0, I) for a batch."""

    rows: Int[Array, "B"] | None = None
    standard: Float[Array, "B S D"] | None = None


NO_ROWS = Own()  # of no fit


class PredictionNodes(NamedTuple):
    """Nodes of rows at prediction, those of one row next to each other, all with the same weight.

    `slope_std`: errors that are not in the nodes and count by the slope of the mean at them.
    """

    X: Float[Array, "R D"]
    slope_std: Errors = None


class Inputs(eqx.Module):
    """From rows to the marginals of one latent function: x is what was measured, unless changed."""

    @property
    def places(self) -> int:
        """How many places a row has."""
        return 1

    @property
    def costly(self) -> bool:
        """Whether a pass takes so long that faster code is worth waiting for."""
        return self.places > 1

    def at_nodes(self, of_rows: Any) -> Any:
        """What belongs to rows, once for each of their nodes."""
        if self.places == 1:
            return of_rows
        return jax.tree.map(lambda leaf: jnp.repeat(leaf, self.places, axis=0), of_rows)

    def shares(
        self, bounds: Float[Array, "R"], log_weight: Float[Array, "R"] | None
    ) -> Float[Array, "R"] | None:
        """How a row's joined bound grows with that of each node; None where it has but one."""
        if self.places == 1:
            return None
        return jax.grad(lambda each: jnp.sum(self.joined(each, log_weight)))(bounds)

    def coarser(self) -> "Inputs":
        """With fewer places, for a first look."""
        return self

    @property
    def bends(self) -> bool:
        """Whether `extra` adds a variance that depends on the mean of q."""
        return False

    def log_prior(self) -> Float[Array, ""]:
        """What is expected of its parameters before any row is seen, up to a constant."""
        return jnp.zeros(())

    @property
    def by_row(self) -> bool:
        """Whether each row of a fit has parameters of its own."""
        return False

    def for_rows(self, n_rows: int, n_features: int) -> "Inputs":
        """With parameters for each row of a fit, as they start."""
        return self

    def without_rows(self) -> "Inputs":
        """Without them: the end of a fit needs no data."""
        return self

    def nodes(self, X: Rows, std: Errors, y: Any, own: Own = NO_ROWS) -> Nodes:
        """The places of all rows, those of one row next to each other."""
        return Nodes(X, None)

    def features(
        self,
        kernel: Kernel,
        Z: Float[Array, "M D"],
        whitening: Whitening,
        X: Float[Array, "R D"],
    ) -> Features:
        """The features of places X: one product for the kernel, one for the whitening."""
        constant, rest = kernel.parts(X, Z)
        return Features(constant * whitening.ones + rest @ whitening.matrix.T, kernel.diagonal(X))

    def marginals(
        self, features: Features, q: Moments
    ) -> tuple[Float[Array, "R"], Float[Array, "R"]]:
        """μ = aᵀm and ν = k(x, x) − aᵀa + aᵀSa (docs/mathematics.md), one product: A(S − I)."""
        A = features.A
        changed = A[:, : q.excess.shape[-1]]  # the others have the prior's variance
        return A @ q.mean, features.diagonal + quadratic_forms(changed, q.excess)

    def reach(self, kernel: Kernel, Z: Float[Array, "M D"], X: Rows, std: Errors) -> Any:
        """What `extra` needs to know of kernel and errors, whatever q is."""
        return None

    def extra(
        self,
        kernel: Kernel,
        Z: Float[Array, "M D"],
        whitening: Whitening,
        reach: Any,
        features: Features,
        q: Moments,
        X: Rows,
        std: Errors,
    ) -> Float[Array, "B"]:
        """What the error of the input adds to ν, where x has one place."""
        return jnp.zeros(X.shape[0], X.dtype)

    def joined(
        self, bounds: Float[Array, "R"], log_weight: Float[Array, "R"] | None
    ) -> Float[Array, "B"]:
        """One bound for each row, from those of its places."""
        return bounds

    def at_prediction(self, X: Rows, std: Errors, count: int) -> PredictionNodes:
        """x itself, or with errors `count` nodes of N(x, std²) for each row."""
        return PredictionNodes(X if std is None else scattered(X, std, count))

    @property
    def estimated(self) -> bool:
        """Whether the bound of a row is an estimate, on nodes that a fit learns from."""
        return False

    def drawn(
        self, X: Rows, std: Errors, y: Any, standard: Float[Array, "B S D"], own: Own = NO_ROWS
    ) -> Nodes:
        """Nodes made of draws of N(0, I), for a bound that holds on average over these."""
        return Nodes(X, None)

    def joined_draws(
        self, bounds: Float[Array, "B T"], log_weight: Float[Array, "B T"]
    ) -> Float[Array, "B"]:
        """One bound for each row, from those of its drawn nodes."""
        return jnp.mean(bounds, axis=1)
