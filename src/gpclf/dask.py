"""DaskGPClassifier: the same classifier for tables that live on a cluster of Dask's.

Rows stay on the workers. What comes here are sums of M×M numbers, and the rows of a sample, from
which kernel and inducing points are learned as by `GPClassifier`.
"""

import inspect
import os
import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gpclf.data.sources import ParquetTable, Table
from gpclf.estimators.callbacks import with_callbacks
from gpclf.estimators.checkpoints import Checkpoint
from gpclf.estimators.classifier import GPClassifier
from gpclf.estimators.learning import learn
from gpclf.estimators.measurement_error import RESAMPLE, refuse_pieces
from gpclf.inference.engines import engine_from
from gpclf.inference.plan import Sizes

try:
    import dask.array as arrays
    from dask.delayed import Delayed, delayed

    from gpclf.data.sources.collections import (
        CollectionTable,
        is_array,
        is_frame,
        parts_of,
        sizes_of,
        width_of,
    )
    from gpclf.data.sources.dask_rows import Cluster, sent
    from gpclf.data.sources.distributed import distributed
    from gpclf.data.sources.distributed import parts_of as pieces_of
    from gpclf.data.sources.parcels import Order
    from gpclf.data.sources.work import alone
except ImportError as error:
    raise ImportError(
        f"gpclf.dask needs Dask ({error}): install it by pip install 'gpclf[dask]'."
    ) from error

OWN = ("client", "persist")  # parameters that GPClassifier has not


class DaskGPClassifier(GPClassifier):
    """`GPClassifier` for arrays and frames of Dask's, and for Parquet files that workers read.

    The partitions decide the numbers, and the workers do not: their number, their order and their
    deaths change no bit of the result, as long as all have the same kind of processor and as many
    cores (or the same number in the environment variable `NPROC`). Attributes are local, and those
    of `GPClassifier`.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        Who computes. None: the client that is there, or else Dask's own threads.
    persist : bool, default=True
        Keep the rows as numbers in the memory of the workers for the length of the fit, where Dask
        spills them to disk if need be; False: make them anew in every pass, some fifteen in all.
    **parameters
        Those of `GPClassifier`, by name.
    """

    def __init__(self, client: Any = None, persist: Any = True, **parameters: Any):
        super().__init__(**parameters)
        self.client = client
        self.persist = persist

    def __sklearn_clone__(self) -> "DaskGPClassifier":
        """The client is the same."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        made = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(client=client, **made)

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"client": None}  # type: ignore[operator]

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_std: Any = None,
        *,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> "DaskGPClassifier":
        """Learn from rows on a cluster.

        X is a Dask array or frame, with labels y and `sample_weight` in the same partitions, or as
        names of columns of a frame; or Parquet files that all workers can read, by their names
        or as a `ParquetTable`, which may also say which columns have the errors of others.

        `checkpoint` and `resume` as of `GPClassifier`: where the client was killed another one goes
        on from the file, which is where the client is.
        """
        began = time.perf_counter()
        self._check_parameters()
        place = Checkpoint.of(checkpoint, resume)
        self._refuse()
        if X_std is not None:
            raise TypeError(
                "X_std of rows on a cluster is columns of a table: ParquetTable(paths, X_std=…)."
            )
        table, cluster = _table(X, y, sample_weight), Cluster(self.client)
        rows = distributed(
            table, self.categorical_features, self.class_weight, cluster, bool(self.persist)
        )
        names = rows.coder.names
        self.n_features_in_ = len(names)
        if is_array(X):
            vars(self).pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.array(names, dtype=object)
        learn(self, rows, rows.coder.known_columns, rows.coder.labels.values, began, place)
        return self

    def _refuse(self) -> None:
        """One sentence about what cannot be done with rows that are elsewhere."""
        refuse_pieces(self.input_noise)
        engine = engine_from(self.inference)
        if not engine.by_sums:
            raise ValueError(
                f'inference="{engine.name}" keeps numbers of every row between passes, which would '
                'travel with each of them: use "natural" for rows on a cluster.'
            )
        whole = engine.plan(Sizes(2, 1, 1), self.max_epochs).full_batch
        if not whole or self.input_noise == RESAMPLE:
            raise ValueError(
                "Steps on batches would wait for a cluster at every step: leave batch_size, "
                "optimizer and class_subset of the engine as they are, and do not resample errors."
            )
        if self.early_stopping is not False:
            raise ValueError(
                "early_stopping keeps rows apart in memory, where those of a cluster are not: "
                "leave it False."
            )

    def to_local(self) -> GPClassifier:
        """The same as a `GPClassifier`, without Dask."""
        parameters = self.get_params(deep=False)
        local = GPClassifier(**{n: value for n, value in parameters.items() if n not in OWN})
        fitted = {name: value for name, value in vars(self).items() if name not in parameters}
        vars(local).update(fitted)
        return local

    def predict_log_proba(self, X: Any, X_std: Any = None) -> Any:
        """As of `GPClassifier`; of rows on a cluster as a lazy array of Dask's."""
        if not _elsewhere(X):
            return super().predict_log_proba(X, X_std)
        return self._lazily("predict_log_proba", X, X_std)

    def predict_proba(self, X: Any, return_std: bool = False, X_std: Any = None) -> Any:
        """As of `GPClassifier`; of rows on a cluster as a lazy array of Dask's."""
        if not _elsewhere(X):
            return super().predict_proba(X, return_std, X_std)
        if return_std:
            raise ValueError(
                "return_std gives a second array, which rows on a cluster do not have: call "
                "to_local().predict_proba(rows, return_std=True) on each partition."
            )
        return self._lazily("predict_proba", X, X_std)

    def predict(self, X: Any, X_std: Any = None) -> Any:
        """As of `GPClassifier`; of rows on a cluster as a lazy array of Dask's."""
        if not _elsewhere(X):
            return super().predict(X, X_std)
        return self._lazily("predict", X, X_std)

    def score(self, X: Any, y: Any, sample_weight: Any = None, X_std: Any = None) -> float:
        """As of `GPClassifier`; labels and predictions of rows on a cluster come here."""
        if not _elsewhere(X):
            return super().score(X, y, sample_weight, X_std)
        from sklearn.metrics import accuracy_score  # slow to import

        given = (self.predict(X, X_std), y, sample_weight)
        wanted = [delayed(np.asarray)(part) for part in given if part is not None]
        predicted, y, *weight = Cluster(self.client)(wanted)
        return float(accuracy_score(y, predicted, sample_weight=weight[0] if weight else None))

    def _lazily(self, method: str, X: Any, X_std: Any) -> Any:
        check_is_fitted(self, "posterior_")
        if X_std is not None:
            raise ValueError("X_std of rows on a cluster is not taken: predict by to_local().")
        names = getattr(self, "feature_names_in_", None)
        if _is_named(X) and names is None:
            raise ValueError("The training rows had no names of columns, so files cannot be read.")
        local = self.to_local().set_params(callback=None, verbose=0)
        score, model = delayed(_scored), sent(Order.of(local))
        shape = () if method == "predict" else (len(self.classes_),)
        kind = self.classes_.dtype if method == "predict" else np.dtype(np.float64)
        found = [
            arrays.from_delayed(score(part, model, method, shape, kind), (size, *shape), kind)
            for part, size in _partitions(X, None if names is None else list(names))
        ]
        return arrays.concatenate(found, allow_unknown_chunksizes=True)


