"""Which columns of the standardised rows a kernel sees: all of them, or its `active_dims`."""

from numbers import Integral
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

Columns = tuple[int, ...] | None  # None: all


def columns_from(active_dims: Any) -> Columns:
    """The columns that were asked for, or a sentence that says what is wrong with them."""
    if active_dims is None:
        return None
    columns = tuple(active_dims) if np.iterable(active_dims) else (active_dims,)
    if not columns or not all(map(_is_column, columns)) or len(set(columns)) < len(columns):
        raise ValueError(
            f"active_dims must be the numbers of one or more columns, each once and counted from "
            f"0, got {active_dims!r}."
        )
    return tuple(int(c) for c in columns)


def _is_column(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def check_columns(columns: Columns, n_features: int) -> None:
    """Refuse a column that rows do not have."""
    if columns is not None and max(columns) >= n_features:
        raise ValueError(
            f"active_dims has column {max(columns)}, but rows have {n_features} columns once they "
            f"are standardised, counted from 0; a feature of more than two levels has one for each."
        )


def seen(columns: Columns, X: Real[Array, "*N D"]) -> Real[Array, "*N E"]:
    """The columns of X that count."""
    if columns is None:
        return X
    check_columns(columns, X.shape[-1])  # JAX would take the last one instead
    return X[..., np.array(columns)]


def in_place(
    columns: Columns, of_seen: Float[Array, "*N E"], n_features: int
) -> Float[Array, "*N D"]:
    """What belongs to the columns that count, with 0 for the others."""
    if columns is None:
        return of_seen
    zeros = jnp.zeros((*of_seen.shape[:-1], n_features), of_seen.dtype)
    return zeros.at[..., np.array(columns)].set(of_seen)


def shown_columns(columns: Columns) -> str:
    """As the last argument of a kernel that is printed."""
    return "" if columns is None else f", active_dims={list(columns)}"
