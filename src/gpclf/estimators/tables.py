"""From what a user holds to numbers: frames or arrays, checked, their levels as places."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples, validate_data

from gpclf.data import Columns
from gpclf.data.columns import as_frame, chosen
from gpclf.estimators.validation import check_finite, unmasked

FLOATS = (np.float64, np.float32)  # rows of other types become the first


def labelled_table(
    estimator: Any, X: Any, y: Any, categorical: Any
) -> tuple[np.ndarray, np.ndarray, Columns]:
    """Training rows, their labels, and which columns hold levels; names and width are kept."""
    X = _array_or_frame(unmasked(X), categorical)
    frame = as_frame(X)
    names = None if frame is None else [str(name) for name in frame.columns]
    if not chosen(X, categorical, names):
        X, y = validate_data(
            estimator, X, y, dtype=FLOATS, ensure_all_finite=False, ensure_min_samples=2
        )
        columns = Columns.numbers(X.shape[1])
    else:
        validate_data(estimator, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
        if _num_samples(X) < 2:
            raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")
        columns = Columns.of(X, categorical, names)
        X = columns.codes(X, names)
    check_finite(X, getattr(estimator, "feature_names_in_", None), columns.counts > 0)
    return X, y, columns


def table(estimator: Any, X: Any, columns: Columns) -> np.ndarray:
    """Rows to predict, with the columns of the training rows."""
    X = unmasked(X, getattr(estimator, "feature_names_in_", None))
    if not columns.counts.any():
        X = validate_data(estimator, X, dtype=FLOATS, ensure_all_finite=False, reset=False)
    else:
        X = _array_or_frame(X, [])
        validate_data(estimator, X, skip_check_array=True, reset=False)
        X = columns.codes(X, getattr(estimator, "feature_names_in_", None))
    check_finite(X, getattr(estimator, "feature_names_in_", None), columns.counts > 0)
    return X


def more_of_table(
    estimator: Any, X: Any, y: Any, columns: Columns
) -> tuple[np.ndarray, np.ndarray]:
    """Further training rows and their labels, with the columns of the first ones."""
    X = table(estimator, X, columns)
    check_consistent_length(X, y)
    return X, column_or_1d(y, warn=True)


def _array_or_frame(X: Any, categorical: Any) -> Any:
    """X itself if it is a frame, or if all its columns are numbers; else an array of two axes."""
    if categorical is None or isinstance(categorical, str) or as_frame(X) is not None:
        return X
    kept: Any = None  # whatever type they have
    return check_array(X, dtype=kept, ensure_all_finite=False)
