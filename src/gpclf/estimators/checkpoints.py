"""A fit that survives: a file from which another process goes on, to the same bits.

The file is written when a stage has ended, and at least every minute: safetensors, everything else
as JSON in their header, as in a model file. It says of which fit it is: the rows by their checksum,
every parameter, the versions of what computes. With another of these the end could not be the same
bits, so that is refused in a sentence, and the file stays as it is.
"""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from gpclf import storage
from gpclf.compilation.disk import processor
from gpclf.data import fingerprint
from gpclf.estimators.records import Codec
from gpclf.inference.history import Progress
from gpclf.inference.journal import Journal, Past

LIBRARIES = ("gpclf", "jax", "jaxlib", "numpy", "scipy")
NO_MATTER = (
    "callback",
    "client",
    "max_seconds",
    "persist",
    "verbose",
)  # they do not change what is computed
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
MOST_WORDS = 60  # letters of a parameter, in a sentence
OTHER_MACHINE = (
    "is from another kind of processor: the fit goes on from it, but its last bits may not be "
    "those of a fit on one machine."
)


class Checkpoint(NamedTuple):
    """Where a fit is kept, and whether to go on from what is there."""

    path: Path
    resume: bool

    @classmethod
    def of(cls, path: Any, resume: bool) -> "Checkpoint | None":
        """As asked for; what is wrong with the place is said before any work is done."""
        if path is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint to go on from.")
            return None
        place = Path(os.fspath(path))
        if place.is_dir():
            raise ValueError(f"checkpoint {place} is a folder: name a file.")
        if not place.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {place.parent}: make it first.")
        if place.exists() and not resume:
            raise ValueError(
                f"{place} is there already: resume=True goes on from it; to begin anew, delete it."
            )
        return cls(place, resume and place.exists())

    def begun(self, clf: Any, data: dict[str, str], seed: int) -> "Kept":
        """What this fit is, compared with that of the file if it goes on."""
        of = {
            "versions": {name: version(name) for name in LIBRARIES},
            "parameters": _parameters(clf),
            "data": data,
        }
        machine = f"{processor()}, {os.cpu_count()} cores"
        if not self.resume:
            return Kept(self, {"of": of, "seed": seed, "machine": machine}, None)
        header, arrays = storage.read(self.path, storage.CHECKPOINT)
        with self.undamaged():
            _refuse(self.path, header["of"], of)
            if header["machine"] != machine:
                warnings.warn(f"{self.path} {OTHER_MACHINE}", stacklevel=2)
            about = {"of": of, "seed": int(header["seed"]), "machine": machine}
        return Kept(self, about, (header, arrays))

    @contextmanager
    def undamaged(self) -> Iterator[None]:
        """A scope in which what the file lacks is a sentence."""
        try:
            yield
        except storage.MOST_DAMAGE as error:
            raise ValueError(f"{self.path} is damaged: it lacks {error}.") from None


class Kept(NamedTuple):
    """A fit that is kept: what it is, and what an earlier process left of it."""

    checkpoint: Checkpoint
    about: dict[str, Any]
    earlier: tuple[dict[str, Any], dict[str, np.ndarray]] | None

    @property
    def seed(self) -> int:
        """Of the fit, which goes on with that of the file where it was drawn at random."""
        return self.about["seed"]

    def journal(self, theta: Any) -> Journal:
        """With what is known already; θ consists of what classes there may be."""
        save = partial(self._save, theta)
        if self.earlier is None:
            save(Past({}, [], 0.0))
            return Journal(save)
        header, arrays = self.earlier
        codec = Codec(theta, arrays)
        with self.checkpoint.undamaged():
            records = {path: codec.record_again(told) for path, told in header["records"].items()}
            columns = zip(*header["lines"], strict=True) if header["lines"] else ()
            lines = [Progress(*line, 1.0, None, None) for line in zip(*columns, strict=True)]  # type: ignore[arg-type]
            return Journal(save, Past(records, lines, float(header["seconds"])))

    def _save(self, theta: Any, past: Past) -> None:
        codec = Codec(theta)
        header = {
            **self.about,
            "seconds": past.seconds,
            "lines": [[line.stage, line.seconds, float(line.elbo)] for line in past.lines],
            "records": {path: codec.record(record) for path, record in past.records.items()},
        }
        storage.write(self.checkpoint.path, header, codec.arrays, storage.CHECKPOINT)


def _parameters(clf: Any) -> dict[str, str]:
    """All that change what is computed, in words: with those of an engine."""
    found = clf.get_params(deep=True)
    drawn = not isinstance(clf.random_state, int | np.integer)  # at random: then by the file's seed
    more = {"random_state": "drawn"} if drawn else {}
    return {k: _in_words(v) for k, v in (found | more).items() if k not in NO_MATTER}


def _in_words(value: Any) -> str:
    """The same for the same in any process."""
    if hasattr(value, "get_params"):  # its parameters have names of their own
        return type(value).__name__
    leaves, structure = jax.tree.flatten(value)
    words = [leaf if isinstance(leaf, str) else _of_leaf(leaf) for leaf in leaves]
    if not isinstance(value, str | int | float | None):
        words.append(ADDRESS.sub("", str(structure)))
    return " ".join(words) or "None"


def _of_leaf(leaf: Any) -> str:
    plain = isinstance(leaf, bool | int | float | np.generic)
    return repr(np.asarray(leaf).item()) if plain else fingerprint(leaf)


def _refuse(path: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """One sentence about the first difference."""
    for name, there in was["versions"].items():
        if there != now["versions"].get(name):
            raise ValueError(
                f"{path} was written with {name} {there}, and this is {now['versions'].get(name)}: "
                "go on with that version, or delete the file to begin anew."
            )
    names = sorted(was["parameters"].keys() | now["parameters"].keys())
    for name in names:
        there, here = (each["parameters"].get(name, "none") for each in (was, now))
        if there != here:
            raise ValueError(
                f"{path} is of a fit with {name}={there:.{MOST_WORDS}}, not {here:.{MOST_WORDS}}: "
                "go on with that, or name another checkpoint."
            )
    for name, there in was["data"].items():
        if there != now["data"].get(name):
            raise ValueError(
                f"{path} is of a fit to other data: {name} differ from what it learned from. "
                "Name another checkpoint."
            )
