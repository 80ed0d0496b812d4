"""Time and performance on the image set, as in Hensman, Matthews & Ghahramani (2015).

    cd benchmarks && python -m papers.hensman_image --data FOLDER

Test NLL against seconds for the bound, for EP-FITC and for mean field with 4, 50 and 200 inducing
points: drawn as `results/image.png`. Printed: the lowest NLL and when it was there, and the end.
Tests are off the clock, compilation is on it.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from datasets import add_data_option, split
from figures import figures
from gpclf import GPClassifier
from papers.grid import RESULTS, table

METHODS = {"KL": "natural", "EP-FITC": "power-ep", "mean field": "mean-field"}
COUNTS = (4, 50, 200)


def curve(inference: str, count: int, rows) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and test NLL, step by step."""
    seconds, nlls = [], []

    def watch(snapshot) -> None:
        seconds.append(snapshot.seconds)
        nlls.append(figures(snapshot.predict_log_proba(rows.X_test), rows.y_test)["nll"])

    GPClassifier(
        likelihood="probit", kernel="rbf", inference=inference, n_inducing=count,
        max_epochs=200, tol=1e-6, random_state=0, callback=watch,
    ).fit(rows.X_train, rows.y_train)  # fmt: skip
    return np.array(seconds), np.array(nlls)


def main() -> None:
    """Draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    options = parser.parse_args()
    rows = split("raetsch-image", 0, folder=options.data)
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    ends = []
    for (method, inference), style in zip(METHODS.items(), ("-", "--", ":"), strict=True):
        for place, count in enumerate(options.counts):
            seconds, nlls = curve(inference, count, rows)
            axis.plot(seconds, nlls, style, color=f"C{place}", label=f"{method}, M = {count}")
            ends.append([method, str(count)])
            for at in (int(np.argmin(nlls)), -1):
                ends[-1] += [f"{nlls[at]:.4f}", f"{seconds[at]:.1f}"]
    axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="test NLL")
    axis.legend(fontsize=8)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "image.png", dpi=100)
    table(["method", "M", "lowest NLL", "seconds", "NLL at the end", "seconds"], ends)


if __name__ == "__main__":
    main()
