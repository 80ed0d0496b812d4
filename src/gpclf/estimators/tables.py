"""From what a user holds to numbers: frames or arrays, checked, their levels as places."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples, validate_data

from gpclf.data import Columns
from gpclf.data.columns import Names, all_numbers, as_frame, chosen, refuse_dates
from gpclf.data.sources import Streamed, Table, first_pass
from gpclf.estimators.parameters import check_finite, unmasked

FLOATS = (np.float64, np.float32)  # frames of other types become the first
AS_THEY_ARE: Any = None  # the types of an array


def labelled_table(
    estimator: Any, X: Any, y: Any, categorical: Any
) -> tuple[np.ndarray, np.ndarray, Columns]:
    """Training rows, their labels, and which columns hold levels; names and width are kept."""
    X, names = _opened(X, None)
    X = _with_two_axes(X, categorical)
    if not chosen(X, categorical, names) and _is_plain(X):
        X, y = validate_data(estimator, X, y, **_reading(X), ensure_min_samples=2)
        columns = Columns.numbers(X.shape[1])
        X = _numbers(X, columns, names)
    else:
        validate_data(estimator, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
        if _num_samples(X) < 2:
            raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")
        columns = Columns.of(X, categorical, names)
        X = columns.codes(X, names)
    check_finite(X, names)
    return X, y, columns


def streamed_table(
    estimator: Any, given: Table, others: dict[str, Any]
) -> tuple[Streamed, Columns, np.ndarray]:
    """Training rows that are read in every pass, their columns and classes; names are kept."""
    for name, value in others.items():
        if value is not None:
            column = {"y": "label", "sample_weight": "weight"}.get(name, name)
            raise TypeError(
                f"{name} is given beside a table on disk, which names its column: "
                f"{type(given).__name__}(…, {column}=…)."
            )
    if estimator.early_stopping is not False:
        raise ValueError(
            "early_stopping keeps rows apart in memory, where those of a table on disk are not: "
            "leave it False."
        )
    rows, names = first_pass(given, estimator.categorical_features, estimator.class_weight)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.n_features_in_ = len(names)
    return rows, rows.coder.known_columns, rows.coder.labels.values


def table(estimator: Any, X: Any, columns: Columns) -> np.ndarray:
    """Rows to predict, with the columns of the training rows."""
    X, names = _opened(X, getattr(estimator, "feature_names_in_", None))
    if not columns.counts.any() and _is_plain(X):
        X = validate_data(estimator, X, **_reading(X), reset=False)
        X = _numbers(X, columns, names)
    else:
        X = _with_two_axes(X, [])
        validate_data(estimator, X, skip_check_array=True, reset=False)
        X = columns.codes(X, names)
    check_finite(X, names)
    return X


def more_of_table(
    estimator: Any, X: Any, y: Any, columns: Columns
) -> tuple[np.ndarray, np.ndarray]:
    """Further training rows and their labels, with the columns of the first ones."""
    X = table(estimator, X, columns)
    check_consistent_length(X, y)
    return X, column_or_1d(y, warn=True)


def _opened(X: Any, names: Names) -> tuple[Any, Names]:
    """X without a mask, and its names, or those known before; one sentence for what we cannot."""
    if isinstance(X, Table):
        raise TypeError(
            "A table on disk can be fitted to and scored into a file: fit(table) and "
            "predict_to(table, path). For other methods read its rows."
        )
    if issparse(X):
        raise TypeError("X is sparse, and we need its zeros, too: give X.toarray().")
    frame = as_frame(X)
    if frame is not None:
        names = [str(name) for name in frame.columns]
        if not names:
            raise ValueError("X has no columns: 0 feature(s), where at least 1 is needed.")
        refuse_dates(frame, names)
    return unmasked(X), names


def _is_plain(X: Any) -> bool:
    """Whether X can be read at once: an array, or a frame that has numbers only."""
    frame = as_frame(X)
    return frame is None or all_numbers(frame)


def _reading(X: Any) -> dict[str, Any]:
    """How scikit-learn is to read X: an array as it is, without a copy."""
    kinds = AS_THEY_ARE if as_frame(X) is None else FLOATS
    return {"dtype": kinds, "ensure_all_finite": False}


def _numbers(X: Any, columns: Columns, names: Names) -> np.ndarray:
    """X itself if it holds numbers of at most 64 bits; else a copy, or one sentence."""
    kept = X.dtype.kind in "biu" or (X.dtype.kind == "f" and X.dtype.itemsize <= 8)
    return X if kept else columns.codes(X, names)


def _with_two_axes(X: Any, categorical: Any) -> Any:
    """X itself if it is a frame, or if all its columns are numbers; else an array of two axes."""
    if categorical is None or isinstance(categorical, str) or as_frame(X) is not None:
        return X
    return check_array(X, dtype=AS_THEY_ARE, ensure_all_finite=False)
