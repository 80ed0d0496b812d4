"""Where chunks come from. A stream has a number of rows, and hands them out in two ways."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np

from gpclf.data.chunk import Chunk
from gpclf.data.scaling import Scaling


class Stream(eqx.Module):
    """Rows that can be passed over any number of times, in chunks of equal shape."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows a pass visits."""

    @abstractmethod
    def whole(self, chunk_rows: int) -> Iterator[Chunk]:
        """Every row once, in order, each chunk with scale 1."""

    @abstractmethod
    def batches(self, batch_rows: int, rng: np.random.Generator) -> Iterator[Chunk]:
        """Every row once, shuffled, each chunk with scale N/B."""


class ArrayStream(Stream):
    """Rows in memory, standardised chunk by chunk: X itself is never copied."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    scaling: Scaling | None = None
    dtype: np.dtype | None = None  # of the rows handed out; None: that of X
    std: np.ndarray | None = None  # of the errors of X, in its units; one row if alike for all
    redraw: bool = False  # batches get errors added anew, and are then taken as exact

    @property
    def n_rows(self) -> int:
        """The length of the arrays."""
        return len(self.y)

    def _chunk(
        self, rows: np.ndarray, length: int, scale: float, rng: np.random.Generator | None = None
    ) -> Chunk:
        fill = length - len(rows)
        rows = np.concatenate([rows, np.zeros(fill, rows.dtype)]) if fill else rows
        dtype = self.X.dtype if self.dtype is None else self.dtype
        X = self.X[rows] if self.scaling is None else self.scaling.forward(self.X[rows])
        weight = self.weight[rows].astype(dtype)
        if fill:
            weight[-fill:] = 0
        std = self._errors(rows)
        if self.redraw and std is not None:
            X, std = X if rng is None else X + std * rng.standard_normal(X.shape), None
        std = None if std is None else std.astype(dtype)
        parts = (X.astype(dtype), self.y[rows], weight, np.asarray(scale, dtype), rows, std)
        return Chunk(*jax.device_put(parts))  # compiles nothing, unlike jnp.asarray

    def _errors(self, rows: np.ndarray) -> np.ndarray | None:
        """The standard deviations of rows as they are handed out; one row if alike for all."""
        if self.std is None:
            return None
        std = self.std if len(self.std) == 1 else self.std[rows]
        return std if self.scaling is None else self.scaling.errors(std)

    def blank(self, chunk_rows: int) -> Chunk:
        """A chunk of the shape of those of `whole` that counts no row."""
        return self._chunk(np.arange(0), chunk_rows, 1.0)

    def whole(self, chunk_rows: int) -> Iterator[Chunk]:
        """Every row once, in order; the last chunk is filled up."""
        for first in range(0, self.n_rows, chunk_rows):
            rows = np.arange(first, min(first + chunk_rows, self.n_rows))
            yield self._chunk(rows, chunk_rows, 1.0)

    def batches(self, batch_rows: int, rng: np.random.Generator) -> Iterator[Chunk]:
        """Every row once, in an order drawn from `rng`, in batches of nearly equal size."""
        count = -(-self.n_rows // batch_rows)
        parts = np.array_split(rng.permutation(self.n_rows), count)
        for rows in parts:
            yield self._chunk(rows, len(parts[0]), self.n_rows / len(rows), rng)

    def sample(self, n_rows: int, rng: np.random.Generator) -> "ArrayStream":
        """A random subset, or the stream itself if it has no more rows than that.

        Its weights add up to those of all rows: sums over it are estimates of sums over them.
        """
        if n_rows >= self.n_rows:
            return self
        rows = np.sort(rng.choice(self.n_rows, n_rows, replace=False))
        weight = self.weight[rows]
        grown = weight * (self.weight.sum(dtype=np.float64) / weight.sum(dtype=np.float64))
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weight=grown.astype(weight.dtype),
            std=self.std if self.std is None or len(self.std) == 1 else self.std[rows],
        )
