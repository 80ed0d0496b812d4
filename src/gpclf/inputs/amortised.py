"""A network that sees a row and its class, and says where the true input may be."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.inputs.base import NO_ROWS, Errors, Nodes, Own, Rows
from gpclf.inputs.latent import Latent
from gpclf.inputs.scatter import standard_places

HIDDEN = 32


class Network(eqx.Module):
    """From x̃ and the class to a shift and a log-variance for each feature, in units of the error.

    It starts at none, with the error's own law. One hidden layer of tanh, or several of ReLU.
    """

    first: Float[Array | np.ndarray, "H E"]
    first_bias: Float[Array | np.ndarray, "H"]
    last: Float[Array | np.ndarray, "F G"]
    last_bias: Float[Array | np.ndarray, "F"]
    middle: tuple = ()  # weights and bias of each further hidden layer
    rectified: bool = eqx.field(static=True, default=False)

    @classmethod
    def start(
        cls, n_features: int, n_classes: int, hidden: int | tuple[int, ...] = HIDDEN
    ) -> "Network":
        """Small random weights, always the same, and a last layer of zeros."""
        rng, rectified = np.random.default_rng(0), isinstance(hidden, tuple)
        widths = hidden if isinstance(hidden, tuple) else (hidden,)
        gain = np.sqrt(2.0) if rectified else 1.0  # ReLU halves the variance
        layers, seen = [], n_features + n_classes
        for width in widths:
            layers.append((gain * rng.normal(size=(width, seen)) / np.sqrt(seen), np.zeros(width)))
            seen = width
        outputs = 2 * n_features
        (first, bias), last = layers[0], np.zeros((outputs, seen))
        return cls(first, bias, last, np.zeros(outputs), tuple(layers[1:]), rectified)

    def __call__(self, seen: Float[Array, "B E"]) -> tuple[Rows, Rows]:
        """The shift and the log-variance.

        The variance is at most twice the error's: places of a wider law are rare where the error's
        is dense, and a few of them would be all that counts.
        """
        bend = jax.nn.relu if self.rectified else jnp.tanh
        layer = bend(seen @ self.first.T + self.first_bias)
        for weights, bias in self.middle:
            layer = bend(layer @ weights.T + bias)
        shift, narrowness = jnp.split(layer @ self.last.T + self.last_bias, 2, axis=1)
        return shift, math.log(2.0) - jax.nn.softplus(narrowness)


class Amortised(Latent):
    """q(x) = N(x̃ + std·shift, std²·exp(log-variance)), both from a network of (x̃, y).

    Places are drawn from q(x) and count by N(x̃, std²) / q(x), so that their number can be small:
    with one place, a standard deviation away, the bound is ℓ there − KL(q(x) ‖ N(x̃, std²)), an
    estimate of E ℓ − KL; with more it lies between that and the bound of `Latent`. The network has
    one layer of `hidden` tanh units, or with a tuple layers of so many ReLU units: `(64, 64)`.
    """

    network: Any = None  # made when the table is known
    hidden: Any = eqx.field(static=True, default=HIDDEN)  # a number or a tuple of them

    def __check_init__(self) -> None:
        widths = self.hidden if isinstance(self.hidden, tuple) else (self.hidden,)
        if not widths or not all(isinstance(width, int) and width >= 1 for width in widths):
            raise ValueError(
                f"hidden must be a whole number of at least 1 or a tuple of them, got "
                f"{self.hidden!r}."
            )

    @property
    def n_classes(self) -> int:
        """What is left of the network's inputs."""
        return self.network.first.shape[1] - self.network.last.shape[0] // 2

    def log_prior(self) -> Float[Array, ""]:
        """Normal weights of the last layer that make shifts of about one standard deviation.

        Places are fixed: where rows are few, a network without it learns by heart where those of
        each row are, and takes the bound of the best of them for that of the row.
        """
        last, bias = jnp.asarray(self.network.last), jnp.asarray(self.network.last_bias)
        return -0.5 * (last.shape[1] * jnp.sum(last**2) + jnp.sum(bias**2))

    def nodes(self, X: Rows, std: Errors, y: Int[Array, "B"], own: Own = NO_ROWS) -> Nodes:
        """Those of q(x)."""
        errors = self.std(X, std)
        shift, log_variance = self._law(X, y)
        standard = standard_places(X, self.count)  # (B, S, D)
        moved = shift[:, None] + jnp.exp(0.5 * log_variance)[:, None] * standard
        places = X[:, None] + errors[:, None] * moved
        if self.count == 1:  # what the line below is on average over ±standard
            spread = jnp.exp(log_variance)
            ratio = 0.5 * (1.0 - shift**2 - spread + log_variance)[:, None]
        else:
            ratio = 0.5 * (standard**2 - moved**2 + log_variance[:, None])
        log_weight = jnp.sum(jnp.where(errors[:, None] > 0, ratio, 0.0), axis=2)
        return Nodes(places.reshape(-1, X.shape[1]), log_weight.reshape(-1))

    def _law(self, X: Rows, y: Int[Array, "B"]) -> tuple[Rows, Rows]:
        """The shift and the log-variance of q(x), in units of the error."""
        label = jax.nn.one_hot(y, self.n_classes, dtype=X.dtype)
        return self.network(jnp.concatenate([X, label], axis=1))

    def drawn(
        self,
        X: Rows,
        std: Errors,
        y: Int[Array, "B"],
        standard: Float[Array, "B S D"],
        own: Own = NO_ROWS,
    ) -> Nodes:
        """Of each draw one node of N(x̃, std²) and one of q(x): an even mixture of the two laws.

        They count by N / (½N + ½q), at most 2, however far off the network is.
        """
        errors = self.std(X, std)[:, None]
        shift, log_variance = (part[:, None] for part in self._law(X, y))
        both = [standard, shift + jnp.exp(0.5 * log_variance) * standard]
        moved = jnp.concatenate(both, axis=1)  # in units of the error
        ratio = 0.5 * (moved**2 - (moved - shift) ** 2 * jnp.exp(-log_variance) - log_variance)
        log_ratio = jnp.sum(jnp.where(errors > 0, ratio, 0.0), axis=2)  # of q to N
        log_weight = math.log(2.0) - jax.nn.softplus(log_ratio)
        nodes = X[:, None] + errors * moved
        return Nodes(nodes.reshape(-1, X.shape[1]), log_weight.reshape(-1))
