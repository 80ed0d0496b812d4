"""Bytes that passes over a small and a large table need at most: run in a process of its own.

In that of the tests every call is checked, and what checks it keeps arrays for a while.
"""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gpclf import ParquetTable
from gpclf.data import Scaling, survey
from gpclf.data.sources import first_pass, rows

GROUP_ROWS = 5000


def written(path, n_rows):
    rng = np.random.default_rng(0)
    with pyarrow.parquet.ParquetWriter(path, pa.schema([("x", "f4"), ("late", "i1")])) as writer:
        for _ in range(n_rows // GROUP_ROWS):
            x = rng.normal(size=GROUP_ROWS).astype("f4")
            writer.write_table(pa.table({"x": x, "late": (x > 0).astype("i1")}))
    return path


def peak(path):
    """NumPy's and Arrow's, in a first pass, a pass, a sample and an epoch of batches."""
    rng, arrow = np.random.default_rng(0), 0
    pool, before = pa.default_memory_pool(), pa.total_allocated_bytes()
    tracemalloc.start()
    source, _ = first_pass(ParquetTable(path, "late"), "from_dtype", None)
    scaling = Scaling.found(source.found, np.zeros(1, int), "robust")
    found = source.rows(scaling, np.float32, False).in_chunks(2000)
    for _ in found.chunks():
        arrow = max(arrow, pool.bytes_allocated() - before)
    found.sample(500, rng)
    for _ in found.batches(1000, rng):
        arrow = max(arrow, pool.bytes_allocated() - before)
    most = tracemalloc.get_traced_memory()[1] + arrow
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    survey.Drawing.__init__.__defaults__ = (4000,)
    rows.BUFFER_ROWS = 10_000
    paths = [written(Path(sys.argv[1], f"{n}.parquet"), n) for n in (20_000, 160_000)]
    peak(paths[0])  # what is imported and made only once
    print(*map(peak, paths))
