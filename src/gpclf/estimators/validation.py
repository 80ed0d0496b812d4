"""Every complaint about parameters and rows, one sentence each, before any work is done."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from gpclf.data import blocks
from gpclf.data.columns import name_of
from gpclf.estimators.noise import KINDS, LEARNED, RESAMPLE
from gpclf.inputs import Inputs, Noisy
from gpclf.likelihoods.logistic_softmax import LogisticSoftmaxFamily

INFERENCES = (
    "auto", "natural", "gradient", "decoupled", "power-ep", "mean-field", "mean-field-plug-in",
)  # fmt: skip
OPTIMIZERS = ("auto", "lbfgs", "adam", "adadelta", None)
MOST_FULL = 5000  # rows of a full process: matrices of 200 MB a function
MOST_JOINT = 2**26  # numbers in covariances between rows: half a gigabyte
PRECISIONS = ("auto", "mixed", "double")


def check_parameters(parameters: dict[str, Any]) -> None:
    """Refuse parameters that make no sense."""
    _one_of(parameters, "inference", INFERENCES)
    _one_of(parameters, "optimizer", OPTIMIZERS)
    _one_of(parameters, "precision", PRECISIONS)
    _check_engine(parameters)
    if not isinstance(parameters["input_noise"], Noisy):
        _one_of(parameters, "input_noise", (None, *KINDS, RESAMPLE))
    _one_of(parameters, "input_noise_std", (None, *LEARNED))
    if not are_points(parameters["n_inducing"]):
        _count(parameters, "n_inducing", least=1, also=("auto", None))
    _count(parameters, "n_mean_inducing", least=0, also=("auto",))
    _count(parameters, "max_epochs", least=1, also=("auto",))
    _count(parameters, "batch_size", least=1, also=("auto",))
    _count(parameters, "class_subset", least=1, also=(None,))
    rate = parameters["learning_rate"]
    if rate != "auto" and not (isinstance(rate, Real) and 0 < float(rate) <= 1):
        raise ValueError(f"learning_rate must be above 0 and at most 1 or 'auto', got {rate!r}.")
    alpha = parameters["alpha"]
    if not (isinstance(alpha, Real) and 0 < float(alpha) <= 1):
        raise ValueError(f"alpha must be above 0 and at most 1, got {alpha!r}.")
    share = parameters["validation_fraction"]
    if not (isinstance(share, Real) and 0 < float(share) < 1):
        raise ValueError(f"validation_fraction must be above 0 and below 1, got {share!r}.")
    if not (isinstance(parameters["tol"], Real) and float(parameters["tol"]) > 0):
        raise ValueError(f"tol must be a positive number, got {parameters['tol']!r}.")


def _check_engine(parameters: dict[str, Any]) -> None:
    """Refuse what an engine cannot do."""
    by_gradient = parameters["inference"] == "gradient"
    if parameters["optimizer"] == "adadelta" and not by_gradient:
        raise ValueError('optimizer="adadelta" is for inference="gradient": use that or "adam".')
    if parameters["inference"] == "decoupled" and not parameters["share_kernel"]:
        raise ValueError('inference="decoupled" needs one kernel for all: use share_kernel=True.')
    if not by_gradient:
        return
    if parameters["optimizer"] == "lbfgs" and parameters["batch_size"] != "auto":
        raise ValueError(
            'optimizer="lbfgs" with inference="gradient" sees all rows at once: leave batch_size '
            'at "auto", or use optimizer="adam".'
        )
    if parameters["class_subset"] is not None:
        raise ValueError('class_subset needs inference="natural", which draws classes.')


def is_auto(value: Any) -> bool:
    """Whether a parameter that may be an array is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def are_points(value: Any) -> bool:
    """Whether n_inducing holds the points themselves: an array or frame of two axes."""
    return not (value is None or isinstance(value, str | Real)) and np.ndim(value) == 2


def check_full(n_inducing: Any, n_rows: int) -> None:
    """Refuse a full process of too many rows."""
    if n_inducing is None and n_rows > MOST_FULL:
        raise ValueError(
            f"n_inducing=None makes each of the {n_rows:,} rows an inducing point, and that is for "
            f'up to {MOST_FULL:,} rows: use n_inducing="auto" or a number.'
        )


def check_joint(n_rows: int, n_latent: int) -> None:
    """Refuse covariances between too many rows."""
    most = int((MOST_JOINT / n_latent) ** 0.5)
    if n_rows > most:
        raise ValueError(
            f"X has {n_rows:,} rows, but the covariances between all of them, for {n_latent} "
            f"latent function(s), are for up to {most:,}: give fewer rows at once."
        )


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    _count({name: value}, name, least=1, also=())


def drawn_classes(
    subset: int | None, likelihood: Any, inputs: Inputs, n_classes: int, shared: bool
) -> int | None:
    """How many classes a step draws; None for all. One sentence where a few cannot do."""
    if subset is None or subset >= n_classes:
        return None
    if not isinstance(likelihood, LogisticSoftmaxFamily):
        raise ValueError(
            f"class_subset needs a likelihood that is a sum over classes: use "
            f'likelihood="logistic-softmax", not {type(likelihood).__name__}.'
        )
    if not shared:
        raise ValueError("class_subset needs one kernel for all classes: use share_kernel=True.")
    if inputs.estimated:
        raise ValueError(
            f"class_subset needs rows of one node, and {type(inputs).__name__} gives them several: "
            'use input_noise="first-order", or leave class_subset at None.'
        )
    return int(subset)


def _one_of(parameters: dict[str, Any], name: str, allowed: tuple) -> None:
    if not any(parameters[name] is value or parameters[name] == value for value in allowed):
        names = ", ".join(repr(value) for value in allowed)
        raise ValueError(f"{name} must be one of {names}, got {parameters[name]!r}.")


def _count(parameters: dict[str, Any], name: str, least: int, also: tuple) -> None:
    value = parameters[name]
    if any(value is word or (isinstance(value, str) and value == word) for word in also):
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        words = "".join(f" or {word!r}" for word in also)
        raise ValueError(
            f"{name} must be a whole number of at least {least}{words}, got {value!r}."
        )


def check_finite(X: np.ndarray, names: Any = None, levels: Any = False) -> None:
    """Name the first row and column that hold no number; columns of `levels` need none."""
    if all((np.isfinite(X[block]) | levels).all() for block in blocks(len(X))):
        return
    wrong = ~(np.isfinite(X) | levels)
    row, column = np.argwhere(wrong)[0]
    _refuse_entries(wrong, "NaN" if np.isnan(X[row, column]) else "infinity", names)


def unmasked(X: Any, names: Any = None) -> Any:
    """X itself, or the array below a mask that hides nothing; what is hidden is missing."""
    if not isinstance(X, np.ma.MaskedArray) or X.ndim != 2:
        return X
    if np.ma.is_masked(X):
        _refuse_entries(np.ma.getmaskarray(X), "a masked entry", names)
    return X.data


def _refuse_entries(wrong: np.ndarray, what: str, names: Any) -> None:
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    raise ValueError(
        f"Input X contains {what} in row {row}, {name_of(column, names)} ({int(wrong.sum())} "
        "such entries in all): drop or impute them, for example with sklearn.impute.SimpleImputer."
    )
