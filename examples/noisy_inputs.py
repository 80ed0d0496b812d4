"""Error bars of its own for every measurement: what they tell a classifier that uses them.

Draws the probability of a class against the measured value and its error bar, as Bayes' rule has
it for the true classes, with the error bars and without: docs/noisy-inputs.png by default.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gpclf import GPClassifier

ROWS = 1000
REACH = 3.0
WIDEST = 0.8
PICTURE = Path(__file__).parent.parent / "docs" / "noisy-inputs.png"


def classes(x: np.ndarray) -> np.ndarray:
    """The true class of an exact input: stripes."""
    return (np.sin(2.5 * x) > 0).astype(int)


def bayes(measured: np.ndarray, std: np.ndarray) -> np.ndarray:
    """p(class 1 | measured value, its error bar), true inputs being uniform."""
    grid = np.linspace(-REACH, REACH, 4001)
    weight = np.exp(-0.5 * ((measured[:, None] - grid) / std[:, None]) ** 2)
    return weight @ classes(grid) / weight.sum(axis=1)


def nll(p: np.ndarray, y: np.ndarray) -> float:
    """The mean negative log-probability of the classes."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -float(np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def main() -> None:
    """Fit with and without the error bars, print the NLL of new rows, and draw."""
    rng = np.random.default_rng(0)
    true = rng.uniform(-REACH, REACH, 2 * ROWS)
    std = rng.uniform(0.02, WIDEST, 2 * ROWS)
    measured, y = true + std * rng.normal(size=2 * ROWS), classes(true)
    X, X_std = measured[:ROWS, None], std[:ROWS, None]
    aware = GPClassifier(random_state=0).fit(X, y[:ROWS], X_std=X_std)
    unaware = GPClassifier(random_state=0).fit(X, y[:ROWS])

    methods = {
        "Bayes' rule": bayes,
        "with error bars": lambda x, s: aware.predict_proba(x[:, None], X_std=s[:, None])[:, 1],
        "without": lambda x, s: unaware.predict_proba(x[:, None])[:, 1],
    }
    x, s = np.meshgrid(np.linspace(-REACH, REACH, 121), np.linspace(0.02, WIDEST, 40))
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
    for axis, (name, probability) in zip(axes, methods.items(), strict=True):
        score = nll(probability(measured[ROWS:], std[ROWS:]), y[ROWS:])
        print(f"{name:16s} NLL {score:.3f}")
        shades = np.clip(probability(x.ravel(), s.ravel()), 0, 1).reshape(x.shape)
        drawn = axis.contourf(x, s, shades, levels=np.linspace(0, 1, 11), cmap="RdBu_r")
        axis.set(title=f"{name}: NLL {score:.3f}", xlabel="measured value")
    axes[0].set_ylabel("its error bar")
    figure.colorbar(drawn, ax=axes, label="probability")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
