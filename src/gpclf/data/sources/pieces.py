"""What a worker does with one piece of a table: pure functions, the same wherever they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from gpclf.compilation import compiled_once
from gpclf.data.rows import ArrayRows, Kept
from gpclf.data.scaling import Scaling
from gpclf.data.sources.parcels import Order, opened, packed
from gpclf.linalg import one_thread
from gpclf.precision import double_precision


class Piece(NamedTuple):
    """Rows of a table that come together: as numbers, classes and weights; none of weight 0."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    @property
    def n_rows(self) -> int:
        """How many."""
        return len(self.y)


class Pass(NamedTuple):
    """How a piece is handed out, and what is asked of its chunks."""

    statistics: Any
    scaling: Scaling | None
    dtype: np.dtype
    chunk_rows: int


class Found(NamedTuple):
    """Of one piece, packed: what is added up (None: it has no rows), and kept, chunk by chunk."""

    total: bytes | None
    kept: bytes


@contextmanager
def _alone() -> Iterator[None]:
    """BLAS keeps to one thread, however many tasks a worker has under way at once."""
    with _Tasks.lock:
        if not _Tasks.under_way:
            _Tasks.limit = one_thread()
            _Tasks.limit.__enter__()
        _Tasks.under_way += 1
    try:
        yield
    finally:
        with _Tasks.lock:
            _Tasks.under_way -= 1
            if not _Tasks.under_way:
                _Tasks.limit.__exit__(None, None, None)


class _Tasks:
    """Of this process."""

    lock = Lock()
    under_way = 0
    limit: Any = None


def as_rows(piece: Piece, first: int, asked: Pass) -> ArrayRows:
    """The rows of a piece, whose first is so far down the table."""
    rows = ArrayRows(*piece, scaling=asked.scaling, dtype=asked.dtype)
    return rows.at(first + np.arange(piece.n_rows)).in_chunks(asked.chunk_rows)


@compiled_once
@double_precision
def passed_over(piece: Piece, first: int, order: Order, kept: bytes) -> Found:
    """One pass over one piece."""
    if not piece.n_rows:
        return Found(None, packed(Kept()))
    asked: Pass = order.opened()
    with _alone():
        rows = as_rows(piece, first, asked)
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


def some_of(piece: Piece, rows: np.ndarray) -> Piece:
    """Some of its rows."""
    return Piece(*(part[rows] for part in piece))
