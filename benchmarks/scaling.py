"""Time of an epoch and memory as the rows double, 20,000 to 1,280,000 rows of airline-us.

Each number of rows in a process of its own: stochastic natural steps, four epochs, 200 inducing
points, kernel held. The time is that of the fastest epoch but the first: other work on the machine
only slows. Memory is the peak of the process less what X and y take.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from datasets import add_data_option, load

EPOCHS = 4
TIME_SLACK = 0.15  # of the ratio 2
MEMORY_SLACK = 0.15  # of the memory beyond the data, first to last


def child(path: str) -> None:
    """Fit the rows of a folder; print the seconds of an epoch and megabytes beyond the data."""
    from gpclf import GPClassifier
    from gpclf.inference.engines import Natural

    X, y = np.load(Path(path) / "X.npy"), np.load(Path(path) / "y.npy")
    engine = Natural(optimizer=None, batch_size=1024)
    clf = GPClassifier(n_inducing=200, inference=engine, max_epochs=EPOCHS, random_state=0)
    clf.fit(X, y)
    ends = clf.history_["seconds"].reshape(EPOCHS, -1)[:, -1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KB on Linux
    print(np.min(np.diff(ends)), peak - (X.nbytes + y.nbytes) / 2**20)


def measure(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        command = [sys.executable, __file__, "--child", folder]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--set", default="airline-us")
    parser.add_argument("--first", type=int, default=20_000, help="rows")
    parser.add_argument("--doublings", type=int, default=6)
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    X, y = load(options.set, options.data)
    order = np.random.default_rng(0).permutation(len(y))
    print("      rows  s per epoch  ratio  MB beyond the data", flush=True)
    times, memories = [], []
    for doubling in range(options.doublings + 1):
        rows = np.sort(order[: options.first * 2**doubling])
        seconds, memory = measure(X[rows], y[rows])
        ratio = f"{seconds / times[-1]:6.2f}" if times else " " * 6
        times.append(seconds)
        memories.append(memory)
        print(f"{len(rows):10,} {seconds:12.3f} {ratio} {memory:19.0f}", flush=True)
    ratios = np.array(times[1:]) / np.array(times[:-1])
    growth = memories[-1] / memories[0] - 1
    linear = bool(np.all(np.abs(ratios / 2 - 1) <= TIME_SLACK))
    flat = growth <= MEMORY_SLACK
    print(f"time doubles within 15 %: {'yes' if linear else 'no'}")
    print(f"memory beyond the data grows by {100 * growth:.0f} %: {'yes' if flat else 'no'}")
    return 0 if linear and flat else 1


if __name__ == "__main__":
    sys.exit(main())
