"""What both racers share: options, clock, and the JSON lines they print for race.py to read.

A racer is a script that fits one library and prints, one JSON object a line,

    {"racer": ..., "import_seconds": ..., "split": ...}    first
    {"seconds": ..., "steps": ..., "nll": ...}             each time it is tested
    {"outcome": ..., "seconds": ..., "steps": ...}         last

Needs NumPy only: each racer runs under its own Python.
"""

import argparse
import json
import time
import zlib
from collections.abc import Callable

import numpy as np

from datasets import add_data_option, split, standardised


class RaceOver(Exception):
    """This racer has finished; the text says how."""


def add_race_options(parser: argparse.ArgumentParser) -> None:
    add_data_option(parser)
    parser.add_argument("--set", default="magic", help="name of the data set")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the fit")
    parser.add_argument("--quality", type=float, default=0.300, help="test NLL to reach")
    parser.add_argument("--n-inducing", type=int, default=200)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds, as counted")
    parser.add_argument(
        "--whole-curve", action="store_true", help="go on after the quality is reached"
    )


class Race:
    """One race of one racer: the rows, the finishing line, and a clock that stops during tests."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        rows = split(options.set, options.seed, folder=options.data)
        self.X_train, self.X_test = standardised(rows.X_train, rows.X_test)
        self.y_train, self.y_test = rows.y_train, rows.y_test
        self.n_classes = int(rows.y_train.max()) + 1

    def start(self, racer: str, import_seconds: float) -> None:
        """Start the clock; everything from here on counts, except the tests."""
        fingerprint = zlib.crc32(self.X_test.astype(np.float32).tobytes())
        report(racer=racer, import_seconds=import_seconds, split=fingerprint)
        self.steps = 0
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def test(self, steps: int, log_probabilities: Callable[[np.ndarray], np.ndarray]) -> None:
        """Report the NLL of the test rows, off the clock; raise RaceOver at the end of the race."""
        seconds, self.steps = self.seconds, steps
        log_p = np.asarray(log_probabilities(self.X_test))
        nll = -float(np.mean(log_p[np.arange(len(self.y_test)), self.y_test]))
        report(seconds=seconds, steps=steps, nll=nll)
        self._start += self.seconds - seconds
        if not np.isfinite(nll):
            raise RaceOver("blew up: the test NLL is not finite")
        if nll <= self.options.quality and not self.options.whole_curve:
            raise RaceOver("reached the quality")
        if seconds > self.options.limit:
            raise RaceOver("ran into the time limit")

    def end(self, outcome: str) -> None:
        report(outcome=outcome, seconds=self.seconds, steps=self.steps)


def report(**line) -> None:
    print(json.dumps(line), flush=True)
