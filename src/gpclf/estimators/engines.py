"""Which engine finds the posterior, and what each of them cannot do, one sentence each."""

from typing import Any

import numpy as np

from gpclf.inputs import Exact, Inputs
from gpclf.likelihoods import Likelihood


def engine_for(
    parameters: dict[str, Any], likelihood: Likelihood, inputs: Inputs, weight: np.ndarray
) -> str:
    """The name of the engine, or a ValueError before any work is done."""
    name = parameters["inference"]
    if name not in ("power-ep", "mean-field"):
        return "natural" if name == "auto" else name
    if type(inputs) is not Exact or parameters["input_noise"] is not None:
        raise ValueError(
            f'inference={name!r} takes rows as exact: use "natural" where inputs have errors.'
        )
    if parameters["class_subset"] is not None:
        raise ValueError(f'inference={name!r} sees all classes: use "natural" with class_subset.')
    return name
