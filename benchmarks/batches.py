"""Steps on batches beside all rows at once: error and NLL on test rows, by likelihood."""

import argparse
from statistics import mean

import numpy as np

from datasets import add_data_option, split
from gpclf import GPClassifier
from gpclf.inference.engines import Natural
from gpclf.report.metrics import scores

SETS = ["magic", "waveform-1000"]
LIKELIHOODS = ["step", "noisy-probit", "robust-max"]


def evaluate(name: str, seed: int, options: argparse.Namespace, **parameters) -> tuple:
    """Error and NLL of one fit."""
    rows = split(name, seed, folder=options.data, openml=options.openml)
    clf = GPClassifier(kernel="rbf", n_inducing=60, random_state=seed, **parameters)
    std = None if parameters.get("input_noise") is None else 0.1 * rows.X_train.std(axis=0)
    clf.fit(rows.X_train, rows.y_train, X_std=std)
    found = scores(clf.predict_log_proba(rows.X_test), rows.y_test)
    return 1 - found.accuracy, found.nll


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--likelihoods", nargs="+", default=LIKELIHOODS)
    parser.add_argument("--batches", nargs="+", type=int, default=[256, 1024])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--input-noise", default=None, help="a kind, with a tenth of the spread")
    options = parser.parse_args()
    print(
        f"{'set':<14} {'likelihood':<13} {'batch':>5}  {'error':>6} {'full':>6}  {'NLL':>7}", end=""
    )
    print(f" {'full':>7}  largest difference of a seed")
    for name in options.sets:
        for likelihood in options.likelihoods:
            common = {"likelihood": likelihood, "input_noise": options.input_noise}
            full = [evaluate(name, seed, options, **common) for seed in options.seeds]
            for batch in options.batches:
                found = [
                    evaluate(name, seed, options, inference=Natural(batch_size=batch), **common)
                    for seed in options.seeds
                ]
                worst = np.abs(np.subtract(found, full)).max(axis=0)
                errors, nlls = zip(*found, strict=True)
                full_errors, full_nlls = zip(*full, strict=True)
                verdict = "met" if worst[0] < 0.0101 and worst[1] <= 0.03 else "not met"
                print(
                    f"{name:<14} {likelihood:<13} {batch:5d}  {mean(errors):6.4f} "
                    f"{mean(full_errors):6.4f}  {mean(nlls):7.4f} {mean(full_nlls):7.4f}  "
                    f"error {worst[0]:.4f}, NLL {worst[1]:.4f}: {verdict}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
