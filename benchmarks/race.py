"""Race gpclf against other Gaussian process classifiers: seconds until the best rival's quality.

Same split, standardised inputs, inducing points and start of the kernel; each racer in a process of
its own, one after the other. benchmarks/README.md says what is counted.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from statistics import geometric_mean

from datasets import add_data_option, find

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "race.jsonl"

SETS = ["magic", "adult", "statlog-landsat", "letter", "pendigits", "waveform-noise"]

# Rival: which Python, which script, which method.
RIVALS = {
    "gpflow-adam": ("gpflow", "rival_gpflow.py", "adam"),
    "gpflow-natural": ("gpflow", "rival_gpflow.py", "natural"),
    "gpytorch-adam": ("gpytorch", "rival_gpytorch.py", "adam"),
    "gpytorch-natural": ("gpytorch", "rival_gpytorch.py", "natural"),
    "sklearn-gp": ("own", "rival_sklearn.py", "gp"),
}
BEST_TWO = ["gpflow-adam", "gpytorch-adam"]

SLACK = 0.002  # The quality to reach is the best rival's NLL at its end plus this.
RATIO_TARGET = 10.0  # on each set
MEAN_RATIO_TARGET = 20.0  # geometric, over the sets
NLL_TARGET = 0.003  # above the best rival's, at the end, at most


@dataclass
class Run:
    """One racer on one set: its tests, and how it ended."""

    method: str
    curve: list[dict] = field(default_factory=list)
    racer: str = ""
    split: int = 0
    outcome: str = ""
    seconds: float = 0.0

    @property
    def end_nll(self) -> float | None:
        """At the last test that gave a number."""
        return next((test["nll"] for test in reversed(self.curve) if isfinite(test["nll"])), None)

    def reached(self, quality: float) -> float | None:
        """Seconds at the first test that met the quality."""
        return next((test["seconds"] for test in self.curve if test["nll"] <= quality), None)


def race(method: str, command: list[str], environment: dict[str, str], guard: float) -> Run:
    """Run a racer for at most `guard` seconds; a stop in the middle is an outcome, not an error."""
    try:
        process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise SystemExit(f"Cannot run {command[0]!r} ({error.strerror}).") from None
    output, complaints = process.stdout, process.stderr
    assert output is not None  # both are pipes
    assert complaints is not None
    errors: list[str] = []
    drain = threading.Thread(target=lambda: errors.extend(complaints), daemon=True)
    drain.start()
    timer = threading.Timer(guard, process.kill)
    timer.daemon = True
    timer.start()
    run = Run(method)
    try:
        for line in output:
            take(json.loads(line), run)
        process.wait()
    finally:
        process.kill()  # if this race is given up, so is the racer
        timer.cancel()
    drain.join()
    echo(" " * 60 + "\r")
    lines = [line.strip() for line in errors if line.strip()] or ["no message"]
    if not run.racer:
        raise SystemExit(f"{method} did not start: {lines[-1]}")
    if not run.outcome:
        why = "too long outside its clock" if process.returncode < 0 else lines[-1]
        run.outcome = f"stopped with code {process.returncode}: {why}"
        run.seconds = run.curve[-1]["seconds"] if run.curve else 0.0
    return run


def take(line: dict, run: Run) -> None:
    """Add one line of a racer, as racer.py describes them, to its run."""
    if "nll" in line:
        run.curve.append(line)
        echo(f"  {run.method} {line['seconds']:7.1f} s   NLL {line['nll']:.4f}")
    elif "racer" in line:
        run.racer, run.split = line["racer"], line["split"]
    else:
        run.outcome, run.seconds = line["outcome"], line["seconds"]


def echo(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


class Course:
    """The options as commands: how each racer is called."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.pythons = {
            "own": sys.executable,
            "gpflow": options.gpflow_python,
            "gpytorch": options.gpytorch_python,
        }
        environment = dict(os.environ)
        # Compilation counts: no racer may find what an earlier run has compiled.
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        self.own_environment = {**environment, "GPCLF_CACHE": "off"}
        environment.pop("PYTHONPATH", None)  # ours, not the rivals'
        self.rival_environment = environment

    def gpclf(self, name: str, n_inducing: int | str, method: str) -> Run:
        """To the end of its fit, however long."""
        command = [
            *self._command("own", "racer_gpclf.py", name),
            f"--n-inducing={n_inducing}",
        ]
        return race(method, command, self.own_environment, guard=3600)

    def rival(self, name: str, method: str) -> Run:
        """To the time limit, or to its end if that is earlier."""
        python, script, variant = RIVALS[method]
        limit = self.options.limit
        command = [
            *self._command(python, script, name),
            f"--n-inducing={self.options.n_inducing}",
            f"--method={variant}",
            f"--limit={limit}",
            f"--every={self.options.every}",
        ]
        # Tests and imports are off the racer's clock, so it takes longer than its limit.
        return race(method, command, self.rival_environment, guard=4 * limit + 180)

    def _command(self, python: str, script: str, name: str) -> list[str]:
        options = self.options
        command = [self.pythons[python], str(HERE / script)]
        command += ["--set", name, "--seed", str(options.seed)]
        if options.data:
            command += ["--data", options.data]
        return [*command, "--openml"] if options.openml else command


def number(value: float | None) -> float:
    """What never came about is infinitely late, or bad."""
    return inf if value is None else value


