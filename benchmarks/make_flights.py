"""A large table of flights in Parquet: blocks of airline-us, drawn again, beside known noise.

A tenth of the flights, up to 50,000, are a test table; the others are the source of the training
rows. These are drawn in blocks of consecutive flights, with replacement, so that any number of rows
can be made. Each has the 8 columns of airline-us and as many of N(0, 1) as make 20, which say
nothing of the label `late`: 3 classes.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from datasets import add_data_option, find

BLOCK_ROWS = 1000  # consecutive flights that are drawn together
GROUP_ROWS = 2**16
FILE_ROWS = 2_500_000
COLUMNS = 20
TEST_ROWS = 50_000
LABEL = "late"


class Flights:
    """The rows of airline-us, those of the test apart."""

    def __init__(self, folder: str | None, seed: int):
        path = find("airline-us", folder)
        assert path is not None
        with np.load(path, allow_pickle=False) as arrays:
            self.X, self.y = arrays["X"], arrays["y"].astype(np.int8)
            self.names = [str(name) for name in arrays["feature_names"]]
        self.rng = np.random.default_rng(seed)
        apart = np.zeros(len(self.y), bool)
        count = min(TEST_ROWS, len(self.y) // 10)
        apart[self.rng.choice(len(self.y), count, replace=False)] = True
        self.test, self.source = np.flatnonzero(apart), np.flatnonzero(~apart)

    def table(self, rows: np.ndarray) -> pa.Table:
        """Some flights, with noise beside them."""
        columns = dict(zip(self.names, self.X[rows].T, strict=True))
        for number in range(COLUMNS - len(self.names)):
            columns[f"noise_{number:02}"] = self.rng.standard_normal(len(rows), np.float32)
        return pa.table({**columns, LABEL: self.y[rows]})

    def group(self, count: int) -> pa.Table:
        """Blocks of training flights, drawn anew."""
        blocks = -(-count // BLOCK_ROWS)
        first = self.rng.integers(0, len(self.source) - BLOCK_ROWS, blocks)
        places = (first[:, None] + np.arange(BLOCK_ROWS)).ravel()[:count]
        return self.table(self.source[places])


def make(folder: Path, n_rows: int, data: str | None, seed: int = 0) -> tuple[Path, Path]:
    """The folder of training files and the file of test rows; nothing is done if they are there."""
    training, test = folder / f"flights-{n_rows}", folder / f"flights-{n_rows}-test.parquet"
    if test.exists():
        return training, test
    training.mkdir(parents=True, exist_ok=True)
    flights = Flights(data, seed)
    last = flights.table(flights.test)
    for number, first in enumerate(range(0, n_rows, FILE_ROWS)):
        end = min(first + FILE_ROWS, n_rows)
        with ParquetWriter(training / f"part-{number:03}.parquet", last.schema) as writer:
            for at in range(first, end, GROUP_ROWS):
                writer.write_table(flights.group(min(GROUP_ROWS, end - at)))
    with ParquetWriter(test, last.schema) as writer:
        writer.write_table(last)
    return training, test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--folder", type=Path, default=Path("build/flights"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for n_rows in options.rows:
        training, test = make(options.folder, n_rows, options.data, options.seed)
        size = sum(path.stat().st_size for path in training.iterdir())
        print(f"{training}: {n_rows:,} rows, {size / 2**20:,.0f} MB; test rows in {test}")


if __name__ == "__main__":
    main()
