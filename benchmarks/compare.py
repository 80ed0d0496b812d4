"""Compare gpclf with other classifiers, defaults against defaults, on many sets.

Prints a line per fit, then tables of means, ranks with intervals, and pairs by split; with
`--picture` a critical-difference picture of ranks. benchmarks/README.md says how each method is
configured, and which splits defaults were chosen on.
"""

import os

# Threads that spin while they wait make boosting far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np
from scipy.stats import rankdata, studentized_range

import classifiers
from datasets import add_data_option, find, split, standardised
from figures import figures
from gpclf import GPClassifier
from kept import FOLDER, Kept

SETS = [
    "magic", "adult", "statlog-landsat", "letter", "pendigits", "waveform-noise", "page-blocks",
    "wine-quality-white", "ringnorm", "twonorm", "mushroom", "banana", "segment", "vehicle",
    "glass", "wine", "new-thyroid", "svmguide2", "vowel", "waveform-1000", "fermi-4fgl",
    "raetsch-heart", "raetsch-german", "raetsch-diabetes", "raetsch-image", "thyroid",
    "wall-following", "sensorless-2200", "dna", "digits", "breast-cancer", "raetsch-cancer",
    "raetsch-flare-solar", "nursery",
]  # fmt: skip
METHODS = {
    "gpclf": lambda X, seed: GPClassifier(random_state=seed),
    "gpclf-natural": lambda X, seed: GPClassifier(random_state=seed, inference="natural"),
    **classifiers.METHODS,
}
DEFAULT = [
    name
    for name in METHODS
    if name not in ("gp", "gpclf-natural", *classifiers.OTHERS) or find_spec(name)
]
FIGURES = {"nll": "NLL", "brier": "Brier", "error": "error", "ece": "ECE"}
BOOTSTRAP = 2000


def rows_of(name: str, seed: int, options: argparse.Namespace):
    """A split; two sets come with scikit-learn."""
    if name in ("digits", "breast-cancer"):
        from sklearn import datasets

        load = {"digits": datasets.load_digits, "breast-cancer": datasets.load_breast_cancer}[name]
        X, y = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [round(0.1 * len(y))])
        return X[train], y[train], X[test], y[test]
    return tuple(split(name, seed, folder=options.data, openml=options.openml))


def evaluate(name: str, seed: int, method: str, n_rows: int | None, options) -> dict:
    """Fit one method to one split; the seconds are those of the fit, and of the prediction."""
    X, y, X_test, y_test = rows_of(name, seed, options)
    n_classes = int(max(y.max(), y_test.max())) + 1
    X, y = X[:n_rows], y[:n_rows]
    X, X_test = standardised(X, X_test)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of others, of classes with few rows
        log_probabilities = classifiers.learn(METHODS[method](X, seed), X, y, n_classes)
        fitted = time.perf_counter()
        found = figures(log_probabilities(X_test), y_test)
    done = time.perf_counter()
    error = 1 - found.pop("accuracy")
    return {**found, "error": error, "seconds": fitted - start, "predicted": done - fitted}


def show(about: dict, result: dict) -> None:
    rows = "all" if about["rows"] is None else about["rows"]
    print(
        f"{about['set']:<19} {about['seed']:>4} {rows:>6} {about['method']:<20} "
        f"{result['nll']:>8.4f} {result['error']:>7.4f} {result['brier']:>7.4f} "
        f"{result['ece']:>7.4f} {result['seconds']:>8.1f} {result['predicted']:>8.2f}",
        flush=True,
    )


Table = dict[str, dict[str, list[float]]]  # by set and method, over the seeds


def print_table(title: str, table: Table, methods: list[str]) -> None:
    print(f"\nmean {title}\n\n| set | " + " | ".join(methods) + " |")
    print("| --- |" + " ---: |" * len(methods))
    for name, of_set in table.items():
        cells = " | ".join(f"{mean(of_set[method]):.4f}" for method in methods)
        print(f"| {name} | {cells} |")


def ranks_of(table: Table, methods: list[str]) -> np.ndarray:
    """Of each set and method, by the mean over seeds; 1 for the lowest."""
    return np.array(
        [rankdata([mean(of_set[method]) for method in methods]) for of_set in table.values()]
    )


def interval(values: np.ndarray) -> tuple[float, float]:
    """Of a mean over sets, 95 %, by drawing sets."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(0, len(values), (BOOTSTRAP, len(values)))].mean(axis=1)
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def print_ranks(title: str, ranks: np.ndarray, methods: list[str]) -> None:
    """Mean ranks with intervals."""
    print(f"\nmean rank by {title} over {len(ranks)} sets, 95 % interval over sets\n")
    for place in np.argsort(ranks.mean(axis=0)):
        low, high = interval(ranks[:, place])
        print(f"{methods[place]:<20} {ranks[:, place].mean():5.2f}  [{low:.2f}, {high:.2f}]")


def print_pairs(table: Table, methods: list[str]) -> None:
    """The ratio of our NLL to each other's, paired by split."""
    print(
        "\nours to theirs, NLL: geometric mean over sets of the ratio, and sets where it is lower\n"
    )
    for method in methods[1:]:
        pairs = [(mean(of_set[methods[0]]), mean(of_set[method])) for of_set in table.values()]
        logs = np.array([np.log(ours / theirs) for ours, theirs in pairs])
        low, high = np.exp(interval(logs))
        lower = int(np.sum(logs < 0))
        print(
            f"{method:<20} {np.exp(logs.mean()):5.3f}  [{low:.3f}, {high:.3f}]  "
            f"{lower} of {len(logs)}"
        )


