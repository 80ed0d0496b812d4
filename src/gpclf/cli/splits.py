"""Which rows are learned from and which are scored: at random by class, by group, or by time."""

import itertools
from typing import NamedTuple

import numpy as np

from gpclf.cli.errors import Mistake


class Split(NamedTuple):
    """Rows to learn from, and rows to score."""

    train: np.ndarray
    test: np.ndarray


def holdout(
    share: float, y: np.ndarray, seed: int, group: np.ndarray | None, time: np.ndarray | None
) -> Split:
    """A share of each class apart; of whole groups; or the latest rows."""
    if time is not None:
        order = np.argsort(time, kind="stable")
        first = time[order[round(len(y) * (1 - share))]]
        return _sound(Split(np.flatnonzero(time < first), np.flatnonzero(time >= first)), y)
    if group is not None:
        place = _places(y, seed, group, len(np.unique(group)))
        apart = place < max(1, round((place.max() + 1) * share))
    else:
        rng = np.random.default_rng(seed)
        apart = np.zeros(len(y), bool)
        for c in range(int(y.max()) + 1):
            rows = rng.permutation(np.flatnonzero(y == c))
            apart[rows[: min(round(len(rows) * share), len(rows) - 1)]] = True
    return _sound(Split(np.flatnonzero(~apart), np.flatnonzero(apart)), y)


def folds(
    count: int, y: np.ndarray, seed: int, group: np.ndarray | None, time: np.ndarray | None
) -> list[Split]:
    """Each row is scored once; with `time` after rows before it only, and the first ones never."""
    if time is not None:
        ends = np.quantile(time, np.arange(1, count + 1) / (count + 1), method="lower")
        edges = np.append(ends, np.inf)
        pairs = itertools.pairwise(edges)
        return [
            _sound(Split(np.flatnonzero(time <= a), np.flatnonzero((time > a) & (time <= b))), y)
            for a, b in pairs
        ]
    if group is not None and len(np.unique(group)) < count:
        raise Mistake(f"--cv {count} needs as many groups, but there are {len(np.unique(group))}.")
    place = _places(y, seed, group, count)
    return [
        _sound(Split(np.flatnonzero(place != k), np.flatnonzero(place == k)), y)
        for k in range(count)
    ]


def _places(y: np.ndarray, seed: int, group: np.ndarray | None, count: int) -> np.ndarray:
    """The fold of each row: each class spread evenly; −1 for the only row of a class."""
    rng = np.random.default_rng(seed)
    place = np.full(len(y), -1)
    if group is not None:
        _, index = np.unique(group, return_inverse=True)
        return (rng.permutation(index.max() + 1) % count)[index]
    offset = 0
    for c in range(int(y.max()) + 1):
        rows = rng.permutation(np.flatnonzero(y == c))
        if len(rows) > 1:
            place[rows] = (offset + np.arange(len(rows))) % count
            offset += len(rows)
    return place


def _sound(split: Split, y: np.ndarray) -> Split:
    """The split, if there are rows to score and two classes to learn."""
    if not len(split.test) or len(np.unique(y[split.train])) < 2:
        raise Mistake(
            "The rows to learn from have one class only, or none are left to score: use more rows, "
            "fewer folds or another --group or --time."
        )
    return split
