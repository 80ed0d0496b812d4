"""The true input as a latent variable, with a law of its own for each row."""

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.inputs.base import NO_ROWS, Errors, Nodes, Own, Rows
from gpclf.inputs.noise import Noisy
from gpclf.inputs.scatter import scattered

PLACES, MOST_PLACES = 16, 128
QUICK = 32  # at a third of the time of 128, and nearly as good (docs/noisy-inputs.md)
COARSER = 4  # times fewer places, for a first look
IN_ALL = 2**16  # places of all rows that are not too many


def auto_places(n_rows: int) -> int:
    """As many as there is time for, a power of 2: few places miss what is rare, or overrate it."""
    return int(min(max(2 ** int(math.log2(max(IN_ALL / n_rows, 1))), PLACES), MOST_PLACES))


def quick_places(n_rows: int) -> int:
    """The same, where nobody asked for more."""
    return min(auto_places(n_rows), QUICK)


class Latent(Noisy):
    """x is one of several places about what was measured, with probabilities of the row's own.

    The bound of a row is max over q(x) of E ℓ(x) − KL(q(x) ‖ N(x̃, std²)) = log E exp ℓ(x), the
    expectation over N(x̃, std²): the best q(x) ∝ N(x̃, std²) exp ℓ(x) is known in closed form. So
    nothing is stored for a row, and its q(x) is always up to date.
    """

    count: int = eqx.field(static=True, default=PLACES)

    def __check_init__(self) -> None:
        if not (isinstance(self.count, int) and self.count >= 1):
            raise ValueError(f"count must be a whole number of at least 1, got {self.count!r}.")

    @property
    def places(self) -> int:
        """As many as were asked for."""
        return self.count

    def coarser(self) -> "Latent":
        """A quarter of the places, if they are many."""
        return replace(self, count=max(self.count // COARSER, min(self.count, PLACES)))

    def nodes(self, X: Rows, std: Errors, y: Any, own: Own = NO_ROWS) -> Nodes:
        """Those of the error's law."""
        return Nodes(scattered(X, self.std(X, std), self.count), None)

    def joined(
        self, bounds: Float[Array, "R"], log_weight: Float[Array, "R"] | None
    ) -> Float[Array, "B"]:
        """log E exp ℓ; weights that add up to more than all of the error's law are overrated."""
        count = math.log(self.count)
        if log_weight is None:
            return jax.nn.logsumexp(bounds.reshape(-1, self.count), axis=1) - count
        rows, weights = (
            jax.nn.logsumexp(each.reshape(-1, self.count), axis=1)
            for each in (bounds + log_weight, log_weight)
        )
        return rows - jnp.maximum(weights, count)

    @property
    def estimated(self) -> bool:
        """The kernel, and what else is learned, may suit the nodes more than the integral."""
        return True

    def drawn(
        self, X: Rows, std: Errors, y: Any, standard: Float[Array, "B S D"], own: Own = NO_ROWS
    ) -> Nodes:
        """Those of the error's law."""
        nodes = X[:, None] + self.std(X, std)[:, None] * standard
        return Nodes(nodes.reshape(-1, X.shape[1]), None)

    def joined_draws(
        self, bounds: Float[Array, "B T"], log_weight: Float[Array, "B T"]
    ) -> Float[Array, "B"]:
        """log of the mean of w exp ℓ: at most log E exp ℓ on average (Burda et al. 2016)."""
        return jax.nn.logsumexp(bounds + log_weight, axis=1) - math.log(bounds.shape[1])


class Augmented(Latent):
    """Every row several times, each time with an error added: the usual remedy, to compare with.

    The bound is E ℓ(x), which no error of any size can raise: it cannot be learned.
    """

    def joined(
        self, bounds: Float[Array, "R"], log_weight: Float[Array, "R"] | None
    ) -> Float[Array, "B"]:
        """E ℓ."""
        return jnp.mean(bounds.reshape(-1, self.count), axis=1)

    def joined_draws(
        self, bounds: Float[Array, "B T"], log_weight: Float[Array, "B T"]
    ) -> Float[Array, "B"]:
        """E ℓ."""
        return jnp.mean(bounds, axis=1)
