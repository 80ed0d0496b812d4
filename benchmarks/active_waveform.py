"""Active learning on waveform: error of the test rows against the number of labels.

    python benchmarks/active_waveform.py --data FOLDER [--repetitions 20] [--queries 100]

The setting of Villacampa-Calvo et al. (2020, section 5.5): labels are asked for one by one, by
entropy or at random, from the same first rows. Draws results/active.png.
"""

import argparse
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from datasets import add_data_option, load
from gpclf import GPClassifier
from gpclf.active import Learner
from kept import FOLDER, Kept

FIRST = 30  # labels to begin with
POOL, TEST = 600, 2000


def curve(X, y, X_test, y_test, by: str, queries: int, seed: int) -> dict:
    """The error after each query."""
    learner = Learner(GPClassifier(random_state=seed), X, by=by, random_state=seed)
    first = np.random.default_rng(seed).permutation(len(X))[:FIRST]
    learner.label(first, y[first])
    errors = [1 - learner.classifier_.score(X_test, y_test)]
    for _ in range(queries):
        rows = learner.query()
        learner.label(rows, y[rows])
        errors.append(1 - learner.classifier_.score(X_test, y_test))
    return {"errors": errors}


def main() -> int:
    """Print the error at the end of both ways; draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--set", default="waveform")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--by", nargs="+", default=["entropy", "random"])
    parser.add_argument("--results", type=Path, default=FOLDER / "active.jsonl")
    parser.add_argument("--resume", action="store_true", help="keep the curves of the file")
    options = parser.parse_args()
    X, y = load(options.set, options.data)
    kept = Kept(options.results, options.resume)
    curves: dict[str, list] = {by: [] for by in options.by}
    for seed in range(options.repetitions):
        order = np.random.default_rng(seed).permutation(len(y))
        pool, test = order[:POOL], order[POOL : POOL + TEST]
        rows = (X[pool], y[pool], X[test], y[test])
        for by, found in curves.items():
            what = {"set": options.set, "by": by, "queries": options.queries, "seed": seed}
            found.append(kept.get(what, partial(curve, *rows, by, options.queries, seed))["errors"])
            print(f"{seed:3d} {by:8s} {found[-1][0]:.4f} to {found[-1][-1]:.4f}", flush=True)
    figure, axis = plt.subplots(figsize=(5, 3.5), layout="constrained")
    for by, found in curves.items():
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
        print(f"{by:8s} error after {options.queries} queries: {mean[-1]:.4f} ± {spread[-1]:.4f}")
        axis.plot(FIRST + np.arange(len(mean)), mean, label=by)
        axis.fill_between(FIRST + np.arange(len(mean)), mean - spread, mean + spread, alpha=0.2)
    axis.set(xlabel="labels", ylabel="test error")
    axis.legend()
    figure.savefig(FOLDER / "active.png", dpi=150)
    if {"entropy", "random"} <= set(curves):
        gap = np.subtract([c[-1] for c in curves["entropy"]], [c[-1] for c in curves["random"]])
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        print(f"entropy against random: {gap.mean():+.4f} ± {error:.4f}")
    ends = {by: np.mean(found, axis=0)[-1] for by, found in curves.items()}
    return int({"entropy", "random"} <= set(ends) and ends["entropy"] >= ends["random"])


if __name__ == "__main__":
    raise SystemExit(main())
