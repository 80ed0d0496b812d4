"""The pictures of a report: each as a function of what was found, none with a title of its own."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpclf.report.dependence import Dependence
from gpclf.report.drift import MUCH, SOME, ColumnDrift
from gpclf.report.findings import SHOWN, Reliability
from gpclf.report.importance import Importance
from gpclf.report.markup import Markup
from gpclf.report.ranking import Curve
from gpclf.report.subject import Subject
from gpclf.report.svg import DASHES, INK, LINE, SERIES, SOFT, drawing, written
from gpclf.report.unsure import Unsure
from gpclf.report.words import SPACE, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 0.62  # of the height of a bar's row
MOST_STEPS = 300  # of a history


def reliability(found: Reliability, label: str) -> Markup:
    """Confidence against hits with intervals, above how many rows there are."""
    with drawing(4.2) as (figure, first):
        figure.delaxes(first)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3.4, 1))
        upper.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=(0, (4, 3)))
        lengths = np.abs([found.accuracy - found.low, found.high - found.accuracy])
        upper.errorbar(
            found.confidence, found.accuracy, lengths, fmt="o", ms=4.5, lw=1.2, elinewidth=1.4,
            color=SERIES[0], capsize=2.5,
        )  # fmt: skip
        centre = (np.ceil(found.confidence * 10) - 0.5) / 10
        lower.bar(centre, found.count, 0.09, color=SERIES[0], alpha=0.55, lw=0)
        upper.set(ylim=(-0.03, 1.03), ylabel="share that came true")
        lower.set(xlim=(-0.02, 1.02), xlabel="probability of the predicted class", ylabel="rows")
        for axes in (upper, lower):
            axes.grid(axis="y")
        _percents(upper, "xy")
        _thousands(lower)
        return written(figure, label, "reliability")


def confusion(counts: np.ndarray, names: Sequence[str], label: str) -> Markup:
    """Shares of each class's rows by the class predicted, darker the larger."""
    size = len(names)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with drawing(min(1.6 + 0.42 * size, 5.6)) as (figure, axes):
        for i, j in np.ndindex(size, size):
            if counts[i, j]:
                colour = SERIES[0] if i == j else SERIES[1]
                square: dict[str, Any] = {
                    "color": colour,
                    "alpha": 0.08 + 0.42 * shares[i, j],
                    "lw": 0,
                }
                axes.fill_between([j - 0.48, j + 0.48], i - 0.48, i + 0.48, **square)
            text = f"{counts[i, j]:,}" if counts[i, j] else "·"
            small = 10 if size <= 5 else 8 if counts[i, j] < 1000 else 6
            axes.text(j, i, text, ha="center", va="center", fontsize=small, color=INK)
        words = [short(name, 26 if size <= 4 else 14) for name in names]
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if size > 4 else {}
        axes.set_xticks(range(size), [short(name, 14) for name in names], **turned)
        axes.set_yticks(range(size), words)
        axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
        axes.set(xlabel="predicted class", ylabel="class of the row")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return written(figure, label, "confusion")


def curves(lines: Sequence[tuple[str, Curve]], kind: str, label: str) -> Markup:
    """Of each class a curve: kind "roc", or "recall" for precision against recall."""
    with drawing(3.5) as (figure, axes):
        if kind == "roc":
            axes.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=(0, (4, 3)))
        for place, (name, curve) in enumerate(lines):
            style: dict[str, Any] = {
                "color": SERIES[place],
                "ls": DASHES[place],
                "label": short(name),
            }
            drawn = "default" if kind == "roc" else "steps-pre"
            axes.plot(curve.x, curve.y, drawstyle=drawn, **style)
        x, y = ("false alarms", "hits") if kind == "roc" else ("hits (recall)", "precision")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x, ylabel=y)
        axes.grid()
        _percents(axes, "xy")
        if len(lines) > 1:
            axes.legend(loc="lower right" if kind == "roc" else "lower left")
        return written(figure, label, kind)


def importance(found: Importance, names: Sequence[str], label: str) -> Markup:
    """The rise of the log-loss of each feature, with its interval; the first on top."""
    shown = slice(0, SHOWN)
    rise, low, high = found.rise[shown], found.low[shown], found.high[shown]
    words = [short(names[int(f)]) for f in found.features[shown]]
    with drawing(0.75 + 0.27 * len(words)) as (figure, axes):
        places = np.arange(len(words))
        axes.barh(places, np.maximum(rise, 0), WIDE, color=SERIES[0], alpha=0.35, lw=0)
        lengths = np.abs([rise - low, high - rise])
        axes.errorbar(rise, places, xerr=lengths, fmt="o", ms=4, color=SERIES[0], elinewidth=1.4)
        _rows_of_bars(axes, words)
        axes.axvline(0, color=SOFT, lw=0.8)
        loss = "log-loss" if found.by_labels else "expected log-loss"
        axes.set_xlabel(f"rise of the {loss} when shuffled, nats per row")
        return written(figure, label, "importance")


