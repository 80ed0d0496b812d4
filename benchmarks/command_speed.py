"""`gpclf predict` on a hundred thousand and a million rows: memory, and speed beside the library's.

The command goes from a file to a file: seconds and peak memory are of the whole process, with its
start. The library predicts the same rows from memory, in blocks of 50,000, after a first one that
is not counted. Both run by turns, and the fastest of each counts: other work on the machine only
slows. Asked of the larger table: at least half of the library's rows a second, and a peak at
most a quarter above that of the smaller one, since allocators fill their pools in the first blocks.
The share of work compares seconds of processors, the start of the command included: on a
busy machine it tells more than the share of speed.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# what is heavy is imported by child processes alone: a child's peak is at least its parent's size
CLASSES = ("blazar", "pulsar", "quasar")
DETECTORS = ("east", "north", "west")
FEATURES = 8
TRAINING_ROWS, BLOCK_ROWS = 5000, 50_000
LEAST_SHARE = 0.5  # of the library's rows a second
MOST_GROWTH = 0.25  # of the peak


class Run(NamedTuple):
    """One process: its seconds, those of its processors, and its peak in megabytes."""

    seconds: float
    work: float
    peak: float


def write_table(path: str, n_rows: int) -> None:
    """Numbers with a gap here and there, a word, an identifier and one of three classes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(n_rows)
    y = rng.integers(len(CLASSES), size=n_rows)
    X = rng.normal(size=(n_rows, FEATURES)) + 0.8 * (y[:, None] == np.arange(FEATURES) % 3)
    gaps = rng.random(X.shape) < 0.01
    columns = {"name": pa.array(np.arange(n_rows)).cast(pa.string())}
    columns |= {f"x{d}": pa.array(X[:, d].round(4), mask=gaps[:, d]) for d in range(FEATURES)}
    columns["detector"] = pa.array(np.array(DETECTORS)[rng.integers(3, size=n_rows)])
    table = pa.table({**columns, "class": pa.array(np.array(CLASSES)[y])})
    write = pa.csv.write_csv if path.endswith("csv") else pa.parquet.write_table
    write(table, path)


def predict(model: str, data: str, part: str, out: str) -> None:
    """The library alone; its seconds go into a file."""
    import pyarrow as pa

    from gpclf import GPClassifier
    from gpclf.cli.options import Reading
    from gpclf.cli.sources import source
    from gpclf.cli.tables import Layout, whole

    clf = GPClassifier.load(model)
    numbers = [(f"x{d}", "number") for d in range(FEATURES)]
    features = (*numbers, ("detector", "category"))
    X = whole(source(data, Reading()), Layout(features)).X
    X = pa.table({n: c.combine_chunks() for n, c in zip(X.column_names, X.columns, strict=True)})
    both = part == "uncertainty"
    call = clf.predict_log_proba_and_uncertainty if both else clf.predict_proba
    call(X.slice(0, BLOCK_ROWS))
    began, worked = time.perf_counter(), time.process_time()
    for first in range(0, X.num_rows, BLOCK_ROWS):
        call(X.slice(first, BLOCK_ROWS))
    Path(out).write_text(f"{time.perf_counter() - began} {time.process_time() - worked} 0")


def run(words: Sequence[str | Path]) -> Run:
    """A process to its end."""
    began = time.perf_counter()
    command = [sys.executable, *map(str, words)]
    _, status, usage = os.wait4(os.posix_spawn(command[0], command, os.environ), 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds = time.perf_counter() - began
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)  # kB on Linux


def of_library(model: Path, data: Path, part: str) -> Run:
    """The library, in a process of its own."""
    out = data.with_suffix(".seconds")
    run([__file__, "--child", "predict", model, data, part, out])
    return Run(*map(float, out.read_text().split()))


def measure(folder: Path, options: argparse.Namespace) -> int:
    """The table of figures; how many of them miss what is asked."""
    model, train = folder / "model.gpclf", folder / "train.parquet"
    run([__file__, "--child", "table", train, str(TRAINING_ROWS)])
    given = ("--label", "class", "--drop", "name", "--n-inducing", str(options.n_inducing))
    run(["-m", "gpclf", "fit", train, *given, "--max-epochs", "10", "-q", "-o", model])
    missed = 0
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'format':<8} {'written':<14} {'rows':>10} {'seconds':>8} {'rows/s':>8} {'library':>8} "
          f"{'share':>6} {'of work':>8} {'MB':>6} {'growth':>7}", flush=True)  # fmt: skip
    for kind in options.formats:
        for part in ("probabilities", "uncertainty"):
            peaks: list[float] = []
            share = 0.0
            for n_rows in options.rows:
                data = folder / f"{n_rows}.{kind}"
                if not data.exists():
                    run([__file__, "--child", "table", data, str(n_rows)])
                ours, theirs = turns(model, data, part, options.times)
                peaks.append(ours.peak)
                share = theirs.seconds / ours.seconds
                speed, own = n_rows / ours.seconds, n_rows / theirs.seconds
                print(f"{kind:<8} {part:<14} {n_rows:>10,} {ours.seconds:>8.1f} {speed:>8,.0f} "
                      f"{own:>8,.0f} {share:>6.2f} {theirs.work / ours.work:>8.2f} "
                      f"{ours.peak:>6,.0f} {peaks[-1] / peaks[0] - 1:>7.1%}",
                      flush=True)  # fmt: skip
            missed += share < LEAST_SHARE or peaks[-1] > (1 + MOST_GROWTH) * peaks[0]
    return int(missed > 0)


def turns(model: Path, data: Path, part: str, times: int) -> tuple[Run, Run]:
    """The command and the library, each at its best."""
    words = [] if part == "uncertainty" else ["--no-uncertainty"]
    command = ["-m", "gpclf", "predict", model, data, "-qo", data.with_stem("out"), *words]
    both = [(of_library(model, data, part), run(command)) for _ in range(times)]
    theirs, ours = (Run(*map(min, zip(*runs, strict=True))) for runs in zip(*both, strict=True))
    return ours, theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs=2, default=[100_000, 1_000_000])
    parser.add_argument("--n-inducing", type=int, default=200)
    parser.add_argument("--formats", nargs="+", choices=["csv", "parquet"], default=["csv"])
    parser.add_argument("--times", type=int, default=2, help="turns of command and library")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        what, *words = options.child
        if what == "table":
            write_table(words[0], int(words[1]))
        else:
            predict(*words)
        return 0
    with tempfile.TemporaryDirectory() as name:
        return measure(Path(name), options)


if __name__ == "__main__":
    sys.exit(main())
