"""Compare gpclf with other classifiers, defaults against defaults, on many sets.

Prints a line per fit, then tables of means, ranks with intervals, and pairs by split; with
`--picture` critical-difference pictures of ranks. benchmarks/README.md says how each method is
configured, and which splits defaults were chosen on.
"""

import os

# Threads that spin while they wait make boosting far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import sys
import time
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import classifiers
import outsiders
import sets
from datasets import add_data_option
from figures import figures
from kept import FOLDER, Kept
from limited import Limited
from summary import Key, Results, ranks_of, report


def gpclf(X: Any, seed: int, **options: Any) -> Any:
    from gpclf import GPClassifier

    return GPClassifier(random_state=seed, **options)


METHODS = {
    "gpclf": gpclf,
    "gpclf-natural": lambda X, seed: gpclf(X, seed, inference="natural"),
    **{name: make for name, make in classifiers.METHODS.items() if name != "gp"},
    "sklearn-gp": classifiers.gp,
}
ALL = [*METHODS, *outsiders.ENVIRONMENTS]
BY_HAND = ("gpclf-natural", "sklearn-gp", *outsiders.ENVIRONMENTS)
DEFAULT = [
    name
    for name in ALL
    if name not in (*BY_HAND, *classifiers.OTHERS) or (name not in BY_HAND and find_spec(name))
]
TAKE_FRAMES = ("gpclf", "gpclf-natural", "boosting", "boosting-calibrated", *classifiers.OTHERS)


def rows_of(key: Key, source: sets.Source) -> sets.Rows:
    name, seed, method, n_rows = key
    rows = sets.split(name, seed, source).first(n_rows).known()
    return rows.first(classifiers.GP_ROWS) if method == "sklearn-gp" else rows


class Told(NamedTuple):
    """What a method makes of the test rows, whose labels it is not given."""

    log_p: np.ndarray
    fitted: float  # seconds
    predicted: float


def tell(method: str, seed: int, rows: sets.Rows, n_classes: int) -> Told:
    """Fit one method, in this process."""
    rows = rows._replace(y_test=np.empty(0, int))
    X, X_test = sets.frames(rows) if method in TAKE_FRAMES else sets.one_hot(rows)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of others, of classes with few rows
        log_probabilities = classifiers.learn(METHODS[method](X, seed), X, rows.y, n_classes)
        fitted = time.perf_counter()
        log_p = log_probabilities(X_test)
    return Told(log_p, fitted - start, time.perf_counter() - fitted)


def evaluate(key: Key, source: sets.Source) -> dict[str, Any]:
    """The scores of one method on one split."""
    _, seed, method, _ = key
    rows = rows_of(key, source)
    n_classes = int(max(rows.y.max(), rows.y_test.max())) + 1
    told = tell(method, seed, rows, n_classes)
    package = method if method in classifiers.OTHERS else "scikit-learn"
    package = "gpclf" if method.startswith("gpclf") else package
    return {
        **scores(told.log_p, rows),
        "seconds": told.fitted,
        "predicted": told.predicted,
        "version": f"{package} {version(package)}",
    }


def evaluate_outside(
    key: Key, source: sets.Source, python: Path, limit: float | None
) -> dict[str, Any]:
    """Fit one method to one split by a Python of its own."""
    rows = rows_of(key, source)
    seen, index = np.unique(rows.y, return_inverse=True)
    found = outsiders.fit(python, key[2], key[1], rows._replace(y=index), limit)
    if "failed" in found:
        return found
    of_seen = found.pop("log_p")
    log_p = np.full((len(of_seen), int(max(rows.y.max(), rows.y_test.max())) + 1), -np.inf)
    log_p[:, seen] = of_seen
    return {**scores(log_p, rows), **found}


def scores(log_p: np.ndarray, rows: sets.Rows) -> dict[str, Any]:
    found = figures(log_p, rows.y_test)
    error = 1 - found.pop("accuracy")
    failed = {} if isfinite(found["nll"]) else {"failed": "probabilities are not numbers"}
    return {**found, "error": error, "trained": len(rows.y), "tested": len(rows.y_test), **failed}