def dependence(found: Dependence, subject: Subject, label: str) -> Markup:
    """The probability of each class along a feature, and how far the model is unsure of it."""
    levels = subject.columns.levels[found.feature] is not None
    names = [short(subject.class_name(int(c))) for c in found.classes]
    with drawing(2.7) as (figure, axes):
        x = np.arange(len(found.grid)) if levels else found.grid
        for k, name in enumerate(names):
            mean, spread = found.mean[:, k], found.spread[:, k]
            low, high = np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1)
            style: dict[str, Any] = {"color": SERIES[k], "label": name}
            if levels:
                shift = (k - (len(names) - 1) / 2) * 0.16
                axes.errorbar(
                    x + shift, mean, [mean - low, high - mean], fmt="osD^"[k], ms=4.5, **style
                )
            else:
                axes.fill_between(x, low, high, color=SERIES[k], alpha=0.16, lw=0)
                axes.plot(x, mean, ls=DASHES[k], **style)
        if levels:
            words = [short(subject.value(found.feature, float(code)), 14) for code in found.grid]
            turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
            axes.set_xticks(x, words, **(turned if len(words) > 4 else {}))
        top = 1.0 if len(subject.classes) <= len(names) or len(names) == 1 else _top(found)
        axes.set(ylim=(-0.02 * top, 1.02 * top), xlabel=short(subject.names[found.feature], 40))
        axes.set_ylabel(
            f"probability of {short(names[0], 14)}" if len(names) == 1 else "probability"
        )
        axes.grid(axis="y")
        _percents(axes, "y")
        if len(names) > 1:
            figure.legend(loc="outside upper left", ncols=2 if len(names) > 3 else len(names))
        return written(figure, label, f"dependence {found.feature}")


def _top(found: Dependence) -> float:
    """Where a picture of some of many classes ends: none may be probable."""
    return float(min(1.0, 1.1 * np.max(found.mean + found.spread)))


def uncertainty(found: Unsure, label: str) -> Markup:
    """Entropy of tenths of the rows, the surest first, and how much of it is the model's own."""
    with drawing(2.9) as (figure, axes):
        places = np.arange(1, len(found.data) + 1)
        axes.bar(places, found.data, 0.72, color=SERIES[0], alpha=0.45, lw=0, label="data: overlap")
        style: dict[str, Any] = {
            "color": SERIES[1],
            "lw": 0,
            "label": "model: too few rows like it",
        }
        axes.bar(places, found.model, 0.72, found.data, **style)
        axes.set(xlabel="tenths of the rows, the surest first", ylabel="uncertainty, nats")
        axes.set_xticks(places)
        axes.grid(axis="y")
        axes.legend(loc="upper left")
        return written(figure, label, "uncertainty")


def drift(found: Sequence[ColumnDrift], names: Sequence[str], label: str) -> Markup:
    """The index of each column, with what chance gives, the most different on top."""
    words = [short(names[each.column]) for each in found]
    with drawing(1.05 + 0.27 * len(words)) as (figure, axes):
        places = np.arange(len(words))
        psi = np.array([each.psi for each in found])
        style: dict[str, Any] = {"color": SERIES[0], "alpha": 0.55, "lw": 0, "label": "this table"}
        axes.barh(places, psi, WIDE, **style)
        chance = [each.chance for each in found]
        axes.plot(chance, places, "|", ms=11, mew=1.6, color=SERIES[1], label="chance alone")
        for mark in (SOME, MUCH):
            axes.axvline(mark, color=SOFT, lw=0.8, ls=(0, (4, 3)))
        axes.set_xlim(0, max(1.08 * psi.max(), 1.08 * max(chance), 1.2 * MUCH))
        _rows_of_bars(axes, words)
        axes.set_xlabel("population stability index")
        figure.legend(loc="outside upper right", ncols=2)
        return written(figure, label, "drift")


def history(found: Mapping[str, np.ndarray], label: str) -> Markup:
    """The bound against time, stage by stage."""
    seconds, bound = np.asarray(found["seconds"]), np.asarray(found["elbo"])
    stage = np.asarray(found["stage"])
    with drawing(2.8) as (figure, axes):
        kept = np.unique(np.linspace(0, len(bound) - 1, MOST_STEPS).astype(int))
        axes.plot(seconds[kept], bound[kept], color=LINE, lw=1, zorder=0)
        for place, name in enumerate(dict.fromkeys(stage.tolist())):
            here = kept[stage[kept] == name]
            style: dict[str, Any] = {
                "color": SERIES[place % 6],
                "marker": "osD^vP"[place % 6],
                "ms": 3.2,
            }
            axes.plot(seconds[here], bound[here], ls="", label=name, **style)
        good = bound[np.isfinite(bound)]
        if len(good) > 4:  # a bad start would flatten all that follows
            low = np.quantile(good, 0.1) - 0.05 * np.ptp(good)
            axes.set_ylim(
                bottom=max(low, good.min() - 0.05 * np.ptp(good)) if low < good.max() else None
            )
        axes.set(xlabel="seconds", ylabel="bound per row, nats")
        axes.grid(axis="y")
        axes.legend(loc="lower right")
        return written(figure, label, "history")


def _rows_of_bars(axes: "Axes", words: Sequence[str]) -> None:
    axes.set_yticks(range(len(words)), words)
    axes.set_ylim(len(words) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _percents(axes: "Axes", which: str) -> None:
    from matplotlib.ticker import PercentFormatter

    form: Any = PercentFormatter(1.0, decimals=0, symbol=f"{SPACE}%")
    if "x" in which:
        axes.xaxis.set_major_formatter(form)
    if "y" in which:
        axes.yaxis.set_major_formatter(form)


def _thousands(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
