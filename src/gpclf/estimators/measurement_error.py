"""Errors of inputs as users give them: how large, where, and what to do about them."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from gpclf.data import Columns, Scaling
from gpclf.data.columns import as_frame, listed, name_of
from gpclf.data.scaling import widths
from gpclf.inputs import (
    Amortised,
    Augmented,
    Exact,
    FirstOrder,
    Inputs,
    Latent,
    Network,
    Noisy,
    Parametric,
    auto_places,
    quick_places,
)
from gpclf.inputs.noise import FIRST_STD

KINDS: dict[str, type[Noisy]] = {
    "latent": Latent,
    "amortised": Amortised,
    "first-order": FirstOrder,
    "augment": Augmented,
    "parametric": Parametric,
}
RESAMPLE = "resample"  # errors are added to each batch anew, and its rows taken as exact
LEARNED = ("learn", "learn-one")


def errors_of(X_std: Any, X: np.ndarray, columns: Columns, names: Any) -> np.ndarray | None:
    """X_std as an array like X, or with one row where all rows are alike.

    Or a sentence that says what is wrong with it. Columns that have names are those of X of these
    names, wherever they stand. The error of a missing number counts as 0, whatever is given.
    """
    if X_std is None:
        return None
    std = _in_order(X_std, names)
    allowed = ((), (X.shape[1],), X.shape)
    if std.shape not in allowed:
        raise ValueError(
            f"X_std must be a number, one value per feature ({X.shape[1]}), or an array of the "
            f"shape of X, {X.shape}; got shape {std.shape}."
        )
    if std.shape == X.shape and (gaps := np.isnan(X)).any():
        std = np.where(gaps, 0.0, std)
    wrong = ~np.isfinite(std) | (std < 0)
    if wrong.any():
        place = [int(i) for i in np.argwhere(wrong)[0]]
        column = "" if not place else f" of {name_of(place[-1], names)}"
        row = f" in row {place[0]}" if len(place) == 2 else ""
        raise ValueError(
            f"X_std must be finite and not negative, got {std[tuple(place)]}{column}{row}."
        )
    std = std if std.ndim == 2 else np.broadcast_to(std, (1, X.shape[1]))
    if np.ndim(X_std) == 0:
        return np.where(columns.counts > 0, 0.0, std)
    levels = np.flatnonzero((columns.counts > 0) & np.any(std > 0, axis=0))
    if len(levels):
        raise ValueError(
            f"X_std is not 0 for {name_of(int(levels[0]), names)}, which holds categories: "
            "these have no error, so give 0."
        )
    return std


def _in_order(X_std: Any, names: Any) -> np.ndarray:
    """X_std as an array; of columns with names each in the place that X has it in."""
    frame = as_frame(X_std, "X_std")
    given: list | None = None
    if frame is not None:
        given = [str(name) for name in frame.columns]
        parts = [frame[:, column].to_numpy() for column in range(len(given))]
    elif hasattr(X_std, "iloc") and np.ndim(X_std) == 1:  # a series of pandas
        given = list(X_std.index) if all(isinstance(n, str) for n in X_std.index) else None
        parts = list(np.asarray(X_std))
    else:
        masked = isinstance(X_std, np.ma.MaskedArray)
        parts = np.ma.filled(X_std.astype(np.float64), np.nan) if masked else X_std
    if given is not None and names is not None:
        parts = [parts[place] for place in _places(given, [str(name) for name in names])]
    try:
        std = np.asarray(parts, np.float64)
    except (TypeError, ValueError):
        raise ValueError("X_std must hold numbers: standard deviations of the errors.") from None
    return std if frame is None else std.T


def _places(given: list[str], names: list[str]) -> list[int]:
    """Where each name of X stands among those of X_std; one sentence where they differ."""
    foreign = [name for name in given if name not in names]
    if foreign:
        raise ValueError(
            f"X_std has a column {foreign[0]!r}, which X has not: give it the names of X, or give "
            "an array."
        )
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(
            f"X_std has no column {missing[0]!r}, as X has: give one, with 0 where X is exact."
        )
    return [given.index(name) for name in names]


def inputs_for(
    kind: Any,
    size: Any,
    std: np.ndarray | None,
    exact: Any,
    scaling: Scaling,
    n_classes: int,
    n_rows: int,
) -> Inputs:
    """The kind of input that the parameters ask for, by its name or as an object with options.

    `exact`: a mask of the features without error, where its size is learned; levels have none.
    """
    if kind is None and std is None and size is None:
        return Exact()
    if kind == RESAMPLE:
        if std is None or size is not None:
            raise ValueError('input_noise="resample" needs X_std, and cannot learn it.')
        return Exact()
    if kind is None and size is None:
        chosen = Latent(count=quick_places(n_rows))
    elif kind in (None, "latent", "amortised"):
        named = Amortised if kind == "amortised" else Latent
        chosen = named(count=auto_places(n_rows))
    else:
        chosen = kind if isinstance(kind, Noisy) else KINDS[kind]()
    if size is None:
        if std is None:
            raise ValueError(
                f"input_noise={kind!r} needs to know how large the errors are: give X_std to fit, "
                'or set input_noise_std="learn".'
            )
        return _made_for(chosen, scaling, n_classes, n_rows)
    if std is not None:
        raise ValueError(f"X_std is given, so input_noise_std={size!r} has nothing to learn.")
    if isinstance(chosen, Augmented):
        raise ValueError('input_noise="augment" cannot learn the size of errors: use "latent".')
    if isinstance(chosen, FirstOrder):
        warnings.warn(
            'input_noise="first-order" finds next to no errors, whatever there are: its bound '
            'falls with every one that is added. To learn their size use "latent" or "amortised".',
            stacklevel=2,
        )
    without = np.repeat((scaling.levels > 0) | exact, widths(scaling.levels))
    shape = () if size == "learn-one" else (scaling.width,)
    inputs = replace(
        chosen,
        log_std=np.full(shape, np.log(FIRST_STD)),
        known=tuple(bool(w) for w in without),
    )
    return _made_for(inputs, scaling, n_classes, n_rows)


def _made_for(inputs: Noisy, scaling: Scaling, n_classes: int, n_rows: int) -> Inputs:
    """With what they need for a table of this size: a network, or parameters of its rows."""
    if not isinstance(inputs, Amortised):
        return inputs.for_rows(n_rows, scaling.width)
    return replace(inputs, network=Network.start(scaling.width, n_classes, inputs.hidden))


def refuse_pieces(kind: Any) -> None:
    """For kinds that learn something of each row of one fit."""
    if kind == "parametric" or getattr(kind, "by_row", False):
        raise ValueError(
            'input_noise="parametric" has parameters for each row, which partial_fit does not see '
            'again to learn them: use "latent" for rows that come in pieces.'
        )


def errors_for(
    inputs: Inputs, std: np.ndarray | None, X: np.ndarray, usual: np.ndarray | None
) -> np.ndarray | None:
    """The errors of further rows: given, or the usual ones; none for inputs that take none."""
    if isinstance(inputs, Noisy) and not inputs.learned:
        return usual[None] if std is None and usual is not None else std
    if std is not None:
        raise ValueError("X_std is given, but the first rows were learned from without errors.")
    return None


def as_the_kernel_sees(
    std: np.ndarray | None, X: np.ndarray, scaling: Scaling
) -> np.ndarray | None:
    """Errors of X in the user's units, one row for all or one each, scaled; None if all are 0."""
    if std is None or not np.any(std > 0):
        return None
    return np.broadcast_to(scaling.errors(std, X), (len(X), scaling.width))


def mask_of(features: Any, n_features: int, names: Any) -> np.ndarray:
    """True for each feature that is not among those with an error; none is if None."""
    if features is None:
        return np.zeros(n_features, bool)
    mask = np.ones(n_features, bool)
    mask[listed(features, n_features, names, "noisy_features")] = False
    return mask


def typical(inputs: Inputs, given: np.ndarray | None, scaling: Scaling) -> np.ndarray | None:
    """One error per feature, in the user's units: as learned, or the median of those given."""
    if isinstance(inputs, Noisy) and inputs.learned:
        of_columns = np.asarray(inputs.learned_std(scaling.width)) * np.where(
            np.isfinite(scaling.spread), scaling.spread, 0.0
        )
        first = np.cumsum(widths(scaling.levels)) - widths(scaling.levels)
        return of_columns[first]
    return given
