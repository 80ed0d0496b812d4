"""Parcels: a function and what it knows, as bytes for another process.

Arrays of JAX travel as NumPy's: they would come back in single precision where the other process
is not in JAX's 64-bit mode. A program of ours travels as its name, and is compiled, or found on
disk, where it arrives. Modules travel as their fields: Equinox marks what is absent by an object of
each process, and with that of another one JAX would take them for modules of another kind.
"""

import io
from collections import OrderedDict
from dataclasses import fields
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import cloudpickle
import equinox as eqx
import jax
import numpy as np

REMEMBERED = 4  # orders that a process has opened last: a pass is one


class Packer(cloudpickle.Pickler):
    """Takes functions made inside other functions, too."""

    def reducer_override(self, obj: Any) -> Any:
        """Arrays of JAX as NumPy's."""
        if isinstance(obj, jax.Array):
            return np.asarray(obj).__reduce__()
        if isinstance(obj, eqx.Module):
            there = vars(obj)
            return _module, (
                type(obj),
                {f.name: there[f.name] for f in fields(obj) if f.name in there},
            )
        return super().reducer_override(obj)


def _module(kind: type, values: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def packed(content: Any) -> bytes:
    """Anything, as bytes."""
    stream = io.BytesIO()
    Packer(stream).dump(content)
    return stream.getvalue()


def opened(parcel: bytes) -> Any:
    """What was packed."""
    return cloudpickle.loads(parcel)


class Order(NamedTuple):
    """A parcel for many tasks, and what tells it from others."""

    parcel: bytes
    name: str

    @classmethod
    def of(cls, content: Any) -> "Order":
        """Packed."""
        parcel = packed(content)
        return cls(parcel, blake2b(parcel, digest_size=12).hexdigest())

    def opened(self) -> Any:
        """What was packed: the same object for the same bytes, while it is remembered."""
        with _lock:
            if self.name in _opened:
                _opened.move_to_end(self.name)
            else:
                _opened[self.name] = opened(self.parcel)
                if len(_opened) > REMEMBERED:
                    _opened.popitem(last=False)
            return _opened[self.name]


_opened: OrderedDict[str, Any] = OrderedDict()
_lock = Lock()
