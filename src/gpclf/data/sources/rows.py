"""SourceRows: rows that are read anew in every pass, for inference."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gpclf.data.block import Block, joined, rebatched
from gpclf.data.chunk import Chunk
from gpclf.data.rows import ArrayRows, Rows
from gpclf.data.scaling import Scaling
from gpclf.data.survey import Survey

BUFFER_ROWS, BUFFER_NUMBERS = 2**17, 2**24  # at most, among which the rows of a batch are drawn


@runtime_checkable
class Source(Protocol):
    """What `SourceRows` asks of where rows come from."""

    pieces: Any  # `any_order`: whether its pieces can be shuffled
    sizes: list[int]  # rows of each piece
    found: Survey

    def blocks(self) -> Iterator[Block]:
        """All rows, forwards, in blocks of any length."""
        ...

    def pieces_in_order(self, which: np.ndarray) -> Iterator[Block]:
        """The same, piece by piece in another order."""
        ...

    def take(self, rows: np.ndarray) -> Block:
        """Some rows by their numbers."""
        ...


class SourceRows(Rows):
    """Rows of a source, standardised chunk by chunk as those in memory are: by `ArrayRows`.

    A pass reads them all. A sample reads the pieces that hold it. Batches read the pieces in a
    random order, and are drawn from a buffer of some of them.
    """

    def __init__(self, source: Source, scaling: Scaling, dtype: Any, redraw: bool = False):
        self.source, self.scaling, self.redraw = source, scaling, redraw
        self.dtype = np.dtype(dtype)
        self.chunk_rows = max(1, source.found.n_rows)

    @property
    def n_rows(self) -> int:
        """As the first pass counted them."""
        return self.source.found.n_rows

    @property
    def total_weight(self) -> float:
        """As the first pass added them up."""
        return self.source.found.total

    @property
    def n_columns(self) -> int:
        """Once they are standardised."""
        return self.scaling.width

    @property
    def uneven(self) -> bool:
        """Whether a weight is below one."""
        return self.source.found.uneven

    def _copy(self, **changes: Any) -> "SourceRows":
        made = copy(self)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    def in_chunks(self, chunk_rows: int) -> "SourceRows":
        """The same source."""
        return self._copy(chunk_rows=chunk_rows)

    def in_double(self) -> "SourceRows":
        """The same source."""
        return self._copy(dtype=np.dtype(np.float64))

    def _in_memory(self, block: Block, places: np.ndarray) -> ArrayRows:
        rows = block.rows(self.scaling, self.dtype, self.redraw).at(places)
        return rows.in_chunks(self.chunk_rows)

    def blank(self) -> Chunk:
        """No row, filled up."""
        width, found = len(self.scaling.levels), self.source.found
        std = None if found.typical is None else np.zeros((1, width))
        one = Block(np.zeros((1, width)), np.zeros(1, np.int32), np.ones(1), std)
        return self._in_memory(one, np.arange(1)).blank()

    def chunks(self) -> Iterator[Chunk]:
        """Every row once, in order."""
        first = 0
        for block in rebatched(self.source.blocks(), self.chunk_rows):
            places = np.arange(first, first + block.n_rows)
            first += block.n_rows
            yield self._in_memory(block, places).as_chunk()

    def take(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> ArrayRows:
        """Read them; a sample's weights grow to those of all rows, a batch has a scale."""
        return self._standing_for_all(self.source.take(rows), np.asarray(rows), rng)

    def _standing_for_all(
        self, block: Block, places: np.ndarray, rng: np.random.Generator | None
    ) -> ArrayRows:
        made = self._in_memory(block, places)
        return made.standing_for(self.n_rows, self.total_weight, rng)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[ArrayRows]:
        """Every row once, in batches of nearly equal size, from pieces in a random order.

        A batch is drawn from the rows of a buffer, which holds `BUFFER_ROWS` of them or a few
        pieces: rows that are far apart in the table seldom meet where pieces are large.
        """
        count = -(-self.n_rows // size)
        least, larger = divmod(self.n_rows, count)
        sizes = [least + 1] * larger + [least] * (count - larger)
        pieces = -(-sizes[0] // self.chunk_rows)
        chunk_rows = -(-sizes[0] // pieces)
        room = min(BUFFER_ROWS, BUFFER_NUMBERS // len(self.scaling.levels))
        own = np.random.default_rng(int(rng.integers(2**63)))  # a fit that goes on skips batches
        for block in _shuffled(self._unordered(own), sizes, max(room, 2 * sizes[0]), own):
            yield self._standing_for_all(block, np.arange(block.n_rows), rng).in_chunks(chunk_rows)

    def _unordered(self, rng: np.random.Generator) -> Iterator[Block]:
        if not self.source.pieces.any_order:
            return self.source.blocks()
        return self.source.pieces_in_order(rng.permutation(len(self.source.sizes)))


def _shuffled(
    blocks: Iterator[Block], sizes: list[int], room: int, rng: np.random.Generator
) -> Iterator[Block]:
    """Blocks of these sizes, drawn from a buffer that is filled again when it is half empty."""
    waiting: list[Block] = []
    count = 0
    for size in sizes:
        if count < max(room // 2, size):
            more = 0
            for block in blocks:
                waiting.append(block)
                more += block.n_rows
                if count + more >= room:
                    break
            if more:
                count += more
                waiting = [joined(waiting).part(rng.permutation(count))]
        yield waiting[0].part(slice(0, size))
        waiting = [waiting[0].part(slice(size, None))]
        count -= size
