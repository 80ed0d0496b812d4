"""A classifier of the comparison in a Python of its own: fits METHOD to FILE, which outsiders.py
wrote, and writes FILE anew with ln p of the test rows. Imports of the library are not counted.
"""

import os

# Threads that spin while they wait are far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import time
from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np

INDUCING = 200
STEPS, SECONDS = 2000, 300.0  # of GPflow's Adam: whichever ends sooner
AT_ONCE = 2000  # rows that GPflow predicts

Predict = Callable[[np.ndarray], np.ndarray]  # X to ln p
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Predict]  # X, y, categorical, seed


def gpflow() -> Fit:
    """gpflow-adam of the race: SVGP, 200 inducing points, Adam for 2,000 steps or 300 seconds."""
    import tensorflow as tf

    import svgp
    from rival_gpflow import make_log_probabilities, make_model, make_step

    def fit(X: np.ndarray, y: np.ndarray, categorical: np.ndarray, seed: int) -> Predict:
        start = time.perf_counter()
        tf.random.set_seed(seed)
        race: Any = SimpleNamespace(X_train=X, y_train=y, n_classes=int(y.max()) + 1)
        race.options = SimpleNamespace(n_inducing=min(INDUCING, len(X)), seed=seed, method="adam")
        model = make_model(race)
        step = make_step(race, model)
        for count, rows in enumerate(svgp.batches(len(X), seed), 1):
            if not np.isfinite(float(step(tf.constant(rows)))):
                raise ArithmeticError(f"the loss is not finite at step {count}")
            if count == STEPS or time.perf_counter() - start > SECONDS:
                break
        predict = make_log_probabilities(model, race.n_classes)
        return lambda X: np.vstack(
            [predict(part) for part in np.split(X, range(AT_ONCE, len(X), AT_ONCE))]
        )

    return fit


def tabular(name: str, **options: Any) -> Fit:
    """A classifier of pytabkit on the processor, categories in a frame."""
    import pandas as pd
    import pytabkit

    def fit(X: np.ndarray, y: np.ndarray, categorical: np.ndarray, seed: int) -> Predict:
        names = [f"x{column}" for column in range(X.shape[1])]
        marked = [name for name, is_marked in zip(names, categorical, strict=True) if is_marked]

        def frame(X: np.ndarray) -> pd.DataFrame:
            table = pd.DataFrame(X, columns=names)
            return table.astype(dict.fromkeys(marked, int)).astype(dict.fromkeys(marked, str))

        classifier = getattr(pytabkit, name)(device="cpu", random_state=seed, **options)
        classifier.fit(frame(X), y, cat_col_names=marked)

        def predict(X: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.log(classifier.predict_proba(frame(X)))

        return predict

    return fit


METHODS: dict[str, tuple[str, Callable[[], Fit]]] = {
    "gpflow": ("gpflow", gpflow),
    "realmlp": ("pytabkit", lambda: tabular("RealMLP_TD_Classifier")),
    "realmlp-nll": (
        "pytabkit",
        lambda: tabular("RealMLP_TD_Classifier", val_metric_name="cross_entropy", use_ls=False),
    ),
    "xrfm": ("pytabkit", lambda: tabular("XRFM_D_Classifier")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("seed", type=int)
    parser.add_argument("file")
    options = parser.parse_args()
    with np.load(options.file) as arrays:
        X, y, X_test, categorical = (arrays[n] for n in ("X", "y", "X_test", "categorical"))
    package, make = METHODS[options.method]
    fit = make()
    start = time.perf_counter()
    predict = fit(X, y, categorical, options.seed)
    fitted = time.perf_counter()
    log_p = predict(X_test)
    done = time.perf_counter()
    np.savez(
        options.file,
        log_p=log_p,
        seconds=fitted - start,
        predicted=done - fitted,
        version=f"{package} {version(package)}",
    )


if __name__ == "__main__":
    main()
