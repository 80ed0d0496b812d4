"""Labels of any type ↔ class indices 0…C−1."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.array([value is None or value != value for value in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def encode(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and each label's index in them; one sentence for labels we cannot use."""
    y = np.asarray(y)
    missing = _missing(y)
    if missing.any():
        raise ValueError(
            f"y has a missing label in row {int(np.argmax(missing))} "
            f"({int(missing.sum())} in all): drop these rows or label them."
        )
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class only ({classes[0]!r}); a classifier needs rows of at least 2 classes."
        )
    return classes, index.astype(np.int32)
