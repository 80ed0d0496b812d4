"""Inducing points as users ask for them: how many, or the points themselves."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from gpclf import inducing
from gpclf.data import Columns, Scaling
from gpclf.data.columns import as_frame
from gpclf.estimators.parameters import are_points, is_auto
from gpclf.estimators.tables import FLOATS, table


def points_given(
    estimator: Any, wanted: Any, columns: Columns, scaling: Scaling
) -> np.ndarray | None:
    """The points, standardised as rows are; None where it says how many only."""
    if not are_points(wanted):
        return None
    if as_frame(wanted) is not None or columns.counts.any():
        return scaling.forward(table(estimator, wanted, columns))
    floats: Any = FLOATS
    finite: Any = "allow-nan"
    Z = check_array(wanted, dtype=floats, input_name="n_inducing", ensure_all_finite=finite)
    if Z.shape[1] != len(columns.counts):
        raise ValueError(
            f"n_inducing has points of {Z.shape[1]} features, but X has {len(columns.counts)}: "
            "give rows like those of X."
        )
    return scaling.forward(Z)


def how_many(
    wanted: Any, given: np.ndarray | None, n_rows: int, n_features: int, n_classes: int
) -> Any:
    """The number of points; None: every row."""
    if given is not None:
        return len(given)
    return inducing.auto_count(n_rows, n_features, n_classes) if is_auto(wanted) else wanted
