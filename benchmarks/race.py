"""Race gpclf against GPflow: seconds until the test NLL reaches a given quality.

Same split, standardised inputs, number of inducing points, kernel and start of the kernel; each
in its own process, one after the other. benchmarks/README.md says what is counted.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from math import isfinite
from pathlib import Path

from datasets import find
from racer import add_race_options

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "race.jsonl"


def run(python: str, script: str, options: argparse.Namespace, environment: dict) -> dict:
    """Run a racer, echo its lines, and return what it reported."""
    command = [python, str(HERE / script), "--set", options.set]
    for name in ("data", "seed", "quality", "n_inducing", "limit"):
        if (value := getattr(options, name)) is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    if options.whole_curve:
        command.append("--whole-curve")
    try:
        process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise SystemExit(f"Cannot run {python!r} ({error.strerror}).") from None
    stderr: list[str] = []
    drain = threading.Thread(target=lambda: stderr.extend(process.stderr), daemon=True)
    drain.start()
    # Tests and imports are off the racer's clock, so it may take longer than its limit.
    guard = threading.Timer(2 * options.limit + 180, process.kill)
    guard.daemon = True
    guard.start()
    result: dict = {"racer": script, "curve": []}
    for line in process.stdout:
        fields = json.loads(line)
        if "nll" in fields:
            result["curve"].append(fields)
            echo(f"  {fields['seconds']:7.1f} s   NLL {fields['nll']:.4f}")
        else:
            result |= fields
    process.wait()
    drain.join()
    guard.cancel()
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if "outcome" not in result:
        lines = [line for line in stderr if line.strip()]
        why = "too slow" if process.returncode < 0 else (lines or ["no message"])[-1].strip()
        raise SystemExit(f"{script} stopped with code {process.returncode}: {why}")
    return result


def echo(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def reached(result: dict, quality: float) -> float | None:
    """Seconds at the first test that met the quality."""
    return next((at["seconds"] for at in result["curve"] if at["nll"] <= quality), None)


def describe(result: dict, quality: float) -> str:
    seconds = reached(result, quality)
    best = min((at["nll"] for at in result["curve"] if isfinite(at["nll"])), default=float("nan"))
    time_text = "did not reach it" if seconds is None else f"{seconds:.1f} s"
    return (
        f"{result['racer']:<16} {time_text:<18} best NLL {best:.4f}, {result['outcome']} after "
        f"{result['seconds']:.1f} s and {result['steps']} steps "
        f"(import {result['import_seconds']:.1f} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_race_options(parser)
    parser.add_argument(
        "--rival-python", required=True, metavar="PATH", help="Python of GPflow's environment"
    )
    options = parser.parse_args()
    find(options.set, options.data)
    environment = {
        name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"
    }
    ours = run(sys.executable, "racer_gpclf.py", options, environment)
    print(describe(ours, options.quality), flush=True)
    environment.pop("PYTHONPATH", None)  # ours, not the rival's
    rival = run(options.rival_python, "rival_gpflow.py", options, environment)
    print(describe(rival, options.quality))
    if ours["split"] != rival["split"]:
        raise SystemExit("The two racers were tested on different rows: no race.")

    our_time, rival_time = reached(ours, options.quality), reached(rival, options.quality)
    what = f"NLL {options.quality} on {options.set} with M = {options.n_inducing}"
    if our_time is None:
        print(f"{what}: gpclf did not reach it.")
    elif rival_time is None:
        ratio = rival["seconds"] / our_time
        print(f"{what}: gpclf {our_time:.1f} s; GPflow not at all in {ratio:.1f} times that.")
    else:
        print(
            f"{what}: gpclf {our_time:.1f} s, GPflow {rival_time:.1f} s, "
            f"ratio {rival_time / our_time:.1f}"
        )
    record = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
        **{
            name: getattr(options, name)
            for name in ("set", "seed", "quality", "n_inducing", "limit")
        },
        "seconds": {"gpclf": our_time, "gpflow": rival_time},
        "racers": [ours, rival],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    return int(our_time is None)


if __name__ == "__main__":
    sys.exit(main())
