"""How much each row counts, by its own weight and its class."""

from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from gpclf.data import Block


def weighed(
    X: np.ndarray,
    y: np.ndarray,
    index: np.ndarray,
    std: np.ndarray | None,
    *,
    sample_weight: Any,
    class_weight: Any,
) -> Block:
    """The rows that count, their classes, how much they count, and their errors."""
    if np.ma.is_masked(sample_weight):
        row = int(np.argmax(np.ma.getmaskarray(sample_weight)))
        raise ValueError(f"sample_weight has a masked entry in row {row}: 0 leaves a row out.")
    weight = np.broadcast_to(np.float64(1), len(index))  # takes no memory
    if sample_weight is not None or class_weight is not None:
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
        )
    if class_weight is not None:
        weight *= compute_sample_weight(class_weight, y)
    block = Block(X, index, weight, std)
    return block if np.all(weight > 0) else block.part(weight > 0)
