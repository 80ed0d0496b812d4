"""The sets of the comparison: splits, columns of categories, few rows, and the cut of large sets.

A split is that of datasets.py: the rows shuffled by seed, the first tenth to test, the rest to
learn from. Large sets are tested on the first 20,000 rows of that tenth.
"""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import OneHotEncoder

from datasets import find, load, standardised

SETS = [
    "wine", "glass", "new-thyroid", "raetsch-heart", "raetsch-cancer", "svmguide2", "fermi-4fgl",
    "vowel", "breast-cancer", "raetsch-diabetes", "vehicle", "raetsch-german", "waveform-1000",
    "raetsch-flare-solar", "digits", "sensorless-2200", "raetsch-image", "segment", "dna",
    "wine-quality-white", "waveform-noise", "banana", "wall-following", "page-blocks",
    "statlog-landsat", "thyroid", "ringnorm", "twonorm", "mushroom", "pendigits", "nursery",
    "magic", "letter", "chess-krvk", "adult", "statlog-shuttle", "connect-4", "sleep",
    "airline-nyc13", "airline-us-late", "airline-2001", "covtype",
]  # fmt: skip
WITHIN_SKLEARN = {"digits": load_digits, "breast-cancer": load_breast_cancer}
LATE = {"airline-us-late": "airline-us"}  # two classes: whether a flight arrives after its time
TRAIN_ROWS = {"airline-us-late": 300_000, "airline-2001": 300_000}
TEST_ROWS = 20_000


class Source(NamedTuple):
    """Where sets come from: the options of datasets.py."""

    data: str | None
    openml: bool

    def check(self, name: str) -> None:
        """SystemExit with one sentence where a set cannot be found."""
        if name not in WITHIN_SKLEARN:
            find(LATE.get(name, name), self.data, self.openml)


class Rows(NamedTuple):
    """A split; X as float64 with whole numbers for categories, y from 0 to C-1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    levels: dict[int, np.ndarray]  # of each column of categories, all that the set has

    def first(self, count: int | None) -> "Rows":
        """With the first so many training rows only."""
        return self._replace(X=self.X[:count], y=self.y[:count])

    def known(self) -> "Rows":
        """Without test rows of a class that no training row has: nobody can foretell those."""
        kept = np.isin(self.y_test, self.y)
        return self._replace(X_test=self.X_test[kept], y_test=self.y_test[kept])


def read(name: str, source: Source) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X and y of all rows, and which columns hold categories."""
    if name in WITHIN_SKLEARN:
        X, y = WITHIN_SKLEARN[name](return_X_y=True)
        return X, y, np.zeros(X.shape[1], bool)
    file = LATE.get(name, name)
    path = find(file, source.data, source.openml)
    X, y = load(file, source.data, source.openml)
    categorical = np.zeros(X.shape[1], bool)
    if path is not None:
        with np.load(path, allow_pickle=False) as arrays:
            if name in LATE:
                y = (arrays["delay"] > 0).astype(np.int64)
            categorical = arrays.get("categorical", categorical)
    return X, y, categorical


@lru_cache(maxsize=1)
def split(name: str, seed: int, source: Source) -> Rows:
    X, y, categorical = read(name, source)
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = np.split(order, [round(0.1 * len(y))])
    test, train = test[:TEST_ROWS], train[: TRAIN_ROWS.get(name)]
    levels = {int(column): np.unique(X[:, column]) for column in np.flatnonzero(categorical)}
    return Rows(X[train], y[train], X[test], y[test], levels)


@cache
def size(name: str, source: Source) -> int:
    """How many training rows a split has."""
    path = None
    if name not in WITHIN_SKLEARN:
        path = find(LATE.get(name, name), source.data, source.openml)
    if path is None:
        count = len(read(name, source)[1])
    else:
        with np.load(path, allow_pickle=False) as arrays:
            count = len(arrays["y"])
    count -= round(0.1 * count)
    return min(count, TRAIN_ROWS.get(name, count))


def parts(rows: Rows) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Training and test rows, numbers standardised, codes as they are; and which are numbers."""
    numbers = [column for column in range(rows.X.shape[1]) if column not in rows.levels]
    X, X_test = rows.X.copy(), rows.X_test.copy()
    X[:, numbers], X_test[:, numbers] = standardised(X[:, numbers], X_test[:, numbers])
    return X, X_test, numbers


def frames(rows: Rows) -> tuple[Any, Any]:
    """Training and test rows; as pandas frames if there are categories, with all levels named."""
    X, X_test, _ = parts(rows)
    if not rows.levels:
        return X, X_test
    import pandas as pd

    def frame(X: np.ndarray) -> pd.DataFrame:
        columns: dict[str, Any] = {f"x{column}": X[:, column] for column in range(X.shape[1])}
        for column, levels in rows.levels.items():
            kind = pd.CategoricalDtype(levels.astype(int))
            columns[f"x{column}"] = pd.Categorical(X[:, column].astype(int), dtype=kind)
        return pd.DataFrame(columns)

    return frame(X), frame(X_test)


def one_hot(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows, a column of 0 and 1 for each level, one for two levels."""
    X, X_test, numbers = parts(rows)
    if not rows.levels:
        return X, X_test
    columns = list(rows.levels)
    coder = OneHotEncoder(
        categories=list(rows.levels.values()), drop="if_binary", sparse_output=False
    )
    codes, codes_test = coder.fit_transform(X[:, columns]), coder.transform(X_test[:, columns])
    return np.hstack([X[:, numbers], codes]), np.hstack([X_test[:, numbers], codes_test])
