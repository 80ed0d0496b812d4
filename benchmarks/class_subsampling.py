"""Time a stochastic step of the logistic-softmax on all classes and on a few; compare the ends.

The two fits differ in nothing but `class_subset` and the number of epochs: `--epochs` over all
classes, and as many more over a few as keep the number of steps that each class takes.
"""

import argparse
import sys
import time

import numpy as np

from datasets import add_data_option, split
from gpclf import GPClassifier
from gpclf.inference.engines import Natural
from gpclf.likelihoods import LogisticSoftmax
from gpclf.report.metrics import scores


def run(rows, subset: int | None, epochs: int, options: argparse.Namespace) -> tuple[float, float]:
    """Median seconds per step, and the test NLL at the end."""
    marks: list[float] = []
    classifier = GPClassifier(
        LogisticSoftmax(bound_by="augmentation"),  # the bound that drawn classes take
        n_inducing=options.n_inducing,
        inference=Natural(
            batch_size=options.batch_size,
            optimizer="adam" if options.learn else None,
            class_subset=subset,
        ),
        max_epochs=epochs,
        random_state=0,
        tol=1e-9,
        callback=lambda snapshot: marks.append(snapshot.seconds),
    )
    began = time.perf_counter()
    classifier.fit(rows.X_train, rows.y_train)
    took = time.perf_counter() - began
    steps = -(-len(rows.y_train) // options.batch_size)
    per_step = float(np.median(np.diff(marks))) / steps
    y_index = np.searchsorted(classifier.classes_, rows.y_test)
    figures = scores(classifier.predict_log_proba(rows.X_test), y_index)
    name = "all classes" if subset is None else f"{subset} drawn"
    print(
        f"{name:<12} {epochs:>6} {1e3 * per_step:>11.1f} {took:>8.1f} {figures.nll:>8.4f} "
        f"{figures.accuracy:>9.4f}",
        flush=True,
    )
    return per_step, figures.nll


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--set", default="letter")
    parser.add_argument("--n-inducing", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--classes", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--keep-kernel", dest="learn", action="store_false")
    options = parser.parse_args()
    rows = split(options.set, 0, folder=options.data, openml=options.openml)
    count = len(np.unique(rows.y_train))
    print(
        f"{'step':<12} {'epochs':>6} {'ms per step':>11} {'seconds':>8} {'NLL':>8} {'accuracy':>9}"
    )
    whole, end = run(rows, None, options.epochs, options)
    longer = round(options.epochs * count / options.classes)
    few, few_end = run(rows, options.classes, longer, options)
    print(f"\na step on {options.classes} of {count} classes is {whole / few:.2f} times faster")
    print(f"NLL at the end: {few_end - end:+.4f}")
    return int(whole / few < 2.5 or abs(few_end - end) > 0.03)


if __name__ == "__main__":
    sys.exit(main())