def picture(path: Path, ranks: np.ndarray, methods: list[str]) -> None:
    """Mean ranks on a line; a bar joins ours and those it does not differ from (Nemenyi, 5 %)."""
    from matplotlib.figure import Figure

    n_sets, count = ranks.shape
    critical = studentized_range.ppf(0.95, count, np.inf) / np.sqrt(2)
    critical *= np.sqrt(count * (count + 1) / (6 * n_sets))
    means = ranks.mean(axis=0)
    order = np.argsort(means)
    figure = Figure(figsize=(7, 0.35 * count + 1.2))
    axes = figure.subplots()
    axes.plot(means[order], np.arange(count), "o", color="C0")
    for height, place in enumerate(order):
        axes.annotate(
            f"  {methods[place]}  {means[place]:.2f}", (means[place], height), va="center"
        )
    axes.plot([means[order[0]], means[order[0]] + critical], [-0.6, -0.6], color="C3", lw=3)
    axes.set_title(f"Mean rank by log-loss over {n_sets} sets; red: critical difference")
    axes.set_xlim(0.5, count + 2.5)
    axes.set_ylim(count - 0.5, -1)
    axes.set_yticks([])
    axes.set_xlabel("rank, 1 is best")
    figure.savefig(path, bbox_inches="tight")
    print(f"\n{path} written: a critical difference of {critical:.2f}")


def report(kept: dict[tuple, dict], n_rows: int | None, options: argparse.Namespace) -> None:
    """All tables for so many training rows."""
    methods, tables = options.methods, {}
    for figure in (*FIGURES, "seconds", "predicted"):
        table: Table = {}
        for name in options.sets:
            of_set = {
                method: [
                    kept[name, seed, method, n_rows][figure]
                    for seed in options.seeds
                    if (name, seed, method, n_rows) in kept
                ]
                for method in methods
            }
            if all(of_set.values()):
                table[name] = of_set
        tables[figure] = table
    if not tables["nll"]:
        return
    print(f"\n# trained on {'all rows' if n_rows is None else f'{n_rows} rows'}")
    for figure, title in FIGURES.items():
        print_table(title, tables[figure], methods)
    for figure in ("nll", "brier", "error"):
        print_ranks(FIGURES[figure], ranks_of(tables[figure], methods), methods)
    print("\nmean ECE, and seconds of a fit and of its predictions (geometric mean over sets)\n")
    for method in methods:
        eces = [mean(of_set[method]) for of_set in tables["ece"].values()]
        seconds = [
            geometric_mean(max(1e-3, mean(of_set[method])) for of_set in tables[part].values())
            for part in ("seconds", "predicted")
        ]
        print(f"{method:<20} {mean(eces):.4f}  {seconds[0]:8.2f} {seconds[1]:8.3f}")
    print_pairs(tables["nll"], methods)
    if options.picture:
        picture(options.picture, ranks_of(tables["nll"], methods), methods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT)
    parser.add_argument("--rows", nargs="+", type=int, help="train on the first so many rows only")
    parser.add_argument("--results", type=Path, default=FOLDER / "compare.jsonl")
    parser.add_argument("--picture", type=Path, help="write ranks as a picture")
    parser.add_argument(
        "--resume", action="store_true", help="skip fits that the results file already holds"
    )
    options = parser.parse_args()
    for name in options.sets:
        if name not in ("digits", "breast-cancer"):
            find(name, options.data, options.openml)
    kept, results = Kept(options.results, options.resume), {}
    print(
        f"{'set':<19} {'seed':>4} {'rows':>6} {'method':<20} {'NLL':>8} {'error':>7} {'Brier':>7} "
        f"{'ECE':>7} {'fit s':>8} {'predict':>8}"
    )
    for n_rows in options.rows or [None]:
        for name in options.sets:
            for seed in options.seeds:
                for method in options.methods:
                    about = {"set": name, "seed": seed, "method": method, "rows": n_rows}
                    key = (name, seed, method, n_rows)
                    known = kept.find(about) is not None
                    results[key] = kept.get(about, lambda k=key: evaluate(*k, options))
                    if not known:
                        show(about, results[key])
    for n_rows in options.rows or [None]:
        report(results, n_rows, options)


if __name__ == "__main__":
    sys.exit(main())