class Fits:
    """Every fit that is asked for: from the results file, or done now and written there."""

    def __init__(self, options: argparse.Namespace, source: sets.Source):
        self.options, self.source = options, source
        self.kept = Kept(options.results, options.resume or options.report)
        if options.retry:
            self.kept.forget(lambda record: "failed" in record)
        self.inside = Limited(evaluate)

    def get(self, key: Key) -> dict[str, Any] | None:
        about = dict(zip(("set", "seed", "method", "rows"), key, strict=True))
        found = self.kept.find(about)
        if found is None and not self.options.report:
            found = self.kept.get(about, lambda: self.run(key))
            show(key, found)
        return found

    def run(self, key: Key) -> dict[str, Any]:
        load, limit = os.getloadavg()[0], self.options.time_limit
        if key[2] in outsiders.ENVIRONMENTS:
            python = outsiders.python_of(key[2], self.options)
            found = evaluate_outside(key, self.source, python, limit)
        else:
            found = self.inside(key, self.source, limit=limit)
        return {**found, "load": load}


def show(key: Key, result: dict[str, Any]) -> None:
    name, seed, method, n_rows = key
    begin = f"{name:<19} {seed:>4} {'all' if n_rows is None else n_rows:>6} {method:<20} "
    if "failed" in result:
        print(begin + result["failed"], flush=True)
        return
    print(
        f"{begin}{result['nll']:>8.4f} {result['error']:>7.4f} {result['brier']:>7.4f} "
        f"{result['ece']:>7.4f} {result['seconds']:>8.1f} {result['predicted']:>8.2f}",
        flush=True,
    )


def reports(found: dict[Key, dict], options: argparse.Namespace) -> None:
    """The tables, and the pictures, of the methods that have a result for so many rows."""
    of_rows: dict[int | None, Results] = {}
    for n_rows in options.rows:
        tried = {method for _, _, method, rows in found if rows == n_rows}
        methods = [method for method in options.methods if method in tried]
        results = Results.of(found, options.sets, methods, n_rows)
        if results.seeds:
            report(results)
            of_rows[n_rows] = results
    if not options.picture:
        return
    import pictures  # matplotlib is not needed for tables

    path = options.picture
    for n_rows, results in of_rows.items():
        rows = "all rows" if n_rows is None else f"{n_rows} rows"
        one = path if len(of_rows) == 1 else path.with_stem(f"{path.stem}-{rows.split()[0]}")
        ranks = ranks_of(results.table("nll"), results.methods)
        pictures.ranks(one, ranks, results.methods, f"Mean rank by log-loss, trained on {rows}")
    if len(of_rows) > 1:
        every = [set(results.methods) for results in of_rows.values()]
        methods = [method for method in options.methods if all(method in each for each in every)]
        ranks = {
            n_rows: ranks_of(Results.of(found, options.sets, methods, n_rows).table("nll"), methods)
            for n_rows in of_rows
        }
        pictures.by_rows(path, ranks, methods)


def count_or_all(text: str) -> int | None:
    return None if text == "all" else int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=sets.SETS, metavar="NAME")
    parser.add_argument(
        "--most-rows", type=int, default=sys.maxsize, help="sets with at most so many to train on"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=ALL, metavar="NAME", help=", ".join(ALL))
    parser.add_argument(
        "--rows",
        nargs="+",
        type=count_or_all,
        default=[None],
        metavar="N",
        help='train on the first so many rows only; "all" is all of them',
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="of a fit and its predictions"
    )
    parser.add_argument("--results", type=Path, default=FOLDER / "compare.jsonl")
    parser.add_argument("--picture", type=Path, help="write ranks as a picture")
    parser.add_argument(
        "--resume", action="store_true", help="skip fits that the results file already holds"
    )
    parser.add_argument("--retry", action="store_true", help="but not those that failed")
    parser.add_argument("--report", action="store_true", help="print what the file holds; no fits")
    outsiders.add_python_options(parser)
    options = parser.parse_args()
    options.methods = options.methods or DEFAULT
    source = sets.Source(options.data, options.openml)
    for name in options.sets:
        source.check(name)
    options.sets = [name for name in options.sets if sets.size(name, source) <= options.most_rows]
    for method in options.methods:
        if method in outsiders.ENVIRONMENTS and not options.report:
            outsiders.check(method, options)
    fits = Fits(options, source)
    print(
        f"{'set':<19} {'seed':>4} {'rows':>6} {'method':<20} {'NLL':>8} {'error':>7} {'Brier':>7} "
        f"{'ECE':>7} {'fit s':>8} {'predict':>8}"
    )
    found: dict[Key, dict] = {}
    for n_rows, name, seed in product(options.rows, options.sets, options.seeds):
        if n_rows is not None and n_rows >= sets.size(name, source):
            continue
        for method in options.methods:
            result = fits.get((name, seed, method, n_rows))
            if result is not None:
                found[name, seed, method, n_rows] = result
    fits.inside.end()
    reports(found, options)


if __name__ == "__main__":
    sys.exit(main())
