"""Where chunks come from. A stream has a number of rows, and hands them out in two ways."""

from abc import abstractmethod
from collections.abc import Iterator

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

    @property
    def n_rows(self) -> int:
        """The length of the arrays."""
        return len(self.y)

    def _chunk(self, rows: np.ndarray, length: int, scale: float) -> Chunk:
        fill = length - len(rows)
        rows = np.concatenate([rows, np.zeros(fill, rows.dtype)]) if fill else rows
        dtype = self.X.dtype if self.dtype is None else self.dtype
        X = self.X[rows] if self.scaling is None else self.scaling.forward(self.X[rows])
        weight = self.weight[rows].astype(dtype)
        if fill:
            weight[-fill:] = 0
        parts = (X.astype(dtype), self.y[rows], weight, np.asarray(scale, dtype), rows)
        return Chunk(*jax.device_put(parts))  # compiles nothing, unlike jnp.asarray

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
            yield self._chunk(rows, len(parts[0]), self.n_rows / len(rows))

    def sample(self, n_rows: int, rng: np.random.Generator) -> "ArrayStream":
        """A random subset, or the stream itself if it has no more rows than that.

        Its weights add up to those of all rows: sums over it are estimates of sums over them.
        """
        if n_rows >= self.n_rows:
            return self
        rows = np.sort(rng.choice(self.n_rows, n_rows, replace=False))
        weight = self.weight[rows]
        grown = weight * (self.weight.sum(dtype=np.float64) / weight.sum(dtype=np.float64))
        return ArrayStream(
            self.X[rows], self.y[rows], grown.astype(weight.dtype), self.scaling, self.dtype
        )
