"""Labels of any type ↔ class indices 0…C−1."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets


def refuse_missing(y: Any) -> None:
    """One sentence that names the first row without a label."""
    values = np.asarray(y, dtype=object).ravel()
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    if missing.any():
        raise ValueError(
            f"y has a missing label in row {int(np.argmax(missing))} "
            f"({int(missing.sum())} in all): drop these rows or label them."
        )


def encode(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and each label's index in them; one sentence for labels we cannot use."""
    if y.dtype == object:
        kinds = sorted({type(value).__name__ for value in y})
        if len(kinds) > 1:
            raise ValueError(f"y mixes labels of different types ({', '.join(kinds)}): choose one.")
        y = np.array(y.tolist())
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class only ({classes[0]}); a classifier needs rows of at least 2 classes."
        )
    return classes, index.astype(np.int32)
