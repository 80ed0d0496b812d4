"""Labels of any type ↔ class indices 0…C−1."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from gpclf.data.scaling import blocks


def refuse_missing(y: Any) -> None:
    """One sentence that names the first row without a label."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        missing = np.ma.getmaskarray(y).ravel()
    elif y is None or (isinstance(y, np.ndarray) and y.dtype.kind in "biuUS"):
        return  # scikit-learn has a word on the first, the others have no missing value
    else:
        values = np.asarray(y, dtype=object).ravel()
        missing = np.array([value is None or value != value for value in values], dtype=bool)
    if missing.any():
        raise ValueError(
            f"y has a missing label in row {int(np.argmax(missing))} "
            f"({int(missing.sum())} in all): drop these rows or label them."
        )


def encode(y: np.ndarray, known: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and each label's index in them; one sentence for labels we cannot use.

    `known`: the classes, of which y need not have all.
    """
    if y.dtype == object:
        kinds = sorted({type(value).__name__ for value in y})
        if len(kinds) > 1:
            raise ValueError(f"y mixes labels of different types ({', '.join(kinds)}): choose one.")
        y = np.array(y.tolist())
    classes = np.unique(np.concatenate([np.unique(y[block]) for block in blocks(len(y))]))
    many = 2 * len(classes) > len(y)  # scikit-learn has a word on that
    check_classification_targets(y if many else np.repeat(classes, 2))
    if known is not None:
        known = np.unique(known)
        strange = np.setdiff1d(classes, known)
        if len(strange):
            raise ValueError(
                f"y has label {strange[0]}, which is not among the classes named first."
            )
        classes = known
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class only ({classes[0]}); a classifier needs rows of at least 2 classes."
        )
    index = np.empty(len(y), np.int32)
    for block in blocks(len(y)):
        index[block] = np.searchsorted(classes, y[block])
    return classes, index
