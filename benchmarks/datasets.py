"""Load a benchmark data set and split it. Needs NumPy only: the rivals' Pythons read it too.

A set is a file ``NAME.npz`` with arrays ``X`` (n x d inputs, not normalised) and ``y`` (classes
0..C-1). The folder is given by ``--data`` or by the environment variable ``GPCLF_DATA``. With
``--openml`` a set that the folder lacks is fetched from OpenML, which needs scikit-learn.
"""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

VARIABLE = "GPCLF_DATA"

# Name and version at OpenML. Rows may come in another order than a folder's.
OPENML = {
    "adult": ("adult", 2),
    "letter": ("letter", 1),
    "magic": ("MagicTelescope", 1),
    "pendigits": ("pendigits", 1),
    "statlog-landsat": ("satimage", 1),
    "waveform-noise": ("waveform-5000", 1),
}
MISSING = -1.0  # the code of a missing value, as if it were one more category


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
    parser.add_argument(
        "--openml", action="store_true", help="fetch a set that the folder lacks from OpenML"
    )


def find(name: str, folder: str | None = None, openml: bool = False) -> Path | None:
    """The file of a set, None if it is to be fetched; SystemExit with one sentence if neither."""
    folder = folder or os.environ.get(VARIABLE)
    path = Path(folder or "", f"{name}.npz")
    if folder and path.is_file():
        return path
    if openml and name in OPENML:
        return None
    if not folder:
        raise SystemExit(f"No data folder: give --data FOLDER or set {VARIABLE}.")
    if not Path(folder).is_dir():
        raise SystemExit(f"No folder {folder!r}: give another by --data or {VARIABLE}.")
    raise SystemExit(
        f"No set {name!r} ({path.name}) in the data folder {folder!r}, "
        f"which --data or {VARIABLE} names."
    )


def load(
    name: str, folder: str | None = None, openml: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, in the file's order."""
    path = find(name, folder, openml)
    if path is None:
        return fetch(name)
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)


def fetch(name: str) -> tuple[np.ndarray, np.ndarray]:
    """From OpenML, kept by scikit-learn; categories as ordinal codes, a missing one as its own."""
    from sklearn.datasets import fetch_openml

    openml_name, version = OPENML[name]
    # This parser needs no pandas and codes the categories of X as 0, 1, ... itself.
    X, y = fetch_openml(
        openml_name, version=version, as_frame=False, parser="liac-arff", return_X_y=True
    )
    X = np.asarray(X, np.float64)
    return np.where(np.isnan(X), MISSING, X), np.unique(y, return_inverse=True)[1]


def split(
    name: str,
    seed: int,
    test_share: float = 0.1,
    folder: str | None = None,
    openml: bool = False,
) -> Split:
    """Shuffle the rows by ``default_rng(seed)``; the first ``test_share`` of them are the test."""
    X, y = load(name, folder, openml)
    order = np.random.default_rng(seed).permutation(len(y))
    n_test = round(test_share * len(y))
    test, train = order[:n_test], order[n_test:]
    return Split(X[train], y[train], X[test], y[test])


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the training rows' mean and standard deviation; a constant column becomes zero."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - mean) / deviation, (test - mean) / deviation
