"""Fit GPClassifier with its defaults to benchmark sets; compare test NLL with targets.

With `--likelihoods` a table of mean NLL and accuracy instead, one column for each.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import mean

import numpy as np

from datasets import add_data_option, find, split
from gpclf import GPClassifier
from gpclf.likelihoods import NAMES, likelihood_from
from gpclf.report.metrics import scores
from racer import count_or_auto

# Mean test NLL that is asked for, with 200 inducing points.
TARGETS = {
    "magic": 0.300,
    "statlog-landsat": 0.265,
    "pendigits": 0.060,
    "letter": 0.25,
    "waveform-noise": 0.33,
}
RESULTS = Path(__file__).parent / "results" / "accuracy.jsonl"


LIKELIHOOD_SETS = [
    "statlog-landsat", "waveform-noise", "letter", "pendigits", "page-blocks",
    "wine-quality-white", "adult", "magic", "ringnorm", "twonorm", "mushroom",
]  # fmt: skip


def evaluate(name: str, seed: int, likelihood: str, options: argparse.Namespace) -> dict:
    """Fit one split; the seconds are those of fit, compilation included."""
    rows = split(name, seed, folder=options.data, openml=options.openml)
    classifier = GPClassifier(
        likelihood,
        n_inducing=options.n_inducing,
        max_epochs=options.max_epochs,
        random_state=seed,
    )
    start = time.perf_counter()
    classifier.fit(rows.X_train, rows.y_train)
    seconds = time.perf_counter() - start
    unseen = np.setdiff1d(rows.y_test, classifier.classes_)
    if len(unseen):
        raise SystemExit(f"{name}, seed {seed}: class {unseen[0]} has no training row.")
    y_index = np.searchsorted(classifier.classes_, rows.y_test)
    figures = asdict(scores(classifier.predict_log_proba(rows.X_test), y_index))
    return {"set": name, "seed": seed, "likelihood": likelihood, **figures, "seconds": seconds}


def suits(likelihood: str, name: str, options: argparse.Namespace) -> bool:
    """Whether a likelihood can model as many classes as the set has."""
    n_classes = len(np.unique(split(name, 0, folder=options.data, openml=options.openml).y_train))
    try:
        likelihood_from(likelihood, n_classes)
    except ValueError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--n-inducing", type=int, default=200)
    parser.add_argument("--max-epochs", type=count_or_auto, default="auto")
    parser.add_argument(
        "--likelihoods", nargs="+", default=["auto"], help='names, or "all": a column for each'
    )
    options = parser.parse_args()
    likelihoods = list(NAMES) if options.likelihoods == ["all"] else options.likelihoods
    sets = options.sets or (list(TARGETS) if likelihoods == ["auto"] else LIKELIHOOD_SETS)
    for name in sets:
        find(name, options.data, options.openml)

    RESULTS.parent.mkdir(exist_ok=True)
    results = []
    print(
        f"{'set':<20} {'likelihood':<27} {'seed':>4} {'NLL':>7} {'accuracy':>8} {'Brier':>7} "
        f"{'ECE':>7} {'seconds':>8}"
    )
    for name in sets:
        for likelihood in (each for each in likelihoods if suits(each, name, options)):
            for seed in options.seeds:
                result = evaluate(name, seed, likelihood, options)
                results.append(result)
                print(
                    f"{name:<20} {likelihood:<27} {seed:>4} {result['nll']:>7.4f} "
                    f"{result['accuracy']:>8.4f} {result['brier']:>7.4f} {result['ece']:>7.4f} "
                    f"{result['seconds']:>8.1f}",
                    flush=True,
                )
                when = time.strftime("%Y-%m-%dT%H:%M:%S")
                chosen = {"n_inducing": options.n_inducing, "max_epochs": options.max_epochs}
                record = {"when": when, **chosen, **result}
                with RESULTS.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    if likelihoods != ["auto"]:
        return table(results, likelihoods)
    return summary(results)


def table(results: list[dict], likelihoods: list[str]) -> int:
    """Print mean NLL and accuracy, one column per likelihood; 1 if a cell is not a number."""
    broken = 0
    for figure, digits in (("nll", 3), ("accuracy", 3)):
        print(f"\nmean {figure}\n\n| set | " + " | ".join(likelihoods) + " |")
        print("| --- |" + " ---: |" * len(likelihoods))
        for name in dict.fromkeys(result["set"] for result in results):
            cells = []
            for likelihood in likelihoods:
                values = [
                    result[figure]
                    for result in results
                    if result["set"] == name and result["likelihood"] == likelihood
                ]
                broken += not np.all(np.isfinite(values))
                cells.append(f"{mean(values):.{digits}f}" if values else "")
            print(f"| {name} | " + " | ".join(cells) + " |")
    return int(broken > 0)


def summary(results: list[dict]) -> int:
    """Print the table of means; 1 if a target is missed."""
    missed = 0
    print(f"\n{'set':<20} {'NLL':>7} {'accuracy':>8} {'target':>7}")
    for name in dict.fromkeys(result["set"] for result in results):
        of_set = [result for result in results if result["set"] == name]
        nll, target = mean(result["nll"] for result in of_set), TARGETS.get(name)
        line = f"{name:<20} {nll:>7.4f} {mean(result['accuracy'] for result in of_set):>8.4f}"
        if target is not None:
            met = nll <= target
            missed += not met
            line += f" {target:>7.3f}  {'met' if met else 'not met'}"
        print(line)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
