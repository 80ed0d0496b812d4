"""What the rivals with inducing points share: start values, batches and rates.

Start values are gpclf's own, from the same random numbers. Needs NumPy, SciPy and scikit-learn.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus

ADAM_RATE = 0.01
NATURAL_RATE = 0.1
BATCH = 1024
FIRST_VARIANCE = 4.0
CLUSTERED_ROWS = 20_000
DISTANCE_ROWS = 1000


class Start(NamedTuple):
    """Inducing points (M, D) and a lengthscale for each of the D inputs."""

    Z: np.ndarray
    lengthscales: np.ndarray


def start(X: np.ndarray, count: int, seed: int) -> Start:
    """Mini-batch k-means centres and the median distance, drawn as `GPClassifier` draws them."""
    rng = np.random.default_rng(np.random.RandomState(seed).randint(2**31 - 1))
    Z = centres(X, count, rng)
    return Start(Z, np.full(X.shape[1], median_distance(X, rng)))


def centres(X: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ refined by mini-batch k-means, as in `gpclf.inducing.choose`."""
    if len(X) > CLUSTERED_ROWS:
        X = X[rng.choice(len(X), CLUSTERED_ROWS, replace=False)]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= count:
        return distinct
    seed = int(rng.integers(2**31 - 1))
    first, _ = kmeans_plusplus(distinct, count, random_state=seed, n_local_trials=1)
    means = MiniBatchKMeans(
        count, init=first, n_init=1, max_iter=3, batch_size=2048, random_state=seed
    ).fit(X)
    return np.unique(means.cluster_centers_, axis=0)


def median_distance(X: np.ndarray, rng: np.random.Generator) -> float:
    """Between distinct rows, of a thousand at most, as in `gpclf.inducing.median_distance`."""
    if len(X) > DISTANCE_ROWS:
        X = X[rng.choice(len(X), DISTANCE_ROWS, replace=False)]
    distances = pdist(X)
    return float(np.median(distances[distances > 0]))


def batches(n_rows: int, seed: int) -> Iterator[np.ndarray]:
    """Row numbers of batch after batch, without end; each epoch in an order of its own."""
    rng = np.random.default_rng(seed)
    size = min(BATCH, n_rows)
    while True:
        order = rng.permutation(n_rows)
        for first in range(0, n_rows - size + 1, size):
            yield order[first : first + size]
