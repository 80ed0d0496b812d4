"""Every complaint about parameters and rows, one sentence each, before any work is done."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from gpclf.data import blocks
from gpclf.data.columns import name_of

MOST_FULL = 5000  # rows of a full process: matrices of 200 MB a function
MOST_JOINT = 2**26  # numbers in covariances between rows: half a gigabyte


def is_auto(value: Any) -> bool:
    """Whether a parameter that may be an array is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def are_points(value: Any) -> bool:
    """Whether n_inducing holds the points themselves: an array or frame of two axes."""
    return not (value is None or isinstance(value, str | Real)) and np.ndim(value) == 2


def check_points(n_inducing: Any) -> None:
    """Refuse an array that cannot be rows like those of X."""
    if n_inducing is None or isinstance(n_inducing, str | Real):
        return
    if not are_points(n_inducing):
        raise ValueError(
            "n_inducing must be a number, or points as an array of two axes, rows like those of X, "
            f"got an array of shape {np.shape(n_inducing)}."
        )


def check_full(n_inducing: Any, n_rows: int) -> None:
    """Refuse a full process of too many rows."""
    if n_inducing is None and n_rows > MOST_FULL:
        raise ValueError(
            f"n_inducing=None makes each of the {n_rows:,} rows an inducing point, and that is for "
            f'up to {MOST_FULL:,} rows: use n_inducing="auto" or a number.'
        )


def check_joint(n_rows: int, n_latent: int) -> None:
    """Refuse covariances between too many rows."""
    most = int((MOST_JOINT / n_latent) ** 0.5)
    if n_rows > most:
        raise ValueError(
            f"X has {n_rows:,} rows, but the covariances between all of them, for {n_latent} "
            f"latent function(s), are for up to {most:,}: give fewer rows at once."
        )


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")


def check_finite(X: np.ndarray, names: Any = None) -> None:
    """Name the first row and column that hold infinity; NaN is a missing number."""
    if not any(np.isinf(X[block]).any() for block in blocks(len(X))):
        return
    wrong = np.isinf(X)
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    raise ValueError(
        f"Input X contains infinity in row {row}, {name_of(column, names)} ({int(wrong.sum())} "
        "such entries in all): drop or impute them, for example with sklearn.impute.SimpleImputer."
    )


def unmasked(X: Any) -> Any:
    """X itself, or the array below a mask that hides nothing; what is hidden is missing."""
    if not isinstance(X, np.ma.MaskedArray) or X.ndim != 2:
        return X
    if not np.ma.is_masked(X):
        return X.data
    kind = {"f": X.dtype, "b": np.float64, "i": np.float64, "u": np.float64}
    values = X.data.astype(kind.get(X.dtype.kind, object))
    values[np.ma.getmaskarray(X)] = np.nan
    return values
