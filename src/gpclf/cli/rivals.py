"""Other classifiers on the same rows: so that a person sees whether the model is worth it.

All have their defaults; boosting is calibrated by a temperature that is learned on rows left out,
a forest has half a vote more for every class, so that none is impossible.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

LOGISTIC, BOOSTING, FOREST = "logistic regression", "boosting, calibrated", "random forest"
USUAL = (LOGISTIC, BOOSTING)
OTHERS = ("catboost", "lightgbm", "xgboost")
TREES = 300
MOST_CODES = 255  # of a column of categories, in scikit-learn's boosting
FOLDS = 5
SMALL = 200_000  # numbers of a table
LARGE = 20_000  # rows, from which the temperature is learned on a tenth only

Predict = Callable[[np.ndarray], np.ndarray]  # rows to ln p


class Encoded(NamedTuple):
    """A table as numbers: NaN where a value is missing, and a category as its place."""

    X: np.ndarray
    categorical: np.ndarray  # which columns hold places

    @classmethod
    def of(cls, X: pa.Table) -> "Encoded":
        """All rows that will be learned from or scored, so that places agree."""
        numbers = np.empty((X.num_rows, X.num_columns))
        categorical = np.zeros(X.num_columns, bool)
        for i, column in enumerate(X.columns):
            if pa.types.is_dictionary(column.type) or pa.types.is_boolean(column.type):
                categorical[i] = True
                plain = column.cast(pa.string()).combine_chunks().dictionary_encode().indices
                numbers[:, i] = np.asarray(plain.to_numpy(zero_copy_only=False), np.float64)
            else:
                numbers[:, i] = column.to_numpy()
        return cls(numbers, categorical)


def installed() -> list[str]:
    """The names of all rivals that are there."""
    return [*USUAL, FOREST, *(name for name in OTHERS if find_spec(name) is not None)]


def fit(name: str, data: Encoded, y: np.ndarray, n_classes: int, seed: int) -> Predict:
    """Learn from rows with classes 0 … C − 1, of which some may have no row."""
    seen, index = np.unique(y, return_inverse=True)
    make = {LOGISTIC: _logistic, BOOSTING: _boosting, FOREST: _forest}.get(name, _other(name))
    # threads slow small tables down, on a busy machine a hundredfold
    with threadpool_limits(1 if data.X.size < SMALL else None):
        logs = make(data, index, seed)

    def predict(X: np.ndarray) -> np.ndarray:
        found = np.full((len(X), n_classes), -np.inf)
        with threadpool_limits(1 if X.size < SMALL else None):
            found[:, seen] = logs(X)
        return found

    return predict


def _logs(p: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _logistic(data: Encoded, y: np.ndarray, seed: int) -> Predict:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    places = np.flatnonzero(data.categorical)
    numbers = np.flatnonzero(~data.categorical)
    encoder = ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), places),
            (
                "numbers",
                make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()),
                numbers,
            ),
        ]
    )
    return (
        make_pipeline(encoder, LogisticRegression(max_iter=1000)).fit(data.X, y).predict_log_proba
    )


def _boosting(data: Encoded, y: np.ndarray, seed: int) -> Predict:
    from sklearn.ensemble import HistGradientBoostingClassifier

    codes = np.nanmax(np.where(data.categorical, data.X, 0), axis=0, initial=0)
    few = data.categorical & (codes < MOST_CODES)

    def learn(rows: Any) -> Any:
        made = HistGradientBoostingClassifier(categorical_features=few, random_state=seed)
        return made.fit(data.X[rows], y[rows])

    place = np.random.default_rng(seed).permutation(len(y)) % (10 if len(y) > LARGE else FOLDS)
    _, kept = np.unique(y, return_index=True)
    place[kept] = -1  # a row of each class is always learned from
    left_out, labels = [], []
    for k in range(1 if len(y) > LARGE else FOLDS):
        test = place == k
        if test.any():
            left_out.append(_logs(learn(~test).predict_proba(data.X[test])))
            labels.append(y[test])
    heat = _temperature(np.concatenate(left_out), np.concatenate(labels)) if left_out else 1.0
    final = learn(slice(None))
    return lambda X: _heated(_logs(final.predict_proba(X)), heat)


def _heated(logs: np.ndarray, temperature: float) -> np.ndarray:
    from scipy.special import log_softmax

    return log_softmax(np.maximum(logs, -700.0) / temperature, axis=1)


def _temperature(logs: np.ndarray, y: np.ndarray) -> float:
    """What the logarithms are divided by, so that those of the labels are highest."""
    from scipy.optimize import minimize_scalar

    def surprise(log_heat: float) -> float:
        return -float(np.mean(_heated(logs, np.exp(log_heat))[np.arange(len(y)), y]))

    return float(np.exp(minimize_scalar(surprise, bounds=(-3.0, 3.0), method="bounded").x))  # type: ignore[attr-defined]


def _forest(data: Encoded, y: np.ndarray, seed: int) -> Predict:
    from sklearn.ensemble import RandomForestClassifier

    jobs = 1 if data.X.size < SMALL else -1
    forest = RandomForestClassifier(TREES, random_state=seed, n_jobs=jobs).fit(data.X, y)

    def predict(X: np.ndarray) -> np.ndarray:
        p = forest.predict_proba(X) * TREES + 0.5
        return np.log(p / p.sum(axis=1, keepdims=True))

    return predict


def _other(name: str) -> Callable[[Encoded, np.ndarray, int], Predict]:
    """Boosting of another library, categories as their places."""

    def learn(data: Encoded, y: np.ndarray, seed: int) -> Predict:
        made = _made(name, seed).fit(data.X, y)
        return lambda X: _logs(np.asarray(made.predict_proba(X)))

    return learn


def _made(name: str, seed: int) -> Any:
    if name == "catboost":
        from catboost import CatBoostClassifier  # type: ignore

        return CatBoostClassifier(random_seed=seed, verbose=False, allow_writing_files=False)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier  # type: ignore

        return LGBMClassifier(random_state=seed, verbose=-1)
    from xgboost import XGBClassifier  # type: ignore

    return XGBClassifier(random_state=seed, verbosity=0)
