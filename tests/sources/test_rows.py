"""Laws of rows that are read: passes, samples and batches are those of the table."""

import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpclf import ArrowTable, GPClassifier, ParquetTable
from gpclf.data import Scaling
from gpclf.data.block import Block, rebatched
from gpclf.data.sources import first_pass, rows
from gpclf.data.sources.prefetch import prefetched
from gpclf.inference.engines import Natural

N = 300


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(N), rng.normal(size=N)])
    return X, (X[:, 1] > 0).astype(int), rng.integers(0, 3, N).astype(float)


@pytest.fixture(scope="module")
def table(arrays):
    X, y, weight = arrays
    return pa.table({"number": X[:, 0], "wind": X[:, 1], "late": y, "count": weight})


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    place = tmp_path_factory.mktemp("flights") / "a.parquet"
    pa.parquet.write_table(table, place, row_group_size=32)
    return place


def source_of(given):
    return first_pass(given, "from_dtype", None)[0]


def rows_of(source):
    scaling = Scaling.found(source.found, np.zeros(2, int), None)  # numbers as they are
    return source.rows(scaling, np.float64, False).in_chunks(50)


def of_chunks(chunks):
    """Numbers, labels and weights of the rows that count, as one."""
    parts = [(np.asarray(c.X), np.asarray(c.y), np.asarray(c.weight)) for c in chunks]
    X, y, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    used = weight > 0
    return X[used], y[used], weight[used]


@pytest.mark.parametrize("weight", [None, "count"])
def test_a_pass_gives_every_row_that_counts_in_order(path, arrays, weight):
    X, y, counts = arrays
    used = np.ones(N, bool) if weight is None else counts > 0
    columns = ["number", "wind"]
    found = rows_of(source_of(ParquetTable(path, "late", weight=weight, columns=columns)))
    own = of_chunks(found.chunks())
    wanted = X[used], y[used], counts[used] if weight else np.ones(N)
    for mine, theirs in zip(own, wanted, strict=True):
        assert_allclose(mine, theirs)
    assert found.n_rows == used.sum()
    assert found.total_weight == pytest.approx(wanted[2].sum())
    assert {len(c.y) for c in found.chunks()} == {50} == {len(found.blank().y)}
    rng = np.random.default_rng(1)
    some = rng.choice(found.n_rows, 40, replace=False)
    block = found.source.take(some)
    assert_array_equal(block.X, X[used][some])
    assert_array_equal(block.y, y[used][some])
    sample = found.sample(60, rng)
    assert sample.total_weight == pytest.approx(found.total_weight)


def test_only_the_groups_that_hold_the_rows_are_read(path, monkeypatch):
    source = source_of(ParquetTable(path, "late"))
    read, before = [], source.pieces._task
    monkeypatch.setattr(
        source.pieces, "_task", lambda reader, n: (read.append(n), before(reader, n))[1]
    )
    assert_array_equal(source.take(np.array([290, 3, 35])).X[:, 0], [290, 3, 35])
    assert read == [0, 1, 9]


@pytest.mark.parametrize("buffer", [40, 64, 10_000])
@pytest.mark.parametrize("kind", ["parquet", "batches"])
def test_batches_have_every_row_once_in_another_order(path, table, monkeypatch, buffer, kind):
    monkeypatch.setattr(rows, "BUFFER_ROWS", buffer)
    given = path if kind == "parquet" else table.to_batches(32)
    made = (ParquetTable if kind == "parquet" else ArrowTable)(
        given, "late", columns=["number", "wind"]
    )
    found = rows_of(source_of(made))
    epochs = []
    for seed in (0, 1):
        batches = list(found.batches(45, np.random.default_rng(seed)))
        assert [batch.n_rows for batch in batches] == [43] * 6 + [42]
        assert {b.chunk_rows for b in batches} == {43}
        for batch in batches:
            assert batch.n_rows * float(next(batch.chunks()).scale) == pytest.approx(N)
        X, _, _ = of_chunks([chunk for batch in batches for chunk in batch.chunks()])
        assert_array_equal(np.sort(X[:, 0]), np.arange(N))
        epochs.append(X[:, 0])
    assert np.abs(np.corrcoef(epochs)[0, 1]) < 0.5 if kind == "parquet" else True
    assert not np.array_equal(*epochs)
    again = list(found.batches(45, np.random.default_rng(1)))
    assert_array_equal(of_chunks([c for b in again for c in b.chunks()])[0][:, 0], epochs[1])


def test_a_fit_on_batches_learns_from_disk(path, arrays):
    clf = GPClassifier(
        inference=Natural("adam", batch_size=50), n_inducing=8, max_epochs=5, random_state=0
    )
    X, y, _ = arrays
    clf.fit(ParquetTable(path, "late", columns=["number", "wind"]))
    assert clf.score(pd.DataFrame(X, columns=["number", "wind"]), y) > 0.85


def test_blocks_are_cut_anew_without_losing_a_row():
    def blocks(sizes):
        first = 0
        for size in sizes:
            X = np.arange(first, first + size, dtype=float)[:, None]
            yield Block(X, np.zeros(size, np.int32), np.ones(size), X + 1)
            first += size

    for sizes in ([10], [3, 3, 3, 1], [1] * 10, [0, 10, 0], [7, 3]):
        found = list(rebatched(blocks(sizes), 4))
        assert [block.n_rows for block in found] == [4, 4, 2]
        assert_array_equal(np.concatenate([b.X for b in found])[:, 0], np.arange(10.0))
        assert_array_equal(np.concatenate([b.std for b in found])[:, 0], np.arange(1, 11.0))


def test_memory_does_not_grow_with_the_rows(tmp_path):
    script = Path(__file__).with_name("peak.py")
    printed = subprocess.check_output([sys.executable, script, tmp_path], text=True)
    few, many = map(int, printed.split())
    assert many < 1.5 * few  # of eight times as many rows


class Piece:
    """What can be counted while it is alive."""


def test_one_piece_is_read_ahead_in_a_thread_and_none_is_kept():
    alive, threads = weakref.WeakSet(), set()

    def task():
        threads.add(threading.current_thread())
        made = Piece()
        alive.add(made)
        return made

    count = 0
    for piece in prefetched(task for _ in range(6)):
        assert len(alive) <= 3
        del piece
        count += 1
    assert count == 6
    assert len(alive) == 0
    assert threading.current_thread() not in threads
    pieces = prefetched(task for _ in range(6))
    next(pieces)
    pieces.close()  # a pass that ends early leaves no thread behind
    assert not any(thread.is_alive() for thread in threads)


def test_what_goes_wrong_in_the_thread_is_heard_of():
    def wrong():
        raise ValueError("row group 3 cannot be read.")

    with pytest.raises(ValueError, match="row group 3"):
        list(prefetched([wrong]))
