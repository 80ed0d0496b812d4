"""A classifier of scikit-learn, tested once at the end of its fit: one racer of race.py."""

import os
import signal
import time
import warnings
from math import isfinite

# Threads that spin while they wait make boosting far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
_import_start = time.perf_counter()

from sklearn.exceptions import ConvergenceWarning  # noqa: E402

import classifiers  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

import numpy as np  # noqa: E402
import sklearn  # noqa: E402

from racer import Race, RaceOver, compete  # noqa: E402


def run(race: Race) -> None:
    options = race.options
    warnings.simplefilter("ignore", ConvergenceWarning)  # a lengthscale at its bound

    def stop(signum, frame) -> None:
        raise RaceOver("ran into the time limit")

    signal.signal(signal.SIGALRM, stop)
    if isfinite(options.limit):
        signal.setitimer(signal.ITIMER_REAL, options.limit)
    rows = classifiers.GP_ROWS if options.method == "gp" else None
    X, y = race.X_train[:rows], race.y_train[:rows]
    classifier = classifiers.METHODS[options.method](X, options.seed)
    log_probabilities = classifiers.learn(classifier, X, y, race.n_classes)
    signal.setitimer(signal.ITIMER_REAL, 0)
    race.steps = 1
    race.test(log_probabilities)


if __name__ == "__main__":
    compete(
        __doc__,
        f"scikit-learn {sklearn.__version__}",
        IMPORT_SECONDS,
        run,
        methods=tuple(classifiers.METHODS),
        blow_ups=(np.linalg.LinAlgError,),
    )
