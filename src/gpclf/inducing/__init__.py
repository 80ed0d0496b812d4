"""Where the inducing points Z start, how many, and the distances that set the first lengthscale."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

MOST = 400
CLUSTERED_ROWS = 20_000  # k-means sees at most this many


Transform = Callable[[np.ndarray], np.ndarray]


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


def choose(
    X: np.ndarray, count: int | None, rng: np.random.Generator, forward: Transform = _as_it_is
) -> np.ndarray:
    """`count` centres of the rows: k-means++ refined by mini-batch k-means; None: every row.

    Rows that occur twice count once, so there may be fewer centres than asked for. `forward` is
    applied to the rows that are looked at.
    """
    if count is None or count >= len(X):
        return np.unique(forward(X), axis=0)
    if len(X) > CLUSTERED_ROWS:
        X = X[rng.choice(len(X), CLUSTERED_ROWS, replace=False)]
    X = forward(X)
    distinct = np.unique(X, axis=0)
    if len(distinct) <= count:
        return distinct
    from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus  # slow to import

    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings(), threadpool_limits(limits=1):  # XLA compiles on another core
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, _ = kmeans_plusplus(distinct, count, random_state=seed, n_local_trials=1)
        refine: Any = MiniBatchKMeans
        means = refine(count, init=first, n_init=1, max_iter=3, batch_size=2048, random_state=seed)
        means.fit(X)
    return np.unique(means.cluster_centers_, axis=0)


def median_distance(
    X: np.ndarray, rng: np.random.Generator, forward: Transform = _as_it_is, rows: int = 1000
) -> float:
    """The median distance between distinct rows, of at most `rows` of them; 1 if there are none."""
    if len(X) > rows:
        X = X[rng.choice(len(X), rows, replace=False)]
    X = forward(X)
    from scipy.spatial.distance import pdist  # slow to import

    distances = pdist(X)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
