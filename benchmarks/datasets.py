"""Load a benchmark data set and split it. Needs NumPy only: the rivals' Pythons read it too.

A set is a file ``NAME.npz`` with arrays ``X`` (n x d inputs, not normalised) and ``y`` (classes
0..C-1). The folder is given by ``--data`` or by the environment variable ``GPCLF_DATA``.
"""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

VARIABLE = "GPCLF_DATA"


class Split(NamedTuple):
    """Training and test rows, X as float64 and y as integers."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def add_data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="FOLDER", help=f"folder of NAME.npz files (default: ${VARIABLE})"
    )


def find(name: str, folder: str | None = None) -> Path:
    """The file of a set; SystemExit with one sentence if it is not there."""
    folder = folder or os.environ.get(VARIABLE)
    if not folder:
        raise SystemExit(f"No data folder: give --data FOLDER or set {VARIABLE}.")
    if not Path(folder).is_dir():
        raise SystemExit(f"No folder {folder!r}: give another by --data or {VARIABLE}.")
    path = Path(folder, f"{name}.npz")
    if not path.is_file():
        raise SystemExit(
            f"No set {name!r} ({path.name}) in the data folder {folder!r}, "
            f"which --data or {VARIABLE} names."
        )
    return path


def load(name: str, folder: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, in the file's order."""
    with np.load(find(name, folder), allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)


def split(name: str, seed: int, test_share: float = 0.1, folder: str | None = None) -> Split:
    """Shuffle the rows by ``default_rng(seed)``; the first ``test_share`` of them are the test."""
    X, y = load(name, folder)
    order = np.random.default_rng(seed).permutation(len(y))
    n_test = round(test_share * len(y))
    test, train = order[:n_test], order[n_test:]
    return Split(X[train], y[train], X[test], y[test])


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the training rows' mean and standard deviation; a constant column becomes zero."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - mean) / deviation, (test - mean) / deviation
