"""What the rivals with inducing points share: start values, batches and rates.

Start values are gpclf's own, by the same code from the same random numbers. That file needs NumPy
and SciPy, not gpclf: it is not in the rivals' environments.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

ADAM_RATE = 0.01
NATURAL_RATE = 0.1
BATCH = 1024
FIRST_VARIANCE = 4.0


class Start(NamedTuple):
    """Inducing points (M, D) and a lengthscale for each of the D inputs."""

    Z: np.ndarray
    lengthscales: np.ndarray


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("inducing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


inducing = _load(Path(__file__).parents[1] / "src" / "gpclf" / "inducing" / "__init__.py")


def start(X: np.ndarray, count: int, seed: int) -> Start:
    """k-means centres and the median distance, drawn as `GPClassifier` draws them."""
    rng = np.random.default_rng(np.random.RandomState(seed).randint(2**31 - 1))
    Z = inducing.choose(X, count, rng)
    return Start(Z, np.full(X.shape[1], inducing.median_distance(X, rng)))


def batches(n_rows: int, seed: int) -> Iterator[np.ndarray]:
    """Row numbers of batch after batch, without end; each epoch in an order of its own."""
    rng = np.random.default_rng(seed)
    size = min(BATCH, n_rows)
    while True:
        order = rng.permutation(n_rows)
        for first in range(0, n_rows - size + 1, size):
            yield order[first : first + size]
