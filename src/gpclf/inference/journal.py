"""What a fit has found so far, so that another process can go on from there to the same bits.

A fit is deterministic: what its steps decide follows from what its passes over rows find, and from
its random generator. So it goes on by being run again, from its beginning, where everything that
takes long is asked of a journal first. What is cheap (plans, samples, algebra, compiled programs)
is simply done again and comes out the same; no engine has a state that somebody else must know.

`once` runs a unit and keeps what it gave, with the generator and the history as they were then;
when the fit is run again, it gives that back at once. Units have units inside: when the outer one
is done, those inside are forgotten, so that a journal holds no more than where the fit is. A
`Place` is for a loop: `mark` keeps where it has come to, and `reached` is where it goes on; what
was marked before is forgotten. A unit is found again by its name, its number among those beside it,
and the units around it.

What is kept must not be changed afterwards, and nothing that lasts may happen outside of units but
what happens again when the fit is run again. Without a `save` all this costs nothing.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpclf.inference.history import History, Progress, Told

T = TypeVar("T")

STAGE, STEP = 5.0, 20.0  # seconds between two savings, where a stage has ended and elsewhere
LONGEST = 60.0  # seconds, where to save takes long
SHARE = 0.05  # of the time that saving may take
OUTERMOST = 2  # units around which nothing but the fit is are stages


class Record(NamedTuple):
    """What a unit gave; where it is one of those that happen in turn, how all stood after it."""

    value: Any
    generator: dict[str, Any] | None = None
    told: Told | None = None


class Past(NamedTuple):
    """What an earlier process kept."""

    records: dict[str, Record]
    lines: list[Progress]
    seconds: float


class Journal:
    """Units that were done, by where they stand; `save` is called with it now and then."""

    def __init__(self, save: "Callable[[Past], None] | None" = None, past: Past | None = None):
        self._save = save
        self._past = past or Past({}, [], 0.0)
        self.records = dict(self._past.records)
        self._ahead = set(self.records)  # that this run has not come to yet
        self._path: list[str] = []
        self._counts = [Counter()]
        self._saved, self._pause = time.perf_counter(), 0.0

    def begin(self, log: History, rng: np.random.Generator) -> None:
        """Whose state belongs to what is kept."""
        self._log, self._rng = log, rng
        log.earlier, log.silent, log.sampled = self._past.seconds, bool(self._ahead), self.keeps

    @property
    def keeps(self) -> bool:
        """Whether anything is kept at all."""
        return self._save is not None

    def once(self, name: str, unit: Callable[[], T]) -> T:
        """What a unit gives: it runs, unless it has run before."""
        if not self.keeps:
            return unit()
        number = self._counts[-1][name]
        self._counts[-1][name] += 1
        with self.inside(name, number):
            path = "/".join(self._path)
            if path in self.records:
                return self.found(path)
            value = unit()
        self.keep(path, value)
        self.save_if_due(STAGE if len(self._path) < OUTERMOST else STEP)
        return value

    @contextmanager
    def inside(self, name: str, number: int) -> Iterator[None]:
        """Units of one turn of a loop, which are forgotten when it is over."""
        if not self.keeps:
            yield
            return
        self._path.append(f"{name} {number}")
        self._counts.append(Counter())
        yield
        path = "/".join(self._path) + "/"
        for other in [other for other in self.records if other.startswith(path)]:
            del self.records[other]
        self._path.pop()
        self._counts.pop()

    def place(self, name: str) -> "Place":
        """One for what is overwritten, beside the units that come next."""
        return Place(self, "/".join([*self._path, name]))

    def keep(self, path: str, value: Any, *, in_turn: bool = True) -> None:
        """Take down what is known there from now on; `in_turn`: with how all stands."""
        if not self.keeps:
            return
        self.records[path] = Record(value)
        if in_turn:
            stood = dict(self._rng.bit_generator.state)
            self.records[path] = Record(value, stood, self._log.told())

    def found(self, path: str) -> Any:
        """What is known there, and all as it stood then."""
        value, generator, told = self.records[path]
        self._ahead.discard(path)
        if generator is not None and told is not None:
            self._rng.bit_generator.state = generator
            self._log.take_up(told, self._past.lines)
        self._log.silent = bool(self._ahead)
        return value

    def save_if_due(self, pause: float) -> None:
        """Save where so many seconds have passed, or more if that takes long."""
        if time.perf_counter() - self._saved >= max(pause, self._pause):
            self.save()

    def save(self) -> None:
        """Now, unless the fit has not come to where it was."""
        if self._save is None or self._ahead:
            return
        began = time.perf_counter()
        self._save(Past(self.records, self._log.lines, self._log.seconds))
        self._saved = time.perf_counter()
        self._pause = min(LONGEST, (self._saved - began) / SHARE)

    def end(self) -> None:
        """Of the fit: everything that was kept has been come to."""
        if self._ahead:
            raise RuntimeError(f"The fit has not come to {sorted(self._ahead)[0]!r} again.")
        self.save()

    @contextmanager
    def as_then(self, generator: dict[str, Any]) -> Iterator[None]:
        """A scope in which the generator is as it was, to draw the same again."""
        now = self._rng.bit_generator.state
        self._rng.bit_generator.state = generator
        yield
        self._rng.bit_generator.state = now


class Place:
    """Where the last of many things is kept."""

    def __init__(self, journal: Journal, path: str):
        self._journal, self._path = journal, path

    def reached(self, start: T) -> T:
        """What was kept last, or else the start."""
        known = self._path in self._journal.records
        return self._journal.found(self._path) if known else start

    def mark(self, value: Any) -> None:
        """A loop has come here."""
        self._journal.keep(self._path, value)
        if self._journal.keeps:
            self._journal.save_if_due(STEP)

    def put(self, value: Any) -> None:
        """Something to know beside the units, when the next of them is done."""
        self._journal.keep(self._path, value, in_turn=False)