@dataclass
class Row:
    """One set: gpclf, gpclf with all defaults, and the rivals."""

    name: str
    ours: Run
    defaults: Run
    rivals: list[Run]

    def __post_init__(self) -> None:
        self.our_nll = number(self.ours.end_nll)
        self.rival_nll = min(number(rival.end_nll) for rival in self.rivals)
        self.quality = self.rival_nll + SLACK
        times = [(number(rival.reached(self.quality)), rival.method) for rival in self.rivals]
        self.rival_seconds, self.fastest = min(times)
        self.our_seconds = self.ours.reached(self.quality)
        self.excess = self.our_nll - self.rival_nll

    @property
    def ratio(self) -> float:
        """How many times sooner gpclf was there; 0 if it never was."""
        return self.rival_seconds / self.our_seconds if self.our_seconds else 0.0

    def cells(self) -> list[str]:
        reached = self.our_seconds is not None
        return [
            self.name,
            f"{self.quality:.4f}",
            f"{self.our_seconds:.1f}" if reached else "not reached",
            f"{self.rival_seconds:.1f}",
            self.fastest,
            f"{self.ratio:.1f}" if reached else "not reached",
            f"{self.our_nll:.4f}",
            f"{self.rival_nll:.4f}",
            f"{self.excess:+.4f}",
            f"{number(self.defaults.end_nll):.4f}",
            f"{self.defaults.seconds:.1f}",
        ]


HEADINGS = [
    "set", "quality", "gpclf s", "rival s", "rival", "ratio",
    "gpclf end NLL", "rival end NLL", "difference", "defaults NLL", "defaults s",
]  # fmt: skip


def run_set(name: str, course: Course, record) -> Row:
    """All racers on one set, one after the other, each reported as it ends."""
    options = course.options
    ours = record(name, course.gpclf(name, options.n_inducing, "gpclf"))
    rivals = [record(name, course.rival(name, method)) for method in options.rivals]
    defaults = record(name, course.gpclf(name, "auto", "gpclf-defaults"))
    if len({run.split for run in (ours, defaults, *rivals)}) > 1:
        raise SystemExit("The racers were tested on different rows: no race.")
    return Row(name, ours, defaults, rivals)


def recorder(options: argparse.Namespace):
    """A function that prints a run, writes its tests and outcome to the file, and returns it."""
    RESULTS.parent.mkdir(exist_ok=True)
    common = {"when": time.strftime("%Y-%m-%dT%H:%M:%S"), "seed": options.seed}

    def record(name: str, run: Run) -> Run:
        nll = run.end_nll
        print(
            f"{name:<16} {run.method:<17} "
            f"{'no test' if nll is None else f'NLL {nll:.4f}'}, {run.outcome} "
            f"({run.seconds:.1f} s, {len(run.curve)} tests, {run.racer})",
            flush=True,
        )
        whose = {**common, "set": name, "method": run.method}
        ending = {"outcome": run.outcome, "seconds": run.seconds, "racer": run.racer}
        settings = {"n_inducing": options.n_inducing, "limit": options.limit}
        with RESULTS.open("a") as file:
            for test in run.curve:
                file.write(json.dumps({**whose, **test}) + "\n")
            file.write(json.dumps({**whose, **ending, **settings}) + "\n")
        return run

    return record


def summary(rows: list[Row]) -> int:
    """Print the table and each target beside what was got; 1 if one is not met."""
    print("\n| " + " | ".join(HEADINGS) + " |")
    print("| --- | ---: | ---: | ---: | --- |" + " ---: |" * (len(HEADINGS) - 5))
    for row in rows:
        print("| " + " | ".join(row.cells()) + " |")
    least = min(row.ratio for row in rows)
    mean = geometric_mean([row.ratio for row in rows]) if least > 0 else 0.0
    most = max(row.excess for row in rows)
    worst = max(number(row.defaults.end_nll) - row.rival_nll for row in rows)
    targets = [
        (f"ratio at least {RATIO_TARGET:g} on each set: least {least:.1f}", least >= RATIO_TARGET),
        (
            f"geometric mean of ratios at least {MEAN_RATIO_TARGET:g}: {mean:.1f}",
            mean >= MEAN_RATIO_TARGET,
        ),
        (
            f"end NLL at most {NLL_TARGET} above the best rival's: most {most:+.4f}",
            most <= NLL_TARGET,
        ),
        (f"with all defaults below it on each set: most {worst:+.4f}", worst < 0),
    ]
    print()
    for text, met in targets:
        print(f"{text}: {'met' if met else 'not met'}")
    return int(not all(met for _, met in targets))


def parsed(description: str | None, **defaults) -> argparse.Namespace:
    """The options of a race, once everything it needs is found."""
    parser = argparse.ArgumentParser(description=description)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument(
        "--rivals",
        nargs="+",
        default=BEST_TWO,
        choices=[*RIVALS, "all"],
        metavar="NAME",
        help=f'of {", ".join(RIVALS)}, or "all" (default: {" ".join(BEST_TWO)})',
    )
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the fits")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds of a rival, as counted")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between a rival's tests")
    parser.add_argument("--n-inducing", type=int, default=200)
    for library in ("gpflow", "gpytorch"):
        parser.add_argument(
            f"--{library}-python",
            default=str(HERE.parent / f".venv-{library}" / "bin" / "python"),
            metavar="PATH",
            help=f"(default: .venv-{library}/bin/python beside this folder)",
        )
    parser.set_defaults(**defaults)
    options = parser.parse_args()
    if "all" in options.rivals:
        options.rivals = list(RIVALS)
    for name in options.sets:
        find(name, options.data, options.openml)
    for method in options.rivals:
        python = Course(options).pythons[RIVALS[method][0]]
        if not Path(python).is_file():
            raise SystemExit(f"No Python {python!r}: `make bench-setup` makes it.")
    return options


def main() -> int:
    options = parsed(__doc__)
    course, record = Course(options), recorder(options)
    return summary([run_set(name, course, record) for name in options.sets])


if __name__ == "__main__":
    sys.exit(main())
