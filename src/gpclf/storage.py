"""Model files: arrays as safetensors, everything else as JSON in their header. No pickle.

A file names classes from a fixed list and holds numbers and words, so opening one from a stranger
runs nothing of theirs. It is written beside its name and moved there: the old file or the new one,
never half of one.
"""

import json
import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from gpclf import inputs, kernels, likelihoods
from gpclf.gaussian import Moments
from gpclf.model import Model, Prepared

FORMAT = 2
_MODULES = (kernels, likelihoods, inputs)
CLASSES = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
CLASSES |= {"Moments": Moments, "Model": Model, "Prepared": Prepared}


def describe(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """`value` as JSON, its arrays put into `arrays` and named by their place in it."""
    if isinstance(value, eqx.Module):
        name = type(value).__name__
        if CLASSES.get(name) is not type(value):
            raise ValueError(f"{name} is not a class of gpclf, so a model file cannot hold it.")
        parts = {f.name: describe(getattr(value, f.name), arrays) for f in fields(value)}
        return {"class": name, "parts": parts}
    if isinstance(value, np.ndarray | np.generic | jnp.ndarray):
        name = str(len(arrays))
        arrays[name] = np.array(value, order="C")
        return {"array": name}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise ValueError(f"A model file cannot hold {type(value).__name__} {value!r}.")


def restore(description: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `describe` described."""
    if "array" in description:
        return arrays[description["array"]]
    if "value" in description:
        return description["value"]
    kind = CLASSES[description["class"]]
    if not issubclass(kind, eqx.Module):
        raise ValueError(f"{description['class']} is not a class of models.")
    module = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(module, field.name, restore(description["parts"][field.name], arrays))
    return module


def write(path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Header and arrays as one file, there completely or not at all."""
    target = Path(path)
    metadata = {"gpclf": json.dumps({"format": FORMAT, **header})}
    content = to_bytes(arrays, metadata=metadata)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and arrays of a model file, or one sentence about why it is none."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no model file ({error}).") from None
    if "gpclf" not in metadata:
        raise ValueError(f"{path} is not a model file of gpclf.")
    header = json.loads(metadata["gpclf"])
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path} has format {header.get('format')}, but this version of gpclf reads {FORMAT}: "
            "install the version that wrote it."
        )
    return header, arrays