def _signature() -> inspect.Signature:
    """All parameters by name: scikit-learn asks for them there."""
    own = inspect.signature(DaskGPClassifier.__init__).parameters
    theirs = list(inspect.signature(GPClassifier.__init__).parameters.values())[1:]
    named = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in theirs]
    return inspect.Signature([own["self"], *(own[name] for name in OWN), *named])


DaskGPClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]


def _is_named(X: Any) -> bool:
    """Whether X names files."""
    several = isinstance(X, list | tuple) and len(X) > 0
    parts = X if several else [X]
    return isinstance(X, Table) or all(isinstance(part, str | os.PathLike) for part in parts)


def _elsewhere(X: Any) -> bool:
    """Whether rows are on a cluster, or in files."""
    return is_array(X) or is_frame(X) or _is_named(X)


def _table(X: Any, y: Any, sample_weight: Any) -> Table:
    """What X, y and weights are together."""
    if isinstance(X, Table):
        if y is not None or sample_weight is not None:
            raise TypeError(
                "A table names its columns of labels and weights itself: give it alone."
            )
        return X
    if _is_named(X):
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if not (given is None or isinstance(given, str)):
                raise TypeError(f"{name} must be the name of a column of the files.")
        return ParquetTable(X, label=y, weight=sample_weight)
    return CollectionTable(X, y, sample_weight)


def _partitions(X: Any, names: list[str] | None) -> list[tuple[Delayed, Any]]:
    """The partitions of X, and how many rows each has, where that is known."""
    if is_array(X):
        width_of(X)
        return list(zip(parts_of(X), sizes_of(X), strict=True))
    if is_frame(X):
        return [(part, np.nan) for part in parts_of(X)]
    assert names is not None
    table = X if isinstance(X, Table) else ParquetTable(X)
    pieces = table.open()
    absent = [name for name in names if name not in pieces.schema.names]
    if absent:
        raise ValueError(f"{pieces.name} has no column {absent[0]!r}, as the training rows had.")
    return list(zip(pieces_of(pieces, names), pieces.rows or [], strict=True))


def _scored(part: Any, model: Order, method: str, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    """What a method of the classifier says of one partition."""
    rows = getattr(part, "rows", part)
    if not len(rows):
        return np.empty((0, *shape), kind)
    with alone():
        return np.asarray(getattr(model.opened(), method)(rows), kind)
