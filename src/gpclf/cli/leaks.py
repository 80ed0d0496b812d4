"""How much of the label one column tells alone, by a quick check on halves of the rows.

For each column a tree of its own, or a table of its words, learns from one half and is scored on
the other: the share of the labels' entropy that is gone.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from gpclf.data.sources.kinds import compute as pc

MOST_ROWS = 5000
FEWEST_ROWS = 40
DEEPEST = 12
PSEUDO = 0.1  # of a row for each class: what a leaf did not see is not impossible


def explained(column: pa.ChunkedArray | pa.Array, index: np.ndarray) -> float:
    """From 0, nothing, to 1, all; `index` are the classes of the rows as 0 … C − 1."""
    if len(index) < FEWEST_ROWS:
        return 0.0
    chosen = np.random.default_rng(0).permutation(len(index))[:MOST_ROWS]
    y, n_classes = index[chosen], int(index.max()) + 1
    values, words = _codes(column, chosen)
    half = np.arange(len(y)) % 2 == 0
    base, own = 0.0, 0.0
    for train, test in ((half, ~half), (~half, half)):
        if words:
            leaf_train, leaf_test = values[train], values[test]
        else:
            leaf_train, leaf_test = _leaves(values, y, train, test)
        own += _surprise(leaf_train, y[train], leaf_test, y[test], n_classes)
        none = np.zeros(len(y), np.intp)
        base += _surprise(none[train], y[train], none[test], y[test], n_classes)
    return 1.0 - own / base if base > 0 else 0.0


def _codes(column: Any, chosen: np.ndarray) -> tuple[np.ndarray, bool]:
    """Numbers with a place for those missing, or the places of words."""
    part = pc.take(column, pa.array(chosen))
    if pa.types.is_dictionary(part.type) or pa.types.is_string(part.type):
        plain = (
            part.cast(pa.string()).combine_chunks()
            if isinstance(part, pa.ChunkedArray)
            else (part.cast(pa.string()))
        )
        codes = plain.dictionary_encode(null_encoding="encode").indices
        return np.asarray(codes.to_numpy(zero_copy_only=False), np.intp), True
    numbers = np.asarray(part.to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isnan(numbers), np.finfo(np.float32).min, numbers), False


def _leaves(
    values: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.tree import DecisionTreeClassifier  # slow to import

    # ranks, since a tree works in single precision
    ranks = np.unique(values, return_inverse=True)[1].reshape(-1, 1).astype(np.float32)
    few = max(2, int(train.sum()) // 100)
    tree = DecisionTreeClassifier(max_depth=DEEPEST, min_samples_leaf=few, random_state=0)
    tree.fit(ranks[train], y[train])
    return tree.apply(ranks[train]), tree.apply(ranks[test])


def _surprise(
    leaf_train: np.ndarray, y_train: np.ndarray, leaf: np.ndarray, y: np.ndarray, n_classes: int
) -> float:
    """The sum of −ln p of the test rows under the shares of their leaves."""
    size = int(max(leaf_train.max(), leaf.max())) + 1
    counts = np.zeros((size, n_classes))
    np.add.at(counts, (leaf_train, y_train), 1.0)
    prior = (np.bincount(y_train, minlength=n_classes) + PSEUDO) / (
        len(y_train) + PSEUDO * n_classes
    )
    p = (counts + PSEUDO * n_classes * prior) / (counts.sum(1, keepdims=True) + PSEUDO * n_classes)
    return float(-np.log(p[leaf, y]).sum())
