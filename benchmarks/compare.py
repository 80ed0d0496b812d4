"""Compare gpclf, all defaults, with boosting, forest and logistic regression on many sets.

Prints a line per fit, then tables of mean NLL and calibration error. benchmarks/README.md says how
each method is configured.
"""

import os

# Threads that spin while they wait make boosting far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import mean

import numpy as np
from scipy.stats import rankdata

import classifiers
from datasets import add_data_option, find, split, standardised
from figures import figures
from gpclf import GPClassifier

SETS = [
    "magic", "adult", "statlog-landsat", "letter", "pendigits", "waveform-noise", "page-blocks",
    "wine-quality-white", "ringnorm", "twonorm", "mushroom", "banana", "segment", "vehicle",
    "glass", "wine", "new-thyroid", "svmguide2", "vowel", "waveform-1000", "fermi-4fgl",
    "raetsch-heart", "raetsch-german", "raetsch-diabetes", "raetsch-image", "thyroid",
    "wall-following", "sensorless-2200", "dna",
]  # fmt: skip
METHODS = {
    "gpclf": lambda X, seed: GPClassifier(random_state=seed),
    **{name: make for name, make in classifiers.METHODS.items() if name != "gp"},
}
RESULTS = Path(__file__).parent / "results" / "compare.jsonl"


def evaluate(name: str, seed: int, method: str, options: argparse.Namespace) -> dict:
    """Fit one method to one split; the seconds are those of the fit."""
    rows = split(name, seed, folder=options.data, openml=options.openml)
    X, y = rows.X_train[: options.rows], rows.y_train[: options.rows]
    X, X_test = standardised(X, rows.X_test)
    n_classes = int(max(rows.y_train.max(), rows.y_test.max())) + 1
    start = time.perf_counter()
    log_probabilities = classifiers.learn(METHODS[method](X, seed), X, y, n_classes)
    seconds = time.perf_counter() - start
    return {
        "set": name,
        "seed": seed,
        "method": method,
        "rows": options.rows,
        **figures(log_probabilities(X_test), rows.y_test),
        "seconds": seconds,
    }


def key(result: dict) -> tuple:
    """What a fit is of: the same key, the same fit."""
    return result["set"], result["seed"], result["method"], result["rows"]


def earlier() -> dict[tuple, dict]:
    """The fits in the file, by what they are of; the last one counts."""
    if not RESULTS.is_file():
        return {}
    results = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {key(result): result for result in results}


def show(result: dict) -> None:
    print(
        f"{result['set']:<19} {result['seed']:>4} {result['method']:<20} {result['nll']:>8.4f} "
        f"{result['accuracy']:>8.4f} {result['brier']:>7.4f} {result['ece']:>7.4f} "
        f"{result['seconds']:>8.1f}",
        flush=True,
    )


def means(results: list[dict], figure: str) -> dict[str, dict[str, float]]:
    """By set and method, over the seeds."""
    table: dict[str, dict[str, list[float]]] = {}
    for result in results:
        of_set = table.setdefault(result["set"], {})
        of_set.setdefault(result["method"], []).append(result[figure])
    return {
        name: {method: mean(values) for method, values in of_set.items()}
        for name, of_set in table.items()
    }


def print_table(title: str, table: dict[str, dict[str, float]], methods: list[str]) -> None:
    print(f"\n{title}\n\n| set | " + " | ".join(methods) + " |")
    print("| --- |" + " ---: |" * len(methods))
    for name, of_set in table.items():
        print(f"| {name} | " + " | ".join(f"{of_set[method]:.4f}" for method in methods) + " |")


def print_ranks(table: dict[str, dict[str, float]], methods: list[str]) -> None:
    """Of each method the mean over the sets of its rank, 1 for the lowest NLL of a set."""
    ranks = [rankdata([of_set[method] for method in methods]) for of_set in table.values()]
    print(f"\nmean NLL rank over {len(table)} sets\n")
    for rank, method in sorted(zip(np.mean(ranks, axis=0), methods, strict=True)):
        print(f"{method:<20} {rank:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--rows", type=int, help="train on the first so many rows only")
    parser.add_argument(
        "--resume", action="store_true", help="skip fits that the results file already holds"
    )
    options = parser.parse_args()
    for name in options.sets:
        find(name, options.data, options.openml)
    RESULTS.parent.mkdir(exist_ok=True)
    known = earlier() if options.resume else {}
    results = []
    print(
        f"{'set':<19} {'seed':>4} {'method':<20} {'NLL':>8} {'accuracy':>8} {'Brier':>7} "
        f"{'ECE':>7} {'seconds':>8}"
    )
    for name in options.sets:
        for seed in options.seeds:
            for method in options.methods:
                result = known.get((name, seed, method, options.rows))
                if result is None:
                    result = evaluate(name, seed, method, options)
                    record = {"when": time.strftime("%Y-%m-%dT%H:%M:%S"), **result}
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                    show(result)
                results.append(result)
    nll = means(results, "nll")
    print_table("mean NLL", nll, options.methods)
    print_table("mean ECE", means(results, "ece"), options.methods)
    print_ranks(nll, options.methods)


if __name__ == "__main__":
    sys.exit(main())
