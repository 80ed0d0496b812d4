"""What each feature matters: how much worse predictions become once its entries are shuffled.

With labels the rise of the log-loss (Breiman 2001, with the log-loss in the place of the error);
without them KL(p ‖ p shuffled), which is that rise if the probabilities are right.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm

from gpclf.report.intervals import LEVEL
from gpclf.report.subject import Subject, Table

MOST_ROWS, MOST_FEATURES = 2000, 30
REPEATS, REPEATS_WITH_ERRORS = 5, 2
BUDGET, BUDGET_WITH_ERRORS = 400_000, 3_000  # predictions: some seconds
FEWEST_ROWS = 50
MANY_CLASSES = 20  # above, a prediction takes as much longer as there are more


class Importance(NamedTuple):
    """By feature, the one that matters most first: the rise in nats per row, with its interval."""

    features: Int[np.ndarray, "F"]
    rise: Float[np.ndarray, "F"]
    low: Float[np.ndarray, "F"]
    high: Float[np.ndarray, "F"]
    n_rows: int
    left_out: int
    by_labels: bool


def importance(subject: Subject, table: Table, rng: np.random.Generator) -> Importance:
    """Of the features of most relevance, on rows drawn at random; intervals are over rows."""
    features = np.argsort(-subject.relevance, kind="stable")[:MOST_FEATURES]
    budget, repeats = (
        (BUDGET, REPEATS) if table.std is None else (BUDGET_WITH_ERRORS, REPEATS_WITH_ERRORS)
    )
    budget = int(budget / max(1.0, len(subject.classes) / MANY_CLASSES))
    most = int(np.clip(budget // (repeats * len(features)), FEWEST_ROWS, MOST_ROWS))
    rows = table.sample(most, rng)
    base = subject.log_proba(rows.X, rows.std)
    shuffled = partial(_shuffled, subject, rows, base, rng)
    rises = np.array(
        [np.mean([shuffled(int(f)) for _ in range(repeats)], axis=0) for f in features]
    )
    half = norm.ppf((1 + LEVEL) / 2) * rises.std(axis=1) / np.sqrt(max(len(rows.X) - 1, 1))
    mean = rises.mean(axis=1)
    order = np.lexsort((features, -mean))
    return Importance(
        features[order],
        mean[order],
        (mean - half)[order],
        (mean + half)[order],
        len(rows.X),
        len(subject.relevance) - len(features),
        rows.y is not None,
    )


def _shuffled(
    subject: Subject, rows: Table, base: np.ndarray, rng: np.random.Generator, feature: int
) -> np.ndarray:
    """The rise of every row; the error of an entry goes where the entry goes."""
    order = rng.permutation(len(rows.X))
    X, std = rows.X.copy(), rows.std
    X[:, feature] = X[order, feature]
    if std is not None and len(std) > 1:
        std = std.copy()
        std[:, feature] = std[order, feature]
    logs = subject.log_proba(X, std)
    if rows.y is None:
        p = np.exp(base)
        with np.errstate(invalid="ignore"):  # of classes that are impossible before and after
            return np.sum(np.where(p > 0, p * (base - logs), 0.0), axis=1)
    own = rows.y[:, None]
    return (np.take_along_axis(base, own, 1) - np.take_along_axis(logs, own, 1))[:, 0]
