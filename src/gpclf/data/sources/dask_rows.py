"""Rows in pieces that a Dask graph makes, on workers of a cluster or in threads.

A pass is one graph: a pure task for each piece, then a sum in pairs, always in the order of the
pieces. So the numbers are the same for any number of workers, in whatever order these come and go,
and what a dead one had is made again. A task gets its piece, and the parcel of the pass, which is a
task itself.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed

from gpclf.data.chunk import Chunk
from gpclf.data.rows import ArrayRows, Kept, Rows
from gpclf.data.scaling import Scaling
from gpclf.data.sources import pieces as tasks
from gpclf.data.sources.parcels import Order, opened, packed
from gpclf.data.sources.pieces import Pass, Piece

T = TypeVar("T")
K = TypeVar("K")

STEP = 64  # chunks are as long as the longest piece, rounded up to so many rows


class DaskRows(Rows):
    """Rows of delayed pieces, of which `lengths` are known; `client` computes, None: Dask's own."""

    def __init__(
        self,
        pieces: Sequence[Delayed],
        lengths: Sequence[int],
        total_weight: float,
        uneven: bool,
        width: int,
        *,
        scaling: Scaling | None,
        dtype: np.dtype,
        client: Any = None,
    ):
        self.pieces, self.lengths, self.client = list(pieces), np.asarray(lengths), client
        self.firsts = np.cumsum(self.lengths) - self.lengths
        self._total_weight, self._uneven = total_weight, uneven
        self.scaling = scaling
        nothing = np.zeros((1, width)), np.zeros(1, np.int32), np.ones(1)
        self._like = ArrayRows(*nothing, scaling=scaling, dtype=dtype)  # a row like all others
        self.chunk_rows = self._longest

    @property
    def _longest(self) -> int:
        return -(-int(self.lengths.max(initial=1)) // STEP) * STEP

    def _copy(self, **changes: Any) -> "DaskRows":
        made = object.__new__(DaskRows)
        vars(made).update(vars(self) | changes)
        return made

    def __reduce__(self) -> Any:
        raise TypeError("Rows on a cluster were about to be sent there with what is asked of them.")

    @property
    def n_rows(self) -> int:
        """Of all pieces."""
        return int(self.lengths.sum())

    @property
    def total_weight(self) -> float:
        """As told."""
        return self._total_weight

    @property
    def n_columns(self) -> int:
        """Once they are standardised."""
        return self._like.n_columns

    @property
    def uneven(self) -> bool:
        """As told."""
        return self._uneven

    def in_chunks(self, chunk_rows: int) -> "DaskRows":
        """The same pieces; in shorter chunks where all pieces are."""
        return self._copy(chunk_rows=min(chunk_rows, self._longest))

    def in_double(self) -> "DaskRows":
        """The same pieces."""
        return self._copy(_like=self._like.in_double())

    def blank(self) -> Chunk:
        """No row, filled up."""
        return self._like.in_chunks(self.chunk_rows).blank()

    def room(self, floats: int) -> bool:
        """Never: chunks are elsewhere."""
        return False

    def _asked(self, statistics: Any) -> Pass:
        return Pass(statistics, self.scaling, self._like.dtype, self.chunk_rows)

    def chunks(self) -> Iterator[Chunk]:
        """Piece after piece comes here: for the few rows that a test has."""
        for piece, first in zip(self.pieces, self.firsts, strict=True):
            (here,) = self._computed([piece])
            if here.n_rows:
                yield from tasks.as_rows(here, first, self._asked(None)).keep(lambda chunk: chunk)

    def _computed(self, wanted: list[Delayed]) -> list[Any]:
        more = {} if self.client is None else {"scheduler": self.client}
        return list(compute(*wanted, **more))

    def sum(self, statistics: Callable[..., T], *kept: Kept) -> T:
        """In pairs of pieces, in their order."""
        return self._passed(statistics, kept, keeps=False)[0]

    def sum_and_keep(
        self, statistics: Callable[..., tuple[T, K]], *kept: Kept
    ) -> tuple[T, "Kept[K]"]:
        """What is kept comes back here, and goes to a worker again where it is wanted."""
        return self._passed(statistics, kept, keeps=True)

    def _passed(self, statistics: Any, kept: tuple[Kept, ...], keeps: bool) -> tuple[Any, Kept]:
        if not self.n_rows:
            raise ValueError("There are no rows to sum over.")
        counts = -(-self.lengths // self.chunk_rows)
        if any(len(part) != counts.sum() for part in kept):
            lengths = ", ".join(str(len(part)) for part in kept)
            raise ValueError(
                f"There are {counts.sum()} chunks, but something is kept of {lengths}."
            )
        asked = Order.of(self._asked(statistics if keeps else Summed(statistics)))
        order = delayed(asked, name=f"gpclf-pass-{asked.name}", traverse=False)
        ends = np.cumsum(counts)
        task, total = delayed(tasks.passed_over), delayed(tasks.total_of)
        found = [
            task(piece, int(first), order, packed([Kept(part[end - count : end]) for part in kept]))
            for piece, first, end, count in zip(self.pieces, self.firsts, ends, counts, strict=True)
        ]
        wanted = [summed([total(one) for one in found])]
        if keeps:
            keep = delayed(tasks.kept_of)
            wanted += [keep(one) for one in found]
        whole, *parts = self._computed(wanted)
        return opened(whole), Kept(own for part in parts for own in opened(part))

    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> ArrayRows:
        """Each piece gives its own; here they come in the order that was asked for."""
        found = self.fetched(rows)
        taken = ArrayRows(*found, scaling=self.scaling, dtype=self._like.dtype)
        taken = taken.in_chunks(self.chunk_rows).at(np.asarray(rows))
        return taken.standing_for(self.n_rows, self.total_weight, rng)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Rows:
        """In memory, also where these are all."""
        if n_rows < self.n_rows:
            return super().sample(n_rows, rng)
        return self.take(np.arange(self.n_rows))

    def fetched(self, rows: np.ndarray) -> Piece:
        """Rows as the pieces have them, in the order of their numbers in `rows`."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        places = np.searchsorted(rows[order], np.append(self.firsts, self.n_rows))
        some, wanted = delayed(tasks.some_of), []
        for number, piece in enumerate(self.pieces):
            own = rows[order[places[number] : places[number + 1]]] - self.firsts[number]
            if len(own):
                wanted.append(some(piece, own))
        found = self._computed(wanted)
        joined = (np.concatenate(part) for part in zip(*found, strict=True))
        back = np.argsort(order, kind="stable")
        return Piece(*(part[back] for part in joined))


class Summed:
    """Statistics of which nothing is kept."""

    def __init__(self, statistics: Callable[..., Any]):
        self.statistics = statistics

    def __call__(self, *own: Any) -> tuple[Any, None]:
        return self.statistics(*own), None


def summed(parts: list[Delayed]) -> Delayed:
    """In pairs, in their order: so the sum does not depend on who adds what."""
    add = delayed(tasks.added)
    while len(parts) > 1:
        pairs = [add(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]
