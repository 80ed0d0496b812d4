"""Model files: arrays as safetensors, everything else as JSON in their header. No pickle.

A file names classes from a fixed list and holds numbers and words, so opening one from a stranger
runs nothing of theirs. It is written beside its name and moved there: the old file or the new one,
never half of one. A checksum of all its bytes tells one that was altered since.
"""

import hashlib
import json
import os
import re
import secrets
import stat
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from gpclf import inputs, kernels, likelihoods
from gpclf.gaussian import Moments
from gpclf.model import Model, Prepared

FORMAT = 8


class Kind(NamedTuple):
    """What a file is, in a word of its header and in words."""

    word: str
    called: str


MODEL = Kind("gpclf", "model file")
CHECKPOINT = Kind("gpclf-checkpoint", "checkpoint")
MOST_HEADER = 2**25  # bytes
NO_CHECKSUM = b"0" * 64  # stands for it while it is computed
CHECKSUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')
MOST_DAMAGE = (KeyError, IndexError, TypeError, AttributeError, RecursionError, UnicodeError)
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
    if isinstance(value, tuple):
        return {"tuple": [describe(part, arrays) for part in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise ValueError(f"A model file cannot hold {type(value).__name__} {value!r}.")


def restore(description: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `describe` described."""
    if "array" in description:
        return arrays[description["array"]]
    if "value" in description:
        return description["value"]
    if "tuple" in description:
        return tuple(restore(part, arrays) for part in description["tuple"])
    kind = CLASSES[description["class"]]
    if not issubclass(kind, eqx.Module):
        raise ValueError(f"{description['class']} is not a class of models.")
    module = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(module, field.name, restore(description["parts"][field.name], arrays))
    return module


def write_file(path: str | os.PathLike, content: bytes) -> None:
    """A file, there completely or not at all; one sentence about why it cannot be."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}: make it first.")
    try:
        _replace(target, content)
    except OSError as error:
        if error.errno is None:
            raise
        # it names no file, or the one beside that which the user named
        raise OSError(error.errno, error.strerror, str(target)) from None


def write(
    path: str | os.PathLike,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    kind: Kind = MODEL,
) -> None:
    """Header and arrays as one file, there completely or not at all."""
    metadata = {
        kind.word: json.dumps({"format": FORMAT, **header}),
        "sha256": NO_CHECKSUM.decode(),
    }
    content = to_bytes(arrays, metadata=metadata)
    first, last = _place(content)
    checksum = hashlib.sha256(content).hexdigest().encode()
    write_file(path, content[:first] + checksum + content[last:])


def _replace(target: Path, content: bytes) -> None:
    """Put a file into the place of another, with the mode that writing there would have given."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    temporary.touch(exist_ok=False)
    try:
        with temporary.open("wb") as file:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink()
        raise


def _place(content: bytes) -> tuple[int, int]:
    """Where the checksum stands, or an empty place if there is none."""
    found = CHECKSUM.search(content)
    return (0, 0) if found is None else found.span(1)


def read(
    path: str | os.PathLike, kind: Kind = MODEL
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and arrays of a file of this kind, or one sentence about why it is none."""
    with open(path, "rb") as file:  # no more than its header, unless that is one of ours
        length = int.from_bytes(file.read(8), "little")
        header = file.read(min(length, MOST_HEADER))
        first, last = _place(header)
        if first == last:
            raise ValueError(f"{path} is damaged or no {kind.called} of gpclf.")
        content = length.to_bytes(8, "little") + header + file.read()
    first, last = first + 8, last + 8
    plain = content[:first] + NO_CHECKSUM + content[last:]
    if hashlib.sha256(plain).hexdigest().encode() != content[first:last]:
        raise ValueError(f"{path} is damaged: its checksum is that of another content.")
    try:
        about = json.loads(content[8 : 8 + length])["__metadata__"]
        other = next((k for k in (MODEL, CHECKPOINT) if k.word in about and k != kind), None)
        if other is not None:
            raise ValueError(f"it is a {other.called}")
        header = json.loads(about[kind.word])
        arrays = from_bytes(content)
        written = header["format"]
    except (SafetensorError, ValueError, *MOST_DAMAGE) as error:
        raise ValueError(f"{path} is no {kind.called} of gpclf ({error}).") from None
    if written != FORMAT:
        raise ValueError(
            f"{path} has format {written}, but this version of gpclf reads {FORMAT}: install the "
            "version that wrote it."
        )
    return header, arrays
