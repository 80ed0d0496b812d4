"""Where the inducing points Z start, how many, and the distances that set the first lengthscale."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

MOST = 400
FEW = 200  # that are learned, where more come once the kernel is known
MOST_COMMON = 1000
CLUSTERED_ROWS = 20_000  # k-means sees at most this many
ROUNDS = 5  # of k-means
AT_ONCE = 512  # rows, whose distances stay in the cache

Transform = Callable[[np.ndarray], np.ndarray]


@runtime_checkable
class Looked(Protocol):
    """Rows by their numbers, or all for `...`: an array, or what reads them from files."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Some of them, in this order."""
        ...


def _as_it_is(X: np.ndarray) -> np.ndarray:
    return X


def auto_count(n_rows: int, n_features: int, n_classes: int) -> int:
    """min(N, 400, 50·D, 20 + 4√N), times √(10/C) above ten classes.

    Grows with the root of the rows, stays small where few features leave little room, and shrinks
    where every class carries its own M×M matrix.
    """
    count = min(MOST, 50 * n_features, 20 + 4 * n_rows**0.5)
    if n_classes > 10:
        count *= (10 / n_classes) ** 0.5
    return int(min(n_rows, max(count, min(n_rows, 20))))


def most_points(n_rows: int) -> int:
    """min(N/2, 1,000), for functions with a covariance in common: points are cheap there."""
    return min(n_rows // 2, MOST_COMMON)


def choose(
    X: Looked, count: int | None, rng: np.random.Generator, forward: Transform = _as_it_is
) -> np.ndarray:
    """`count` centres of the rows: k-means++ refined by k-means; None: every row.

    Rows that occur twice count once, so there may be fewer centres than asked for. `forward` is
    applied to the rows that are looked at.
    """
    if count is None or count >= len(X):
        return np.unique(forward(X[...]), axis=0)
    many = len(X) > CLUSTERED_ROWS
    X = forward(X[rng.choice(len(X), CLUSTERED_ROWS, replace=False) if many else ...])
    distinct = np.unique(X, axis=0)
    if len(distinct) <= count:
        return distinct
    centres = _far_apart(distinct, count, rng)
    for _ in range(ROUNDS):
        centres = _means(X, centres)
    return np.unique(centres, axis=0)


def _means(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The mean of the rows nearest to each centre; one that is nearest to none stays."""
    norms = np.sum(centres**2, axis=1)
    parts = (X[first : first + AT_ONCE] for first in range(0, len(X), AT_ONCE))
    nearest = np.concatenate([np.argmin(norms - 2 * (part @ centres.T), axis=1) for part in parts])
    rows = np.bincount(nearest, minlength=len(centres))
    sums = [np.bincount(nearest, column, minlength=len(centres)) for column in X.T]
    means = np.stack(sums, axis=1) / np.maximum(rows, 1)[:, None]
    return np.where(rows[:, None] > 0, means, centres).astype(X.dtype)


def _far_apart(X: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++: each row drawn by its squared distance from the nearest one before it."""
    norms, nearest = np.sum(X**2, axis=1), np.full(len(X), np.inf)
    chosen = [int(rng.integers(len(X)))]
    while len(chosen) < count:
        last = chosen[-1]
        squared = norms + norms[last] - 2 * (X @ X[last])
        nearest = np.minimum(nearest, np.maximum(squared, 0.0))
        nearest[last] = 0.0
        ends = np.cumsum(nearest, dtype=np.float64)
        drawn = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        chosen.append(min(drawn, len(X) - 1))
    return X[chosen]


def median_distance(
    X: Looked, rng: np.random.Generator, forward: Transform = _as_it_is, rows: int = 1000
) -> float:
    """The median distance between distinct rows, of at most `rows` of them; 1 if there are none."""
    some = rng.choice(len(X), rows, replace=False) if len(X) > rows else ...
    X = np.unique(forward(X[some]), axis=0)
    from scipy.spatial.distance import pdist  # slow to import

    distances = pdist(X)
    return float(np.median(distances)) if len(distances) else 1.0
