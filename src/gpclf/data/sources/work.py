"""What a worker does with one piece of a table: pure functions, the same wherever they run.

What they give travels packed, but for rows themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from gpclf.compilation import compiled_once
from gpclf.data.block import Block, joined, rebatched
from gpclf.data.fingerprint import fingerprint
from gpclf.data.rows import ArrayRows, Kept
from gpclf.data.scaling import Scaling
from gpclf.data.sources.base import Piece, Pieces
from gpclf.data.sources.coding import Coder, label_counts
from gpclf.data.sources.parcels import Order, opened, packed
from gpclf.data.sources.paths import changed
from gpclf.data.survey import AT_ONCE, Survey
from gpclf.linalg import one_thread
from gpclf.precision import double_precision


class Looked(NamedTuple):
    """What one piece has: its levels and classes as they came, and how many rows count."""

    coder: Coder
    found: Survey


class Pass(NamedTuple):
    """How a block is handed out, and what is asked of its chunks."""

    statistics: Any
    scaling: Scaling | None
    dtype: np.dtype
    chunk_rows: int


class Found(NamedTuple):
    """Of one block, packed: what is added up (None: it has no rows), and kept, chunk by chunk."""

    total: bytes | None
    kept: bytes


class _Tasks:
    """Those under way in this process."""

    lock = Lock()
    count = 0
    limit: Any = None


@contextmanager
def alone() -> Iterator[None]:
    """BLAS keeps to one thread, however many tasks a worker has under way at once."""
    with _Tasks.lock:
        if not _Tasks.count:
            _Tasks.limit = one_thread()
            _Tasks.limit.__enter__()
        _Tasks.count += 1
    try:
        yield
    finally:
        with _Tasks.lock:
            _Tasks.count -= 1
            if not _Tasks.count:
                _Tasks.limit.__exit__(None, None, None)


def read(pieces: Pieces, columns: list[str], number: int) -> Piece:
    """A piece that is a part of a file; `pieces` has no other."""
    (piece,) = pieces.read(columns)
    return piece._replace(number=number)


def cut(piece: Piece, columns: list[str]) -> Piece:
    """These columns of a piece that is there."""
    return piece._replace(rows=piece.rows.select(columns))


def counted(piece: Piece, label: str) -> dict[Any, int]:
    """How many rows each class has."""
    return label_counts([piece], label)


def looked(piece: Piece, order: Order) -> bytes:
    """The first pass over one piece."""
    coder: Coder = deepcopy(order.opened())  # others have it, too
    found = Survey(coder.is_level)
    with alone():
        for block in rebatched(coder.blocks(piece), AT_ONCE):
            found.add(block.X, block.weight, block.y)
    return packed(Looked(coder, found))


def encoded(piece: Piece, order: Order, size: int) -> Block:
    """The rows that count, as numbers; so many as the first pass found."""
    coder: Coder = order.opened()
    blocks = list(coder.blocks(piece))
    if sum(block.n_rows for block in blocks) != size:
        raise changed(piece.where)
    return joined(blocks) if blocks else empty(len(coder.names))


def told(block: Block) -> str:
    """What tells it from others."""
    return fingerprint(list(block.fingerprints().values()))


def empty(width: int) -> Block:
    """No rows."""
    return Block(np.empty((0, width)), np.empty(0, np.int32), np.empty(0), None)


def as_rows(block: Block, first: int, asked: Pass) -> ArrayRows:
    """The rows of a block, whose first is so far down the table."""
    rows = block.rows(asked.scaling, asked.dtype, redraw=False)
    return rows.at(first + np.arange(block.n_rows)).in_chunks(asked.chunk_rows)


@compiled_once
@double_precision
def passed_over(block: Block, first: int, order: Order, kept: bytes) -> Found:
    """One pass over one block."""
    if not block.n_rows:
        return Found(None, packed(Kept()))
    asked: Pass = order.opened()
    with alone():
        rows = as_rows(block, first, asked)
        total, stays = rows.sum_and_keep(asked.statistics, *opened(kept))
    return Found(packed(total), packed(stays))


def added(one: bytes | None, other: bytes | None) -> bytes | None:
    """The sum of two sums."""
    if one is None or other is None:
        return one if other is None else other
    return packed(jax.tree.map(np.add, opened(one), opened(other)))


def total_of(found: Found) -> bytes | None:
    """What is added up."""
    return found.total


def kept_of(found: Found) -> bytes:
    """What is kept."""
    return found.kept


def some_of(block: Block, rows: np.ndarray) -> Block:
    """Some of its rows."""
    return block.part(rows)
