"""Classifiers of the comparison that have a Python of their own: one fit, one process."""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sets
from limited import WIDTH

HERE = Path(__file__).parent
ENVIRONMENTS = {  # whose Python: .venv-NAME
    "gpflow": "gpflow",
    "realmlp": "pytabkit",
    "realmlp-nll": "pytabkit",
    "xrfm": "pytabkit",
}


def add_python_options(parser: argparse.ArgumentParser) -> None:
    for name in sorted(set(ENVIRONMENTS.values())):
        parser.add_argument(
            f"--{name}-python",
            type=Path,
            default=HERE.parent / f".venv-{name}" / "bin" / "python",
            metavar="PATH",
            help=f"(default: .venv-{name}/bin/python beside this folder)",
        )


def check(method: str, options: argparse.Namespace) -> None:
    """SystemExit with one sentence where the method's Python is not there."""
    python = python_of(method, options)
    if not python.is_file():
        raise SystemExit(f"No Python '{python}': `make bench-compare-setup` makes it.")


def python_of(method: str, options: argparse.Namespace) -> Path:
    return getattr(options, f"{ENVIRONMENTS[method]}_python")


def fit(
    python: Path, method: str, seed: int, rows: sets.Rows, limit: float | None
) -> dict[str, Any]:
    """ln p of the test rows, seconds of fit and prediction, version; or {"failed": why}."""
    if ENVIRONMENTS[method] == "gpflow":
        X, X_test = sets.one_hot(rows)
        categorical = np.zeros(X.shape[1], bool)
    else:
        X, X_test, numbers = sets.parts(rows)
        categorical = ~np.isin(np.arange(X.shape[1]), numbers)
    # The rivals' Pythons have no use for ours.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npz")
        np.savez(path, X=X, y=rows.y, X_test=X_test, categorical=categorical)
        command = [str(python), str(HERE / "rival_tables.py"), method, str(seed), str(path)]
        try:
            subprocess.run(
                command, env=environment, timeout=limit, check=True, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"cut after {limit:g} s"}
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines() or [f"code {error.returncode}"]
            return {"failed": lines[-1][:WIDTH]}
        with np.load(path) as found:
            return {
                "log_p": found["log_p"],
                "seconds": float(found["seconds"]),
                "predicted": float(found["predicted"]),
                "version": str(found["version"]),
            }
