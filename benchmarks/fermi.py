"""Sources of the Fermi telescope with the error bars of their features.

    python benchmarks/fermi.py --data FOLDER [--splits 100] [--rivals]

The splits of Villacampa-Calvo et al. (2020): 408 of 454 sources to learn from, the rest to test.
"""

import argparse
from collections.abc import Callable

import numpy as np

from classifiers import METHODS, learn
from datasets import add_data_option, find, standardised
from gpclf import GPClassifier
from noise_toy import nll

PAPER = "Paper's best NLL (robust-max): 0.246"
RIVALS = ("logistic", "forest", "boosting", "boosting-calibrated")
KINDS = (None, "augment", "first-order", "latent", "amortised")


def main() -> None:
    """Print the mean NLL and error of each method, and how far error bars change them."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--likelihoods", nargs="+", default=["robust-max", "softmax"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--kernel", default=None)
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    path = find("fermi-4fgl", options.data)
    assert path is not None
    with np.load(path) as file:
        X, y, std, splits = (file[name] for name in ("X", "y", "X_std", "splits"))
    X, std = X.astype(float), std.astype(float)
    splits = splits[: options.splits]

    def of_gp(likelihood: str, kind: str | None) -> Callable:
        def run(train, test, seed):
            classifier = GPClassifier(
                likelihood=likelihood, kernel=options.kernel, input_noise=kind, random_state=seed
            )
            if kind is None:
                return classifier.fit(X[train], y[train]).predict_log_proba(X[test])
            classifier.fit(X[train], y[train], X_std=std[train])
            return classifier.predict_log_proba(X[test], X_std=std[test])

        return run

    methods = {
        f"{likelihood} {kind}": of_gp(likelihood, None if kind in (None, "None") else kind)
        for likelihood in options.likelihoods
        for kind in options.kinds
    }

    def of_rival(name: str) -> Callable:
        def run(train, test, seed):
            rows, rows_test = standardised(X[train], X[test])
            return learn(METHODS[name](rows, seed), rows, y[train], 3)(rows_test)

        return run

    if options.rivals:
        methods |= {name: of_rival(name) for name in RIVALS}
    results = {name: scores(run, splits, y) for name, run in methods.items()}
    print(PAPER)
    for name, (nlls, errors) in results.items():
        plain = results.get(f"{name.split()[0]} None")
        line = f"{name:24s} NLL {nlls.mean():.4f} ± {sem(nlls):.4f} error {errors.mean():.4f}"
        if plain is not None and plain is not results[name]:
            gap = nlls - plain[0]
            line += f"  against none: {gap.mean():+.4f} ± {sem(gap):.4f}"
        print(line)


def sem(values: np.ndarray) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def scores(run: Callable, splits: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """NLL and error of the test rows, split by split."""
    nlls, errors = [], []
    for seed, order in enumerate(splits):
        train, test = order[:408], order[408:]
        logs = np.maximum(run(train, test, seed), np.log(1e-15))
        nlls.append(nll(logs, y[test]))
        errors.append(np.mean(logs.argmax(axis=1) != y[test]))
    return np.array(nlls), np.array(errors)


if __name__ == "__main__":
    main()
