"""Rows predicted a second, and the milliseconds of one row, by gpclf and by GPflow, M = 200.

Run under gpclf's Python; GPflow's part runs under its own (`--gpflow-python`). Both predict the
same 20,000 rows: gpclf after a short fit, GPflow with its first q, whose cost is the same. GPflow
predicts in batches of 2,000 and all at once, compiled; the faster one counts.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from datasets import add_data_option
from racer import Race

SETS = {"magic": 2, "pendigits": 10}
ROWS = 20_000
N_INDUCING = 200
SECONDS = 3.0  # of calls
RATIO_TARGET = 5.0
LATENCY_TARGET = 2.0  # milliseconds


def best(call: Callable[[], object]) -> float:
    """The shortest call after a first one, of at least five and of all that begin in time.

    As long for the slow as for the fast: on a shared machine a longer look finds a quieter moment.
    """
    call()
    shortest, calls, end = np.inf, 0, time.perf_counter() + SECONDS
    while calls < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest, calls = min(shortest, time.perf_counter() - start), calls + 1
    return shortest


def measure(predict: Callable[[np.ndarray], np.ndarray], X: np.ndarray, batches: list[int]) -> dict:
    """Rows a second in the best of these batch sizes, and milliseconds of one row."""

    def all_rows(size: int) -> Callable[[], object]:
        return lambda: [predict(X[first : first + size]) for first in range(0, len(X), size)]

    seconds = min(best(all_rows(size)) for size in batches)
    return {"rows": len(X) / seconds, "one": best(lambda: predict(X[:1])) * 1e3}


def race_of(name: str, options: argparse.Namespace) -> tuple[Race, np.ndarray]:
    race = Race(
        argparse.Namespace(
            set=name, seed=0, data=options.data, openml=options.openml, n_inducing=N_INDUCING
        )
    )
    return race, np.resize(race.X_train, (ROWS, race.X_train.shape[1]))


def of_gpclf(name: str, options: argparse.Namespace) -> dict:
    from gpclf import GPClassifier

    race, X = race_of(name, options)
    classifier = GPClassifier(kernel="rbf", n_inducing=N_INDUCING, max_epochs=10, random_state=0)
    classifier.fit(race.X_train[:4000], race.y_train[:4000])
    return measure(classifier.predict_proba, X, [ROWS])


def of_gpflow(name: str, options: argparse.Namespace) -> dict:
    from rival_gpflow import make_log_probabilities, make_model

    race, X = race_of(name, options)
    return measure(make_log_probabilities(make_model(race), race.n_classes), X, [2000, ROWS])


def under(python: str, name: str, options: argparse.Namespace) -> dict:
    """GPflow's figures, from a process of its own Python."""
    command = [python, __file__, "--part", "gpflow", "--sets", name]
    command += ["--data", options.data] if options.data else []
    command += ["--openml"] if options.openml else []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"GPflow's part failed: {(done.stderr.splitlines() or ['?'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    here = Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--gpflow-python", default=str(here / ".venv-gpflow" / "bin" / "python"))
    parser.add_argument("--part", choices=["gpflow"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(of_gpflow(options.sets[0], options)))
        return 0
    missed = 0
    print(f"{'set':<12} {'gpclf rows/s':>13} {'GPflow rows/s':>14} {'ratio':>6} "
          f"{'gpclf 1 row, ms':>16} {'GPflow':>7}")  # fmt: skip
    for name in options.sets:
        ours, rival = of_gpclf(name, options), under(options.gpflow_python, name, options)
        ratio = ours["rows"] / rival["rows"]
        missed += ratio < RATIO_TARGET or ours["one"] > LATENCY_TARGET
        print(f"{name:<12} {ours['rows']:>13,.0f} {rival['rows']:>14,.0f} {ratio:>6.1f} "
              f"{ours['one']:>16.2f} {rival['one']:>7.2f}", flush=True)  # fmt: skip
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
