"""What units of a fit gave, as JSON and arrays, and back to the last bit.

An array comes back as what it was, of NumPy or of JAX and in the same order in memory: products of
matrices depend on that in their last bits. Classes are those of a fixed list, and those that the
model of the fit consists of.
"""

from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

from gpclf import storage
from gpclf.data import Kept
from gpclf.inference.journal import Record
from gpclf.inference.kept import TUPLES
from gpclf.inference.stops import Stop

PLAIN = bool | int | float | str | None


class Codec:
    """To and from JSON, with the arrays beside; an array that is there twice is kept once."""

    def __init__(self, model: Any, arrays: dict[str, np.ndarray] | None = None):
        self.modules = storage.CLASSES | {type(m).__name__: type(m) for m in _modules(model)}
        self.tuples = {kind.__module__ + "." + kind.__name__: kind for kind in TUPLES}
        self.arrays: dict[str, np.ndarray] = {} if arrays is None else arrays
        self._names: dict[int, dict[str, Any]] = {}
        self._held: list[Any] = []  # else another array could come to have the same number

    def told(self, value: Any) -> Any:
        """As JSON."""
        if isinstance(value, Stop):
            return {"stop": value.name}
        if isinstance(value, PLAIN) and not isinstance(value, np.generic):
            return value
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            return self._array(value)
        if isinstance(value, eqx.Module):
            name = type(value).__name__
            if self.modules.get(name) is not type(value):
                raise ValueError(f"A checkpoint cannot hold {name}, which is no class of gpclf.")
            own = vars(value)  # a default of the class is none of these, and is not to become one
            parts = {f.name: self.told(own[f.name]) for f in fields(value) if f.name in own}
            return {"class": name, "parts": parts}
        if isinstance(value, dict):
            return {"dict": {name: self.told(part) for name, part in value.items()}}
        if isinstance(value, Kept):
            return {"kept": [self.told(part) for part in value]}
        if isinstance(value, list):
            return [self.told(part) for part in value]
        if isinstance(value, tuple):
            kind = type(value).__module__ + "." + type(value).__name__
            named = {"named": kind} if kind in self.tuples else {}
            return {"tuple": [self.told(part) for part in value], **named}
        raise ValueError(f"A checkpoint cannot hold {type(value).__name__} {value!r:.80}.")

    def _array(self, value: Any) -> dict[str, Any]:
        """Its name, and what it was."""
        if id(value) not in self._names:
            self._held.append(value)
            plain, name = np.asarray(value), str(len(self.arrays))
            axes = sorted(range(plain.ndim), key=lambda axis: -abs(plain.strides[axis]))
            self.arrays[name] = np.array(plain.transpose(axes), order="C")
            kind = "jax" if isinstance(value, jax.Array) else "numpy"
            kind = "scalar" if isinstance(value, np.generic) else kind
            self._names[id(value)] = {"array": name, "of": kind, "axes": axes}
        return self._names[id(value)]

    def again(self, told: Any) -> Any:
        """What was told."""
        if isinstance(told, list):
            return [self.again(part) for part in told]
        if not isinstance(told, dict):
            return told
        if "stop" in told:
            return Stop[told["stop"]]
        if "array" in told:
            return self._array_again(told)
        if "class" in told:
            module = object.__new__(self.modules[told["class"]])
            for name, part in told["parts"].items():
                object.__setattr__(module, name, self.again(part))
            return module
        if "dict" in told:
            return {name: self.again(part) for name, part in told["dict"].items()}
        if "kept" in told:
            return Kept(self.again(part) for part in told["kept"])
        parts = [self.again(part) for part in told["tuple"]]
        return self.tuples[told["named"]](*parts) if "named" in told else tuple(parts)

    def _array_again(self, told: dict[str, Any]) -> Any:
        plain = np.array(self.arrays[told["array"]], order="C")  # aligned, and free to be written
        if told["of"] == "scalar":
            return plain[()]
        array = plain.transpose(np.argsort(told["axes"]).tolist())
        return jax.device_put(array) if told["of"] == "jax" else array

    def record(self, record: Record) -> dict[str, Any]:
        """One of a journal's, as JSON."""
        return {
            "value": self.told(record.value),
            "generator": record.generator,
            "told": self.told(record.told),
        }

    def record_again(self, told: dict[str, Any]) -> Record:
        """It."""
        return Record(self.again(told["value"]), told["generator"], self.again(told["told"]))


def _modules(model: Any) -> list[eqx.Module]:
    """Those that a tree consists of, inside of each other."""
    parts = jax.tree.leaves(model, is_leaf=lambda part: isinstance(part, eqx.Module))
    own = [part for part in parts if isinstance(part, eqx.Module)]
    inner = [getattr(part, field.name) for part in own for field in fields(part)]
    return own + (_modules(inner) if inner else [])
