"""The banana of Hensman, Matthews & Ghahramani (2015): 4 to 64 inducing points, three methods.

    cd benchmarks && python -m papers.hensman_banana --data FOLDER

Draws p = ½ and where the inducing points end, one row a method, and prints how near the boundary
they are, at k-means' places and at the end of the fit: the median over points of the distance to
the line p = ½, in the units of the set, beside that of the training rows, and of |p − ½|.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from datasets import add_data_option, load
from figures import figures
from gpclf import GPClassifier
from gpclf.inference.engines import MeanField, Natural, PowerEP
from papers.grid import RESULTS, table

COUNTS = (4, 8, 16, 32, 64)
ROWS = 400  # the training part of the set's first split
METHODS = {"KL": Natural, "EP-FITC": PowerEP, "mean field": MeanField}


def classifier(method: str, count: int, seed: int, **options) -> GPClassifier:
    more = {"max_epochs": 1000, "tol": 1e-8} if method == "KL" else {}  # points settle slowly
    return GPClassifier(
        likelihood="probit", kernel="rbf", inference=METHODS[method](**options), n_inducing=count,
        random_state=seed, **more,
    )  # fmt: skip


def near(lines, points: np.ndarray) -> float:
    """The median distance of some points to drawn lines."""
    corners = np.concatenate([segment for level in lines.allsegs for segment in level])
    return float(np.median(cKDTree(corners).query(points)[0]))


def main() -> int:
    """Print the table, draw the figure; 1 if points of the bound do not move to the boundary."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seed", type=int, default=0, help="of the places where points start")
    options = parser.parse_args()
    X, y = load("banana", options.data)
    train, test = slice(0, ROWS), slice(ROWS, None)
    low, high = X[train].min(axis=0) - 0.3, X[train].max(axis=0) + 0.3
    across, up = np.meshgrid(*np.linspace(low, high, 160).T)
    places = np.stack([across.ravel(), up.ravel()], axis=1)
    figure, axes = plt.subplots(
        len(options.methods), len(COUNTS), figsize=(13, 2.7 * len(options.methods)),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    rows, moved = [], []
    for method, of_method in zip(options.methods, axes, strict=True):
        for count, axis in zip(COUNTS, of_method, strict=True):
            started = classifier(method, count, options.seed, optimizer=None).fit(
                X[train], y[train]
            )
            fitted = classifier(method, count, options.seed).fit(X[train], y[train])
            first, last = (
                float(np.median(np.abs(fitted.predict_proba(c.inducing_points_)[:, 1] - 0.5)))
                for c in (started, fitted)
            )
            scored = figures(fitted.predict_log_proba(X[test]), y[test])
            p = fitted.predict_proba(places)[:, 1].reshape(across.shape)
            axis.scatter(*X[train].T, c=np.where(y[train] > 0, "C1", "C0"), s=4, alpha=0.5)
            lines = axis.contour(across, up, p, levels=[0.5], colors="black")
            axis.scatter(*fitted.inducing_points_.T, color="black", s=16)
            axis.set_title(f"{method}, M = {count}", fontsize=9)
            places_of_points = (started.inducing_points_, fitted.inducing_points_, X[train])
            far = [near(lines, points) for points in places_of_points]
            if method == "KL":
                moved.append(far[1] < far[0])
            rows.append(
                [method, str(count), f"{scored['nll']:.4f}", f"{1 - scored['accuracy']:.4f}",
                 *(f"{number:.3f}" for number in (*far, first, last))]
            )  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "banana.png", dpi=80)
    table(
        ["method", "M", "NLL", "error", "distance of Z at first", "at the end", "of rows",
         "|p − ½| of Z at first", "at the end"],
        rows,
    )  # fmt: skip
    print(f"\nnearer the boundary at the end, KL: {sum(moved)} of {len(moved)}")
    return int(not all(moved))


if __name__ == "__main__":
    raise SystemExit(main())
