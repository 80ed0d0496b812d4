"""Which engine finds the posterior, and what each of them cannot do, one sentence each."""

from typing import Any

import numpy as np

from gpclf.inputs import Exact, Inputs
from gpclf.likelihoods import Likelihood, Probit


def engine_for(
    parameters: dict[str, Any], likelihood: Likelihood, inputs: Inputs, weight: np.ndarray
) -> str:
    """The name of the engine, or a ValueError before any work is done."""
    name = parameters["inference"]
    if name not in ("power-ep", "mean-field", "mean-field-plug-in"):
        return "natural" if name == "auto" else name
    if type(inputs) is not Exact or parameters["input_noise"] is not None:
        raise ValueError(
            f'inference={name!r} takes rows as exact: use "natural" where inputs have errors.'
        )
    if parameters["class_subset"] is not None:
        raise ValueError(f'inference={name!r} sees all classes: use "natural" with class_subset.')
    if name.startswith("mean-field"):
        _check_mean_field(name, parameters, likelihood, weight)
    return name


def _check_mean_field(
    name: str, parameters: dict[str, Any], likelihood: Likelihood, weight: np.ndarray
) -> None:
    if type(likelihood) is not Probit:
        raise ValueError(
            f'inference={name!r} is for two classes and likelihood="probit", not '
            f"{type(likelihood).__name__}."
        )
    if parameters["batch_size"] != "auto" or parameters["optimizer"] == "adam":
        raise ValueError(f"inference={name!r} sees all rows at once: use batch_size='auto'.")
    if np.any(weight != 1):
        raise ValueError(f"inference={name!r} counts every row once: weights must be 1.")
