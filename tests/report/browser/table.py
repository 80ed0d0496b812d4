"""A report on a table of three classes with error bars, for the browser to look at."""

import sys

import numpy as np
import pandas as pd

from gpclf import GPClassifier

ROWS, TRAINED = 1200, 800
CENTRES = np.array([[0.0, 0.0], [2.2, 0.4], [1.0, 2.2]])
CLASSES = np.array(["blazar", "pulsar", "quiet galaxy"])


def sources() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, labels, and the standard deviations of the errors of the rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, ROWS)
    true = CENTRES[y] + 0.7 * rng.standard_normal((ROWS, 2))
    slope = 3 * true[:, 0] + 3 * rng.standard_normal(ROWS)
    X = np.column_stack([10 ** (2 + 0.4 * true[:, 0]), 5 + true[:, 1], slope])
    std = np.abs(X) * [0.15, 0.06, 0.05] * rng.uniform(0.3, 2, (ROWS, 1))
    frame = pd.DataFrame(
        X + std * rng.standard_normal(X.shape), columns=["flux", "hardness", "slope"]
    )
    frame["detector"] = np.array(["east", "north", "west"])[rng.integers(0, 3, ROWS)]
    return frame, CLASSES[y], np.column_stack([std, np.zeros(ROWS)])


def main(path: str) -> None:
    """Fit on some rows, report on the others."""
    X, y, std = sources()
    train, test = slice(0, TRAINED), slice(TRAINED, None)
    clf = GPClassifier(random_state=0).fit(X[train], y[train], X_std=std[train])
    clf.report(X[test], y[test], std[test], path, title="Which sources are pulsars?")


if __name__ == "__main__":
    main(sys.argv[1])
