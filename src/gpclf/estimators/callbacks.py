"""Who watches a fit: scikit-learn's callbacks, a function of the user's, validation rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from gpclf.data import Scaling
from gpclf.estimators.measurement_error import as_the_kernel_sees
from gpclf.inference.history import Judge, Progress
from gpclf.posterior import Posterior
from gpclf.prediction import log_probabilities

try:  # from scikit-learn 1.9 on
    from sklearn.callback import CallbackSupportMixin  # type: ignore
    from sklearn.callback import with_callbacks as _set_up  # type: ignore
except ImportError:

    class CallbackSupportMixin:
        """Nothing, where scikit-learn has no callbacks."""

    def _set_up(method: Any) -> Any:
        return method


def with_callbacks(method: Any) -> Any:
    """A `fit` that sets up scikit-learn's callbacks, and keeps the user's rows for them."""
    told = _set_up(method)

    @wraps(told)
    def fit(self: Any, X: Any, y: Any = None, *rest: Any, **named: Any) -> Any:
        self._told_rows = X, y
        try:
            return told(self, X, y, *rest, **named)
        finally:
            del self._told_rows

    return fit


class Snapshot:
    """A fit in progress, as a `callback` sees it."""

    def __init__(
        self,
        line: Progress,
        rows: Callable[[Any, Any], tuple[np.ndarray, np.ndarray | None]],
        stopped_at: Callable[[Progress], Posterior],
    ):
        self.stage = line.stage
        self.seconds = line.seconds
        self.elbo = line.elbo
        self.share = line.share
        self._line = line
        self._rows = rows
        self._stopped_at = stopped_at

    def predict_log_proba(self, X: Any, X_std: Any = None) -> np.ndarray:
        """What the classifier would predict if it stopped here."""
        return log_probabilities(self._stopped_at(self._line), *self._rows(X, X_std))


@contextmanager
def callbacks_of(
    estimator: Any, attributes: Callable[[Progress], dict[str, Any]]
) -> Iterator[Callable[[Progress], bool]]:
    """A function that tells scikit-learn's callbacks of each step, and whether one had enough.

    `attributes` are those of an estimator that would stop at that step.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield lambda line: False
        return
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator)
    X, y = estimator._told_rows

    def tell(line: Progress) -> bool:
        step = context.subcontext(task_name=line.stage)
        step.call_on_fit_task_begin(estimator=estimator)
        return step.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, reconstruction_attributes=lambda: attributes(line)
        )

    yield tell
    context.call_on_fit_task_end(estimator=estimator)


def held_out(
    share: float, index: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The rows to learn from and those to validate on: a share of each class, where that can be."""
    from sklearn.model_selection import train_test_split  # slow to import

    seed = int(rng.integers(2**31))
    rows = np.arange(len(index))
    counts = np.bincount(index)
    apart = np.ceil(share * len(index))
    able = counts[counts > 0].min() >= 2 and apart >= np.count_nonzero(counts)
    used, validation = train_test_split(
        rows, test_size=share, random_state=seed, stratify=index if able else None
    )
    return np.asarray(used), np.asarray(validation)


def judging(
    X: np.ndarray,
    index: np.ndarray,
    weight: np.ndarray,
    std: np.ndarray | None,
    scaling: Scaling,
    stopped_at: Callable[[Progress], Posterior],
    usual: Callable[[Progress], np.ndarray | None],
) -> Judge:
    """A judge of a fit by the negative log-probability of the labels of rows kept apart.

    Their errors are `std`, or the `usual` ones where these are learned.
    """
    rows = scaling.forward(X)

    def judge(line: Progress) -> float:
        own = usual(line) if std is None else std
        errors = as_the_kernel_sees(own, X, scaling)
        logs = log_probabilities(stopped_at(line), rows, errors)
        return -float(weight @ logs[np.arange(len(rows)), index])

    return judge
