"""All that a report has to say, as numbers, before any word or picture."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gpclf.data import blocks
from gpclf.report.dependence import MOST_FEATURES, Dependence, dependence
from gpclf.report.drift import ColumnDrift, drift
from gpclf.report.importance import Importance, importance
from gpclf.report.intervals import Interval, ece_by_chance, intervals, wilson
from gpclf.report.metrics import reliability_curve
from gpclf.report.ranking import Curve, auc_by_class, precision_recall_curve, roc_curve, thinned
from gpclf.report.subject import Subject, Table
from gpclf.report.unsure import Unsure, surprising, unsure

SHOWN = 12  # classes, columns: the top dozen
DRAWN = 6  # curves in one picture
BINS = 10
SAME = 1e-9  # an index that is 0 but for rounding
PREDICTED = 0.25  # of the work

Tell = Callable[[str, float], None]  # a stage, and the share of all work that is done


@dataclass(frozen=True)
class Reliability:
    """Rows by the probability of their top class: those, hits among them, and their interval."""

    confidence: Float[np.ndarray, "B"]
    accuracy: Float[np.ndarray, "B"]
    low: Float[np.ndarray, "B"]
    high: Float[np.ndarray, "B"]
    count: Int[np.ndarray, "B"]
    error_by_chance: float  # the calibration error of right probabilities: its mean,
    error_at_most: float  # and what it stays below 95 times in 100


@dataclass(frozen=True)
class ClassScores:
    """One class against the others; shares are NaN where there are no rows to take them of."""

    index: int
    rows: int
    predicted: int
    recall: float
    precision: float
    auc: float
    average_precision: float


@dataclass(frozen=True)
class Judged:
    """What labels tell."""

    scores: Mapping[str, Interval]
    guess: Mapping[str, float]  # scores of the shares of training classes, for every row
    by_class: tuple[ClassScores, ...]  # those with most rows
    confusion: Int[np.ndarray, "K L"]  # rows by their class and by the predicted one
    shown: Int[np.ndarray, "K2"]  # the classes of the matrix; others together come last
    curves: tuple[tuple[int, Curve, Curve], ...]  # class, ROC, precision and recall
    reliability: Reliability
    surprising: Int[np.ndarray, "S"]


@dataclass(frozen=True)
class Findings:
    """Of one classifier and one table."""

    n_rows: int
    predicted_shares: Float[np.ndarray, "C"]  # mean probabilities
    judged: Judged | None
    importance: Importance
    dependence: tuple[Dependence, ...]
    unsure: Unsure
    drift: tuple[ColumnDrift, ...]
    seen_before: bool  # the rows are as many as in training, and no column differs


def find(subject: Subject, table: Table, seed: int, tell: Tell) -> tuple[Findings, np.ndarray]:
    """Ask the classifier everything; also the log-probabilities of all rows."""
    rng = np.random.default_rng(seed)
    logs = _predictions(subject, table, tell)
    tell("scores", PREDICTED)
    judged = None if table.y is None else judge(subject, logs, table.y, seed)
    tell("importance of features", 0.35)
    weights = importance(subject, table, rng)
    tell("dependence on features", 0.6)
    counts = max(int(np.sum(weights.low > 0)), 1)  # those that make a difference, or the first
    wanted = [int(f) for f in weights.features[: min(counts, MOST_FEATURES)]]
    found = [dependence(subject, table, feature, rng) for feature in wanted]
    tell("uncertainty", 0.8)
    not_known = unsure(subject, table, logs, rng)
    tell("drift", 0.9)
    moved = tuple(drift(subject, table.X))
    same = len(table.X) == subject.summary.n_rows and all(each.psi < SAME for each in moved)
    shares = np.exp(logs).mean(axis=0)
    curves = tuple(each for each in found if each is not None)
    return Findings(len(logs), shares, judged, weights, curves, not_known, moved, same), logs


def _predictions(subject: Subject, table: Table, tell: Tell) -> np.ndarray:
    """Of all rows, block by block."""
    done = []
    for block in blocks(len(table.X)):
        tell("predictions", PREDICTED * block.start / len(table.X))
        part = table.part(block)
        done.append(subject.log_proba(part.X, part.std))
    return np.concatenate(done)


def judge(subject: Subject, logs: np.ndarray, y: np.ndarray, seed: int) -> Judged:
    """All that labels tell of predictions."""
    shares = np.maximum(subject.summary.class_shares, 1e-12)
    guess = np.log(np.broadcast_to(shares / shares.sum(), logs.shape))
    rows = np.bincount(y, minlength=logs.shape[1])
    order = np.argsort(-rows, kind="stable")
    shown = np.sort(order[: SHOWN if len(order) > SHOWN + 1 else SHOWN + 1])
    drawn = [int(c) for c in np.sort(order[:DRAWN]) if 0 < rows[c] < len(y)]
    if len(rows) == 2:
        drawn = drawn[-1:]
    curves = [
        (c, roc_curve(logs[:, c], y == c), precision_recall_curve(logs[:, c], y == c))
        for c in drawn
    ]
    return Judged(
        intervals(logs, y, seed=seed),
        {name: each.value for name, each in intervals(guess, y, _GUESSED, n=1).items()},
        _by_class(logs, y, shown),
        _confusion(logs.argmax(axis=1), y, shown, logs.shape[1]),
        shown,
        tuple((c, thinned(roc), thinned(pr)) for c, roc, pr in curves),
        reliability(logs, y, seed),
        surprising(logs, y),
    )


_GUESSED = ("nll", "brier", "accuracy")


def reliability(logs: np.ndarray, y: np.ndarray, seed: int) -> Reliability:
    """Bins with rows only."""
    curve = reliability_curve(logs, y, BINS)
    full = curve.count > 0
    hits = np.round(np.where(full, curve.accuracy, 0.0) * curve.count)
    low, high = wilson(hits, curve.count)
    mean, most = ece_by_chance(logs, y, seed=seed)
    confidence, accuracy = curve.confidence[full], curve.accuracy[full]
    return Reliability(confidence, accuracy, low[full], high[full], curve.count[full], mean, most)


def _by_class(logs: np.ndarray, y: np.ndarray, shown: np.ndarray) -> tuple[ClassScores, ...]:
    predicted = logs.argmax(axis=1)
    areas = auc_by_class(logs[:, shown], y) if len(shown) == logs.shape[1] else None
    found = []
    for place, c in enumerate(shown.tolist()):
        own, named = y == c, predicted == c
        right = int(np.sum(own & named))
        mixed = 0 < own.sum() < len(y)
        curve = precision_recall_curve(logs[:, c], own)
        area = areas[place] if areas is not None else roc_curve(logs[:, c], own).area
        found.append(
            ClassScores(
                c,
                int(own.sum()),
                int(named.sum()),
                right / own.sum() if own.any() else np.nan,
                right / named.sum() if named.any() else np.nan,
                float(area) if mixed else np.nan,
                curve.area if mixed else np.nan,
            )
        )
    return tuple(found)


def _confusion(predicted: np.ndarray, y: np.ndarray, shown: np.ndarray, count: int) -> np.ndarray:
    """Rows by class and predicted class; those that are not shown are one more, the last."""
    place = np.full(count, len(shown))
    place[shown] = np.arange(len(shown))
    size = len(shown) + (len(shown) < count)
    return np.bincount(place[y] * size + place[predicted], minlength=size**2).reshape(size, size)


def plain(value: Any) -> Any:
    """The same as dictionaries, lists and numbers, ready for JSON; what is not finite as None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        return plain(dict(zip(names, value, strict=True)))
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
