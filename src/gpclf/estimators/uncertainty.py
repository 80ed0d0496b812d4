"""What a fitted classifier does not know: of a row's class, and why; and which rows to ask for."""

from typing import Any, NamedTuple

import numpy as np

from gpclf.posterior import Posterior
from gpclf.prediction import log_probabilities, spread

CRITERIA = ("entropy", "bald", "margin")


class Uncertainty(NamedTuple):
    """Of each row's class, in nats (N,): `total` = `data` + `model`.

    `data` is what remains however many rows are labelled: classes that overlap there, and where x
    has errors, what these leave open. `model` is what labels near the row would remove: it is large
    where there were few. With errors it is E I(y; f | x) over the places x where the row may be:
    what its label would tell about the functions f, were the true input then known.
    """

    total: np.ndarray
    data: np.ndarray
    model: np.ndarray


def uncertainty_of(
    posterior: Posterior, X: np.ndarray, std: np.ndarray | None = None
) -> Uncertainty:
    """The entropy of the predicted class, and its two parts."""
    return log_probabilities_and_uncertainty(posterior, X, std)[1]


def log_probabilities_and_uncertainty(
    posterior: Posterior, X: np.ndarray, std: np.ndarray | None = None
) -> tuple[np.ndarray, Uncertainty]:
    """Both, with one look at the rows less than one after the other."""
    logs = log_probabilities(posterior, X, std)
    total = _entropy(logs)
    model = np.minimum(spread(posterior, X, std).information, total)
    return logs, Uncertainty(total, total - model, model)


def _entropy(logs: np.ndarray) -> np.ndarray:
    p = np.exp(logs)
    return -np.sum(np.where(p > 0, p * logs, 0.0), axis=1)


def scores(
    posterior: Posterior, X: np.ndarray, by: str, std: np.ndarray | None = None
) -> np.ndarray:
    """How uncertain each row is, by one of three criteria; the most uncertain has the most."""
    if by not in CRITERIA:
        raise ValueError(f"by must be one of {', '.join(map(repr, CRITERIA))}, got {by!r}.")
    if by == "bald":
        return np.asarray(spread(posterior, X, std).information)
    logs = log_probabilities(posterior, X, std)
    if by == "entropy":
        return _entropy(logs)
    second, first = np.partition(np.exp(logs), -2, axis=1)[:, -2:].T
    return second - first


def most(score: np.ndarray, k: Any) -> np.ndarray:
    """The indices of the k highest scores, the highest first; of equal ones the first."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(score):
        raise ValueError(f"k must be a whole number from 1 to the rows, {len(score)}, got {k!r}.")
    return np.argsort(-score, kind="stable")[:k]
