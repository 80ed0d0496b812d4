"""Which numbers are double and which single precision.

Algebra on M×M matrices runs in float64; work on rows (B×M) runs in float32, or in float64 where
they are few or by option. JAX needs its 64-bit mode for that. We never switch it on globally:
`double_precision` scopes it to our own calls, so a user's JAX code before and after sees its own
defaults.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Precision = Literal["auto", "mixed", "double"]
FEW_ROWS = 1000  # whose work takes no time worth saving


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function in JAX's 64-bit mode, for the length of the call and this thread only."""

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return scoped


def row_dtype(precision: Precision, n_places: int) -> np.dtype:
    """The type of the numbers in work that grows with the rows; "auto": double for few of them.

    A row whose input has an error has several places.
    """
    double = precision == "double" or (precision == "auto" and n_places <= FEW_ROWS)
    return np.dtype(np.float64 if double else np.float32)


def cast(tree: T, dtype: Any) -> T:
    """A copy of `tree` whose real arrays have type `dtype`; whole numbers are left as they are."""

    def one(leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jnp.floating) or leaf.dtype == dtype:
            return leaf
        return leaf.astype(dtype)

    return jax.tree.map(one, tree)


def rounded(tree: T, dtype: np.dtype) -> T:
    """`cast` outside compiled code: the result is NumPy's, and nothing is compiled for it."""

    def one(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return array.astype(dtype, copy=False) if array.dtype.kind == "f" else array

    return jax.tree.map(one, tree)
