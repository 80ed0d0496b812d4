"""Rows: all that inference knows of data.

A source of rows hands them out chunk by chunk, forwards, and adds up what a pass finds in each:
`sum` is the only sum over rows in the library, so that files, several devices and several machines
are the same program with another `chunks` or another `sum`. What belongs to a row between passes
(its site, say) is `Kept`, chunk by chunk; nothing else of a chunk outlives its turn unless the
source says that there is room (`keeping`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from gpclf.data.chunk import Chunk
from gpclf.data.scaling import Scaling

T = TypeVar("T")
K = TypeVar("K")

KEPT_FLOATS = 2**25  # of what is kept with chunks: 128 MB in float32


class Kept(list, Generic[T]):
    """What belongs to rows from one pass to the next: an entry for each chunk, in their order."""


class Rows(ABC):
    """Rows that can be passed over any number of times, in chunks of equal shape."""

    chunk_rows: int

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows a pass visits."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """The sum of their weights, for a part of the rows that of all of them."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many numbers a row has."""

    @property
    @abstractmethod
    def uneven(self) -> bool:
        """Whether some rows count less than one."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Every row once, in order; the last chunk is filled up."""

    @abstractmethod
    def in_chunks(self, chunk_rows: int) -> "Rows":
        """The same rows in chunks of another length."""

    @abstractmethod
    def in_double(self) -> "Rows":
        """The same rows, handed out in float64."""

    @abstractmethod
    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> "ArrayRows":
        """Chosen rows, in memory, that stand for all by their weights.

        With `rng` they are a batch, for which errors are drawn anew where that was asked for.
        """

    @abstractmethod
    def blank(self) -> Chunk:
        """A chunk of the shape of the others that counts no row."""

    def sum(self, statistics: Callable[..., T], *kept: Kept) -> T:
        """Σ statistics(chunk, what is kept of it), leaf by leaf, as NumPy arrays: small ones."""
        count = -(-self.n_rows // self.chunk_rows)
        if any(len(part) != count for part in kept):
            lengths = ", ".join(str(len(part)) for part in kept)
            raise ValueError(f"There are {count} chunks, but something is kept of {lengths}.")
        total: Any = None
        beside = [iter(part) for part in kept]
        for chunk in self.chunks():  # not with zip or enumerate, which hold what they gave last
            part = jax.tree.map(np.asarray, statistics(chunk, *map(next, beside)))
            del chunk  # one at a time
            total = part if total is None else jax.tree.map(np.add, total, part)
        if total is None:
            raise ValueError("There are no rows to sum over.")
        return total

    def sum_and_keep(
        self, statistics: Callable[..., tuple[T, K]], *kept: Kept
    ) -> tuple[T, "Kept[K]"]:
        """As `sum`, where statistics gives a pair: what is added up, and what is kept."""
        found: Kept[K] = Kept()

        def added(*own: Any) -> T:
            sums, stays = statistics(*own)
            found.append(stays)
            return sums

        return self.sum(added, *kept), found

    def keep(self, function: Callable[..., K], *kept: Kept) -> "Kept[K]":
        """What a function makes of each chunk, where there is nothing to add up."""
        return self.sum_and_keep(lambda *own: ((), function(*own)), *kept)[1]

    def room(self, floats: int) -> bool:
        """Whether so many numbers may be kept with the chunks."""
        return floats <= KEPT_FLOATS

    def keeping(self, function: Callable[[Chunk], Chunk], floats_a_row: int) -> "Rows":
        """The rows with what a function adds to their chunks, where there is room for that.

        Else as they are: each pass then finds it anew.
        """
        if not self.room(self.n_rows * floats_a_row):
            return self
        return ChunkRows(self, [function(chunk) for chunk in self.chunks()])

    def sample(self, n_rows: int, rng: np.random.Generator) -> "Rows":
        """A random subset in memory, or the rows themselves if there are no more than that."""
        if n_rows >= self.n_rows:
            return self
        return self.take(np.sort(rng.choice(self.n_rows, n_rows, replace=False)))

    def batches(self, size: int, rng: np.random.Generator) -> "Iterator[ArrayRows]":
        """Every row once, in an order drawn from `rng`, in batches of nearly equal size.

        A batch stands for all rows, and has as many chunks as it needs. What else is drawn from
        `rng` between two of them does not change the order: a fit that goes on skips the first.
        """
        count = -(-self.n_rows // size)
        parts = np.array_split(rng.permutation(self.n_rows), count)
        pieces = -(-len(parts[0]) // self.chunk_rows)
        chunk_rows = -(-len(parts[0]) // pieces)
        for part in parts:
            yield self.take(part, rng).in_chunks(chunk_rows)


class ArrayRows(Rows):
    """Rows in memory, standardised chunk by chunk: X itself is never copied.

    `dtype`: of the rows handed out; None: that of X. `std`: of the errors of X, in its units, one
    row if alike for all. `redraw`: batches get errors added anew, and are then taken as exact.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        *,
        scaling: Scaling | None = None,
        dtype: Any = None,
        std: np.ndarray | None = None,
        redraw: bool = False,
    ):
        self.X, self.y, self.weight, self.std = X, y, weight, std
        self.scaling, self.redraw = scaling, redraw
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)
        self.chunk_rows = max(1, len(y))
        self._places: np.ndarray | None = None  # in the source, of rows taken from one
        self._scale = 1.0  # of a batch: N/B
        self._rng: np.random.Generator | None = None
        self._nodes = 0  # of a row, for which batches have draws
        self._seed = 0  # of those

    def _copy(self, **changes: Any) -> "ArrayRows":
        made = copy(self)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    @property
    def n_rows(self) -> int:
        """The length of the arrays."""
        return len(self.y)

    @property
    def total_weight(self) -> float:
        """That of the rows, times what they stand for."""
        return self._scale * float(self.weight.sum(dtype=np.float64))

    @property
    def n_columns(self) -> int:
        """Once they are standardised."""
        return self.X.shape[1] if self.scaling is None else self.scaling.width

    @property
    def uneven(self) -> bool:
        """Whether a weight is below one."""
        return bool(np.any(self.weight < 1))

    def in_chunks(self, chunk_rows: int) -> "ArrayRows":
        """The same arrays."""
        return self._copy(chunk_rows=chunk_rows)

    def in_double(self) -> "ArrayRows":
        """The same arrays."""
        return self._copy(dtype=np.dtype(np.float64))

    def blank(self) -> Chunk:
        """No row, filled up."""
        return self._chunk(np.arange(0))

    def chunks(self) -> Iterator[Chunk]:
        """Slices of the arrays."""
        for first in range(0, self.n_rows, self.chunk_rows):
            yield self._chunk(np.arange(first, min(first + self.chunk_rows, self.n_rows)))

    def as_chunk(self) -> Chunk:
        """The first of them: all rows, where there are no more than a chunk has."""
        return self._chunk(np.arange(min(self.chunk_rows, self.n_rows)))

    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> "ArrayRows":
        """Their numbers; a sample's weights grow to those of all rows, a batch has a scale."""
        some = self._copy(
            X=self.X[rows],
            y=self.y[rows],
            weight=self.weight[rows],
            std=self.std if self.std is None or len(self.std) == 1 else self.std[rows],
        ).at(rows if self._places is None else self._places[rows])
        return some.standing_for(self.n_rows, float(self.weight.sum(dtype=np.float64)), rng)

    def at(self, places: np.ndarray) -> "ArrayRows":
        """The same arrays, whose rows have these numbers in their source."""
        return self._copy(_places=places)

    def standing_for(
        self, n_rows: int, total: float, rng: np.random.Generator | None
    ) -> "ArrayRows":
        """The same arrays for so many rows: a sample by its weights, a batch (`rng`) by a scale."""
        if rng is None:
            grown = total / self.weight.sum(dtype=np.float64)
            return self._copy(weight=(self.weight * grown).astype(self.weight.dtype), _rng=None)
        scale = self._scale * n_rows / len(self.y)
        seed = int(rng.integers(2**31)) if self._nodes else 0
        return self._copy(_scale=scale, _rng=rng, _seed=seed)

    def lighter(self, share: float) -> "ArrayRows":
        """The same arrays, each row with a share of its weight."""
        return self._copy(weight=(share * self.weight).astype(self.weight.dtype))

    def drawing(self, nodes: int) -> "ArrayRows":
        """The same arrays, whose batches have draws of N(0, I) for so many nodes of each row."""
        return self._copy(_nodes=nodes)

    def _chunk(self, rows: np.ndarray) -> Chunk:
        fill = self.chunk_rows - len(rows)
        rows = np.concatenate([rows, np.zeros(fill, rows.dtype)]) if fill else rows
        X = self.X[rows] if self.scaling is None else self.scaling.forward(self.X[rows])
        weight = self.weight[rows].astype(self.dtype)
        if fill:
            weight[-fill:] = 0
        std = self._errors(rows)
        if self.redraw and std is not None:
            if self._rng is not None:
                X = X + std * self._rng.standard_normal(X.shape)
            std = None
        std = None if std is None else std.astype(self.dtype)
        places = rows if self._places is None else self._places[rows]
        scale = np.asarray(self._scale, self.dtype)
        standard = self._draws(rows)
        parts = (X.astype(self.dtype), self.y[rows], weight, scale, places, std, None, standard)
        return Chunk(*jax.device_put(parts))  # compiles nothing, unlike jnp.asarray

    def _draws(self, rows: np.ndarray) -> np.ndarray | None:
        """For each node of each row of a batch, the same whenever the batch is passed over."""
        if self._rng is None or not self._nodes:
            return None
        rng = np.random.default_rng((self._seed, int(rows[0])))
        return rng.standard_normal((len(rows), self._nodes, self.n_columns), self.dtype)

    def _errors(self, rows: np.ndarray) -> np.ndarray | None:
        """The standard deviations of rows as they are handed out; one row if alike for all."""
        if self.std is None:
            return None
        std = self.std if len(self.std) == 1 else self.std[rows]
        return std if self.scaling is None else self.scaling.errors(std, self.X[rows])


class ChunkRows(Rows):
    """Rows whose chunks are all in memory, as they came or with something kept beside them."""

    def __init__(self, source: Rows, chunks: list[Chunk]):
        self._source, self._chunks = source, chunks
        self.chunk_rows = source.chunk_rows

    @property
    def n_rows(self) -> int:
        """As many as the source has."""
        return self._source.n_rows

    @property
    def total_weight(self) -> float:
        """That of the source."""
        return self._source.total_weight

    @property
    def n_columns(self) -> int:
        """Those of the source."""
        return self._source.n_columns

    @property
    def uneven(self) -> bool:
        """As the source is."""
        return self._source.uneven

    def chunks(self) -> Iterator[Chunk]:
        """From memory."""
        return iter(self._chunks)

    def in_chunks(self, chunk_rows: int) -> Rows:
        """Those of the source."""
        return self._source.in_chunks(chunk_rows)

    def in_double(self) -> Rows:
        """Those of the source."""
        return self._source.in_double()

    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> ArrayRows:
        """From the source."""
        return self._source.take(rows, rng)

    def blank(self) -> Chunk:
        """That of the source."""
        return self._source.blank()
