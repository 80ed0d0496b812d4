"""Scores of a model and its rivals on rows that they did not learn from."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from gpclf.cli import console, rivals
from gpclf.cli.console import Stage
from gpclf.cli.splits import Split
from gpclf.cli.training import Training
from gpclf.estimators import GPClassifier
from gpclf.report import Interval, intervals

OURS = "gpclf"
HEADINGS = {"nll": "log-loss", "brier": "Brier", "accuracy": "accuracy", "auc": "AUC", "ece": "ECE"}
Scores = Mapping[str, Interval]


Make = Callable[[Any], GPClassifier]  # from a callback


class OutOfFold(NamedTuple):
    """ln p of rows by models that did not learn from them, and their classes 0 … C − 1."""

    logs: dict[str, np.ndarray]
    y: np.ndarray

    def scores(self) -> dict[str, dict[str, Interval]]:
        """Of every method."""
        return {name: intervals(logs, self.y) for name, logs in self.logs.items()}


def spread_out(logs: np.ndarray, own: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """ln p of all classes, from a classifier that may know a part of them."""
    if len(own) == len(classes):
        return logs
    found = np.full((len(logs), len(classes)), -np.inf)
    found[:, np.searchsorted(classes, own)] = logs
    return found


def ours(clf: GPClassifier, train: Training, test: Training, classes: np.ndarray) -> np.ndarray:
    """Fit a fresh classifier, and ln p of other rows."""
    clf.fit(train.rows.X, train.y, sample_weight=train.rows.weight, X_std=train.rows.X_std)
    logs = clf.predict_log_proba(test.rows.X, X_std=test.rows.X_std)
    return spread_out(logs, clf.classes_, classes)


def out_of_fold(
    data: Training,
    splits: Sequence[Split],
    methods: Mapping[str, Make | None],
    seed: int,
    stage: Stage,
) -> OutOfFold:
    """Every method on every split; those without a maker are rivals by their name."""
    classes, index = np.unique(data.y, return_inverse=True)
    encoded = rivals.Encoded.of(data.rows.X) if None in methods.values() else None
    logs: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    steps, done = len(splits) * len(methods), 0
    for number, (train, test) in enumerate(splits, 1):
        for name, make in methods.items():
            where = f"{name}, split {number} of {len(splits)}" if len(splits) > 1 else name
            stage(done / steps, where)
            if make is None:
                assert encoded is not None
                some = encoded._replace(X=encoded.X[train])
                predict = rivals.fit(name, some, index[train], len(classes), seed)
                logs[name].append(predict(encoded.X[test]))
            else:
                clf = make(partial(_told, stage, done, steps))
                logs[name].append(ours(clf, data.part(train), data.part(test), classes))
            done += 1
            stage(done / steps)
    y = np.concatenate([index[split.test] for split in splits])
    return OutOfFold({name: np.concatenate(parts) for name, parts in logs.items()}, y)


def held_out(
    clf: GPClassifier, data: Training, split: Split, names: Sequence[str], seed: int, stage: Stage
) -> OutOfFold:
    """A classifier that learned from one part of the rows, and rivals that do, on the other."""
    classes, _ = np.unique(data.y, return_inverse=True)
    test = data.part(split.test)
    logs = clf.predict_log_proba(test.rows.X, X_std=test.rows.X_std)
    found = out_of_fold(data, [split], dict.fromkeys(names), seed, stage)
    return found._replace(logs={OURS: spread_out(logs, clf.classes_, classes), **found.logs})


def _told(stage: Stage, done: int, steps: int, snapshot: Any) -> None:
    stage((done + snapshot.share) / steps)


def table(scores: Mapping[str, Scores], title: str | None = None) -> Table:
    """A line for each score, a column for each method, with its interval."""
    rows = [
        (heading, *(shown(found[metric]) for found in scores.values()))
        for metric, heading in HEADINGS.items()
    ]
    return console.table(("", *scores), rows, tuple(scores), title=title)


def shown(score: Interval) -> str:
    """0.123 (0.110–0.135)."""
    if not np.isfinite(score.low):
        return f"{score.value:.3f}"
    return f"{score.value:.3f} ({score.low:.3f}–{score.high:.3f})"


def as_json(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """For machines: value and interval of each score; None where there is none."""
    return {
        name: {
            metric: {part: _finite(getattr(one, part)) for part in ("value", "low", "high")}
            for metric, one in found.items()
        }
        for name, found in scores.items()
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def printed(content: Any) -> str:
    """JSON as it goes to standard output."""
    return json.dumps(content, indent=2, ensure_ascii=False)


def class_counts(y: np.ndarray) -> dict[str, int]:
    """How many rows each class has."""
    values, counts = np.unique(y, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}
