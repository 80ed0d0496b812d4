"""Rows in blocks that a Dask graph makes, on workers of a cluster or in threads.

A pass is one graph: a pure task for each block, then a sum in pairs, always in the order of the
blocks. So the numbers are the same for any number of workers, in whatever order these come and go,
and what a dead one had is made again. A task gets its block, and the order of the pass, which is a
task itself.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from dask import config
from dask.base import compute, persist
from dask.delayed import Delayed, delayed

from gpclf.data.block import Block, joined
from gpclf.data.chunk import Chunk
from gpclf.data.rows import ArrayRows, Kept, Rows
from gpclf.data.scaling import Scaling
from gpclf.data.sources import work
from gpclf.data.sources.parcels import Order, opened, packed
from gpclf.data.sources.work import Pass
from gpclf.data.survey import Survey

T = TypeVar("T")
K = TypeVar("K")

# an order has matrices of inducing points: a graph of ten megabytes is none to warn of
LARGE = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}
STEP = 64  # chunks are as long as the longest block, rounded up to so many rows


class Cluster:
    """Where graphs are computed: by a client of Dask's, or as Dask itself does."""

    def __init__(self, client: Any = None):
        self.client = client

    def __call__(self, wanted: Sequence[Delayed]) -> list[Any]:
        """Their values, here."""
        more = {} if self.client is None else {"scheduler": self.client}
        return list(compute(*wanted, **more))

    def holds(self, wanted: Sequence[Delayed]) -> list[Delayed]:
        """The same values, kept where they are computed."""
        return list(persist(*wanted) if self.client is None else self.client.persist(list(wanted)))


class DaskBlocks:
    """Delayed blocks, and how many rows each has."""

    def __init__(self, blocks: Sequence[Delayed], sizes: Sequence[int], cluster: Cluster):
        self.blocks, self.sizes, self.cluster = list(blocks), np.asarray(sizes, np.intp), cluster
        self.firsts = np.cumsum(self.sizes) - self.sizes
        self.n_rows = int(self.sizes.sum())

    def take(self, rows: np.ndarray) -> Block:
        """Some rows by their numbers, in this order."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], np.append(self.firsts, self.n_rows))
        some, wanted = delayed(work.some_of), []
        for number, block in enumerate(self.blocks):
            own = rows[order[ends[number] : ends[number + 1]]] - self.firsts[number]
            if len(own):
                wanted.append(some(block, own))
        back = np.argsort(order, kind="stable")
        return joined(self.cluster(wanted)).part(back)


class DaskRows(Rows):
    """Rows of delayed blocks, which are all of what the survey found."""

    def __init__(self, blocks: DaskBlocks, found: Survey, scaling: Scaling | None, dtype: Any):
        self.blocks, self.found, self.scaling = blocks, found, scaling
        width = len(found.is_level)
        std = None if found.typical is None else np.zeros((1, width))
        like = Block(np.zeros((1, width)), np.zeros(1, np.int32), np.ones(1), std)
        self._like = like.rows(scaling, dtype, redraw=False)  # a row as all others
        self.chunk_rows = self._longest

    @property
    def _longest(self) -> int:
        return -(-int(self.blocks.sizes.max(initial=1)) // STEP) * STEP

    def _copy(self, **changes: Any) -> "DaskRows":
        made = object.__new__(DaskRows)
        vars(made).update(vars(self) | changes)
        return made

    def __reduce__(self) -> Any:
        raise TypeError("Rows on a cluster were about to be sent there with what is asked of them.")

    @property
    def n_rows(self) -> int:
        """Of all blocks."""
        return self.blocks.n_rows

    @property
    def total_weight(self) -> float:
        """As the first pass added them up."""
        return self.found.total

    @property
    def n_columns(self) -> int:
        """Once they are standardised."""
        return self._like.n_columns

    @property
    def uneven(self) -> bool:
        """Whether a weight is below one."""
        return self.found.uneven

    def in_chunks(self, chunk_rows: int) -> "DaskRows":
        """The same blocks; in shorter chunks where all blocks are."""
        return self._copy(chunk_rows=min(chunk_rows, self._longest))

    def in_double(self) -> "DaskRows":
        """The same blocks."""
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
        """Block after block comes here."""
        for block, first in zip(self.blocks.blocks, self.blocks.firsts, strict=True):
            (here,) = self.blocks.cluster([block])
            if here.n_rows:
                yield from work.as_rows(here, first, self._asked(None)).keep(lambda chunk: chunk)

    def sum(self, statistics: Callable[..., T], *kept: Kept) -> T:
        """In pairs of blocks, in their order."""
        return self._passed(_Summed(statistics), kept, keeps=False)[0]

    def sum_and_keep(
        self, statistics: Callable[..., tuple[T, K]], *kept: Kept
    ) -> tuple[T, "Kept[K]"]:
        """What is kept comes back here, and goes to a worker again where it is wanted."""
        return self._passed(statistics, kept, keeps=True)

    def _passed(self, statistics: Any, kept: tuple[Kept, ...], keeps: bool) -> tuple[Any, Kept]:
        if not self.n_rows:
            raise ValueError("There are no rows to sum over.")
        counts = -(-self.blocks.sizes // self.chunk_rows)
        if any(len(part) != counts.sum() for part in kept):
            lengths = ", ".join(str(len(part)) for part in kept)
            raise ValueError(
                f"There are {counts.sum()} chunks, but something is kept of {lengths}."
            )
        order = sent(Order.of(self._asked(statistics)))
        task, ends = delayed(work.passed_over), np.cumsum(counts)
        pairs = zip(ends - counts, ends, strict=True)
        own = [packed([Kept(part[first:end]) for part in kept]) for first, end in pairs]
        found = [
            task(block, int(first), order, beside)
            for block, first, beside in zip(
                self.blocks.blocks, self.blocks.firsts, own, strict=True
            )
        ]
        total, keep = delayed(work.total_of), delayed(work.kept_of)
        wanted = [summed([total(one) for one in found])]
        wanted += [keep(one) for one in found] if keeps else []
        with config.set(LARGE):
            whole, *parts = self.blocks.cluster(wanted)
        return opened(whole), Kept(each for part in parts for each in opened(part))

    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> ArrayRows:
        """Each block gives its own; they stand for all as those of an array do."""
        taken = self.blocks.take(rows).rows(self.scaling, self._like.dtype, redraw=False)
        taken = taken.in_chunks(self.chunk_rows).at(np.asarray(rows))
        return taken.standing_for(self.n_rows, self.total_weight, rng)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Rows:
        """In memory, also where these are all."""
        if n_rows < self.n_rows:
            return super().sample(n_rows, rng)
        return self.take(np.arange(self.n_rows))


class _Summed:
    """Statistics of which nothing is kept."""

    def __init__(self, statistics: Callable[..., Any]):
        self.statistics = statistics

    def __call__(self, *own: Any) -> tuple[Any, None]:
        return self.statistics(*own), None


def sent(order: Order) -> Delayed:
    """An order as a task of its own, which all others of a graph share."""
    return delayed(order, name=f"gpclf-order-{order.name}", traverse=False)


def summed(parts: list[Delayed]) -> Delayed:
    """In pairs, in their order: so the sum does not depend on who adds what."""
    add = delayed(work.added)
    while len(parts) > 1:
        pairs = [add(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]
