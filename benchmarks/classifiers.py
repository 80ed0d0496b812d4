"""Other classifiers as the race and the comparison use them, with their defaults, by name.

All get standardised inputs and classes 0..C-1, of which some may have no training row. Those of
boosted trees also take a pandas frame with columns of categories, as their libraries do.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from svgp import FIRST_VARIANCE, inducing

GP_ROWS = 2000  # its cost grows with the cube of the rows
FOREST_ROWS = 100_000


def learn(
    classifier: Any, X: np.ndarray, y: np.ndarray, n_classes: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit; return the function from X to ln p, with a column of -inf for a class without rows."""
    seen, index = np.unique(y, return_inverse=True)
    classifier.fit(X, index)

    def log_probabilities(X: np.ndarray) -> np.ndarray:
        p = np.zeros((len(X), n_classes))
        p[:, seen] = classifier.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(p)

    return log_probabilities


class HeldOutTenth:
    """One split for calibration: a random tenth held out, but never all rows of a class."""

    def __init__(self, seed: int):
        self.seed = seed

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        return 1

    def split(self, X, y, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        order = np.random.default_rng(self.seed).permutation(len(y))
        _, kept = np.unique(y[order], return_index=True)
        held_out = np.delete(order, kept)[: max(1, len(y) // 10)]
        yield np.setdiff1d(order, held_out), held_out


def categories(X: Any) -> list[str]:
    """The columns of categories, if X is a pandas frame."""
    kinds = getattr(X, "dtypes", None)
    return [] if kinds is None else [name for name in X.columns if kinds[name] == "category"]


def gp(X: np.ndarray, seed: int) -> GaussianProcessClassifier:
    """Laplace's approximation, each class against the rest; a lengthscale per input."""
    length = inducing.median_distance(X, np.random.default_rng(seed))
    kernel = ConstantKernel(FIRST_VARIANCE) * RBF(np.full(X.shape[1], length))
    return GaussianProcessClassifier(kernel, random_state=seed)


def logistic(X: np.ndarray, seed: int) -> LogisticRegression:
    return LogisticRegression(max_iter=10_000)


def boosting(X: np.ndarray, seed: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=seed)


def calibrated_boosting(X: np.ndarray, seed: int) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(boosting(X, seed), method="temperature", cv=HeldOutTenth(seed))


def forest(X: np.ndarray, seed: int) -> RandomForestClassifier:
    # 500 trees of half a million rows take more memory than most machines have
    n_estimators = 500 if len(X) <= FOREST_ROWS else 100
    return RandomForestClassifier(n_estimators=n_estimators, random_state=seed, n_jobs=-1)


class CalibratedSVC:
    """scikit-learn's SVC, its temperature learned on five folds.

    Where a class has fewer rows than that, on a held-out tenth.
    """

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> "CalibratedSVC":
        svc = SVC(random_state=self.seed)
        if np.bincount(y).min() >= 5:
            whole = CalibratedClassifierCV(svc, method="temperature", ensemble=False)
        else:
            whole = CalibratedClassifierCV(svc, method="temperature", cv=HeldOutTenth(self.seed))
        self.predict_proba = whole.fit(X, y).predict_proba
        return self


def support_vectors(X: np.ndarray, seed: int) -> CalibratedSVC:
    return CalibratedSVC(seed)


def catboost(X: np.ndarray, seed: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
        cat_features=categories(X),
        # the other libraries follow this variable by themselves
        thread_count=int(os.environ.get("OMP_NUM_THREADS", "-1")),
    )


def lightgbm(X: np.ndarray, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, verbose=-1)


def xgboost(X: np.ndarray, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, enable_categorical=bool(categories(X)))


METHODS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "gp": gp,
    "logistic": logistic,
    "boosting": boosting,
    "boosting-calibrated": calibrated_boosting,
    "forest": forest,
    "svm-calibrated": support_vectors,
    "catboost": catboost,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
}
OTHERS = ("catboost", "lightgbm", "xgboost")  # packages beyond scikit-learn
TREES = ("boosting", "boosting-calibrated", "forest", *OTHERS)
