"""What all racers share: options, clock, and the JSON lines they print for race.py to read.

A racer is a script that fits one library and prints, one JSON object a line,

    {"racer": ..., "import_seconds": ..., "split": ...}                               first
    {"seconds", "steps", "nll", "accuracy", "brier", "ece", "memory"}                 at each test
    {"outcome": ..., "seconds": ..., "steps": ..., "memory": ...}                     last

where memory is the peak of the whole process so far, in MB. Needs NumPy only: each racer runs under
its own Python.
"""

import argparse
import json
import math
import resource
import sys
import time
import zlib
from collections.abc import Callable

import numpy as np

from datasets import add_data_option, split, standardised
from figures import figures

STEPS_PER_TEST = 20
SECONDS_PER_TEST = 2.0  # of slow steps, fewer to a test

Predict = Callable[[np.ndarray], np.ndarray]  # X to ln p, one column a class


class RaceOver(Exception):
    """This racer has finished; the text says how."""


class Race:
    """One race of one racer: the rows, the limit, and a clock that stops during tests."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        rows = split(options.set, options.seed, folder=options.data, openml=options.openml)
        self.X_train, self.X_test = standardised(rows.X_train, rows.X_test)
        self.y_train, self.y_test = rows.y_train, rows.y_test
        self.n_classes = int(max(rows.y_train.max(), rows.y_test.max())) + 1

    def start(self, racer: str, import_seconds: float) -> None:
        """Start the clock; everything from here on counts, except the tests."""
        fingerprint = zlib.crc32(self.X_test.astype(np.float32).tobytes())
        report(racer=racer, import_seconds=import_seconds, split=fingerprint)
        self.steps = 0
        self._tested = (0, 0.0)
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def stepped(self, loss: float, log_probabilities: Predict) -> None:
        """Count a step; test if one is due; raise RaceOver at the limit or at a loss of NaN."""
        self.steps += 1
        if not math.isfinite(loss):
            raise RaceOver(f"blew up: the loss is not finite at step {self.steps}")
        steps, seconds = self._tested
        many = self.steps - steps >= STEPS_PER_TEST
        since = self.seconds - seconds
        due = (many or since >= SECONDS_PER_TEST) and since >= self.options.every
        if due or self.seconds > self.options.limit:
            self.test(log_probabilities)

    def test(self, log_probabilities: Predict) -> None:
        """Report the figures of the test rows, off the clock; RaceOver at the end of the race."""
        seconds = self.seconds
        scored = figures(log_probabilities(self.X_test), self.y_test)
        report(seconds=seconds, steps=self.steps, **scored, memory=peak_memory())
        self._start += self.seconds - seconds
        self._tested = (self.steps, seconds)
        if not math.isfinite(scored["nll"]):
            raise RaceOver("blew up: the test NLL is not finite")
        if seconds > self.options.limit:
            raise RaceOver("ran into the time limit")

    def end(self, outcome: str) -> None:
        report(outcome=outcome, seconds=self.seconds, steps=self.steps, memory=peak_memory())


def compete(
    description: str | None,
    racer: str,
    import_seconds: float,
    run: Callable[[Race], None],
    methods: tuple[str, ...] = (),
    blow_ups: tuple[type[Exception], ...] = (),
) -> None:
    """Read the options, run, and report how it ended; `blow_ups` are the library's own words."""
    parser = argparse.ArgumentParser(description=description)
    add_data_option(parser)
    parser.add_argument("--set", default="magic", help="name of the data set")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the fit")
    parser.add_argument("--n-inducing", type=count_or_auto, default=200)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds, as counted")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between tests, at least")
    if methods:
        parser.add_argument("--method", choices=methods, default=methods[0])
    race = Race(parser.parse_args())
    race.start(racer, import_seconds)
    try:
        run(race)
        race.end("finished its fit")
    except RaceOver as ending:
        race.end(str(ending))
    except (ArithmeticError, *blow_ups) as error:
        message = str(error).strip() or type(error).__name__
        race.end(f"blew up: {message.splitlines()[0]}")


def count_or_auto(text: str) -> int | str:
    return text if text == "auto" else int(text)


def peak_memory() -> float:
    """Of this process since it began, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def report(**line) -> None:
    print(json.dumps(line), flush=True)
