"""Where the model does not know: how uncertain rows are and why, and which labels surprise it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from gpclf.report.subject import Subject, Table

ROWS, ROWS_WITH_ERRORS = 1000, 100  # whose uncertainty is split
TENTHS = 10
LISTED = 10


class Unsure(NamedTuple):
    """Entropies in nats, split into what overlap and what a lack of rows leaves open.

    `data` and `model` are means over tenths of rows, the surest first; rows are indices.
    """

    mean: float
    n_split: int
    data: Float[np.ndarray, "T"]
    model: Float[np.ndarray, "T"]
    rows: Int[np.ndarray, "K"]
    rows_total: Float[np.ndarray, "K"]
    rows_model: Float[np.ndarray, "K"]


def entropy(logs: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "N"]:
    """−Σ p ln p of every row."""
    p = np.exp(logs)
    return -np.sum(np.where(p > 0, p * np.where(p > 0, logs, 0.0), 0.0), axis=1)


def unsure(subject: Subject, table: Table, logs: np.ndarray, rng: np.random.Generator) -> Unsure:
    """Of all rows their entropies; of some at random and the most uncertain ones its parts."""
    total = entropy(logs)
    rows = np.argsort(-total, kind="stable")[:LISTED]
    n_split = min(len(total), ROWS if table.std is None else ROWS_WITH_ERRORS)
    some = rng.choice(len(total), n_split, replace=False)
    some = some[np.argsort(total[some], kind="stable")]
    chosen = np.concatenate([some, rows])
    part = table.part(chosen)
    model = np.minimum(subject.spread(part.X, part.std)[1], total[chosen])
    tenths = [t for t in np.array_split(np.arange(n_split), TENTHS) if len(t)]
    by_model = np.array([model[t].mean() for t in tenths])
    by_data = np.array([total[some[t]].mean() for t in tenths]) - by_model
    return Unsure(
        float(total.mean()), n_split, by_data, by_model, rows, total[rows], model[n_split:]
    )


def surprising(logs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rows whose own class has the least probability, the least first."""
    own = np.take_along_axis(logs, y[:, None], axis=1)[:, 0]
    return np.argsort(own, kind="stable")[:LISTED]
