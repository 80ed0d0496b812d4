"""Errors of inputs on made-up problems, beside the best that is possible.

    python benchmarks/noise_toy.py [--dimensions 1 2] [--variances 0.1 0.25 0.5] [--draws 5]
    python benchmarks/noise_toy.py --dimensions 2 --draws 20 --learn

A problem: three functions drawn from a Gaussian process, the largest says the class, inputs are
uniform, and what is seen of them has a normal error. Bayes' classifier knows the functions and the
error. The figures are means over draws of the problem. Every fit is appended to a file, so that
--resume goes on from there.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpclf import GPClassifier
from gpclf.inputs import Amortised, Latent
from kept import FOLDER, Kept

REACH = 2.5  # inputs are uniform within so much of 0, along each axis
CLASSES = 3
VARIANTS = (None, "augment", "first-order", "latent", "amortised")


class Problem(NamedTuple):
    """Rows as they are seen, their classes, and what Bayes' classifier says of the test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    bayes: np.ndarray  # log-probabilities (N, 3)


def draw(dimensions: int, variance: float, seed: int, rows: int = 1000, tests: int = 1000):
    """One problem: functions by 2,000 random Fourier features, so that they are known anywhere.

    Drawn again where a class has less than a tenth of the rows.
    """
    rng = np.random.default_rng(seed)
    true = rng.uniform(-REACH, REACH, (rows + tests, dimensions))
    shares = np.zeros(CLASSES)
    while shares.min() < 0.1:
        frequencies = rng.normal(size=(dimensions, 2000))
        phases, weights = rng.uniform(0, 2 * np.pi, 2000), rng.normal(size=(2000, CLASSES))

        def classes(X: np.ndarray, parts=(frequencies, phases, weights)) -> np.ndarray:
            return np.argmax(np.cos(X @ parts[0] + parts[1]) @ parts[2], axis=1)

        y = classes(true)
        shares = np.bincount(y[:rows], minlength=CLASSES) / rows
    seen = true + np.sqrt(variance) * rng.normal(size=true.shape)
    # p(y | x̃) by the points of a grid of true inputs, each with the weight of the error
    axis = np.linspace(-REACH, REACH, 4001 if dimensions == 1 else 161)
    grid = np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)
    of_grid = np.eye(CLASSES)[classes(grid)]
    bayes = np.empty((tests, CLASSES))
    for first in range(0, tests, 50):
        part = seen[rows + first : rows + first + 50]
        squared = ((part[:, None, :] - grid) ** 2).sum(axis=2)
        weight = np.exp(-0.5 * (squared - squared.min(axis=1, keepdims=True)) / variance)
        bayes[first : first + 50] = weight @ of_grid / weight.sum(axis=1, keepdims=True)
    return Problem(seen[:rows], y[:rows], seen[rows:], y[rows:], np.log(np.maximum(bayes, 1e-15)))


def with_places(kind: str | None, places: int | None) -> Any:
    """A kind of input with so many places a row, where it has places."""
    if places is None or kind not in ("latent", "amortised"):
        return kind
    return {"latent": Latent, "amortised": Amortised}[kind](count=places)


def nll(logs: np.ndarray, y: np.ndarray) -> float:
    """The mean negative log-probability of the classes."""
    return -float(np.mean(logs[np.arange(len(y)), y]))


def main() -> None:
    """Print a table of NLL, error and learned variance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--variances", type=float, nargs="+", default=[0.1, 0.25, 0.5])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--likelihoods", nargs="+", default=["robust-max", "softmax"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--learn", action="store_true", help="the size of the error is not told")
    parser.add_argument("--results", type=Path, default=FOLDER / "noise_toy.jsonl")
    parser.add_argument("--resume", action="store_true", help="keep the fits of the file")
    options = parser.parse_args()
    kept = Kept(options.results, options.resume)
    variants = [None if v in (None, "None") else v for v in options.variants]
    for dimensions in options.dimensions:
        for variance in options.variances:
            problems = [draw(dimensions, variance, seed) for seed in range(options.draws)]
            best = np.mean([nll(p.bayes, p.y_test) for p in problems])
            wrong = np.mean([np.mean(p.bayes.argmax(axis=1) != p.y_test) for p in problems])
            print(f"D={dimensions} V={variance}: Bayes NLL {best:.4f} error {wrong:.4f}")
            for likelihood in options.likelihoods:
                for variant in variants:
                    learns = options.learn and variant is not None
                    what = {"dimensions": dimensions, "variance": variance, "learn": learns}
                    what |= {"likelihood": likelihood, "variant": variant}
                    found = [
                        kept.get({**what, "draw": seed}, partial(run, problem, seed, **what))
                        for seed, problem in enumerate(problems)
                    ]
                    show(what, found, float(best))


def run(p: Problem, seed: int, *, dimensions, variance, learn, likelihood, variant) -> dict:
    """One fit: NLL, error, and the variance of the error that it was told or has learned."""
    classifier = GPClassifier(
        likelihood=likelihood,
        kernel="rbf",
        input_noise=variant,
        input_noise_std="learn-one" if learn else None,
        random_state=seed,
    )
    classifier.fit(p.X, p.y, X_std=None if learn or variant is None else np.sqrt(variance))
    logs = classifier.predict_log_proba(p.X_test)
    wrong = float(np.mean(logs.argmax(axis=1) != p.y_test))
    std = classifier.input_noise_std_
    used = None if std is None else float(np.mean(std**2))
    return {"nll": nll(logs, p.y_test), "error": wrong, "used": used}


def show(what: dict, found: list[dict], best: float) -> None:
    """One line of the table."""
    mean, error = (np.mean([f[name] for f in found]) for name in ("nll", "error"))
    line = f"  {what['likelihood']:11s} {what['variant']!s:12s} NLL {mean:.4f} "
    line += f"({mean - best:+.4f} to Bayes) error {error:.4f}"
    if what["learn"]:
        used = [f["used"] for f in found]
        factor = np.mean(used) / what["variance"]
        line += f" learned variance {np.mean(used):.4f} ({factor:.2f} times the true one"
        line += f", from {min(used):.4f} to {max(used):.4f})"
    print(line, flush=True)


if __name__ == "__main__":
    main()
