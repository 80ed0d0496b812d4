"""Pictures of a fitted classifier, written to files; matplotlib is imported only when one is drawn.

Figures are made without pyplot, so nothing here changes a notebook's or a program's own plots.
"""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from gpclf.report.metrics import BINS, ece, reliability_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every common form of colour blindness; shapes differ too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GRID = 160  # points per side of the decision surface
CERTAIN = 0.9  # the probability of the dashed line
DPI = 150


def decision_surface(
    classifier: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    path: str | PathLike[str],
    names: tuple[str, str] = ("first feature", "second feature"),
) -> None:
    """Draw the class probabilities over two features, with the rows and the inducing points.

    Each class has a colour, whiter the closer the probabilities are to 1/C: white is "anyone's
    guess".
    """
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"decision_surface needs rows with two features, got shape {X.shape}.")
    classes = classifier.classes_
    if len(classes) > len(COLOURS):
        raise ValueError(
            f"decision_surface draws at most {len(COLOURS)} classes, got {len(classes)}."
        )
    figure = _figure(7.0, 5.6)
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    margin = 0.08 * np.ptp(X, axis=0)
    (left, bottom), (right, top) = X.min(axis=0) - margin, X.max(axis=0) + margin
    first, second = np.linspace(left, right, GRID), np.linspace(bottom, top, GRID)
    grid = np.stack(np.meshgrid(first, second), axis=-1)
    p = np.asarray(classifier.predict_proba(grid.reshape(-1, 2))).reshape(GRID, GRID, -1)

    axes = figure.subplots()
    axes.imshow(
        _blend(p, np.array([to_rgb(colour) for colour in COLOURS[: len(classes)]])),
        extent=(left, right, bottom, top),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
    )
    for c in range(len(classes)):
        margin_of_class = p[..., c] - np.delete(p, c, axis=-1).max(axis=-1)
        if margin_of_class.min() < 0 < margin_of_class.max():
            axes.contour(first, second, margin_of_class, [0.0], colors="#333333", linewidths=1.6)
    sure = p.max(axis=-1)
    if sure.min() < CERTAIN < sure.max():
        axes.contour(
            first, second, sure, [CERTAIN], colors="#333333", linewidths=0.9, linestyles="dashed"
        )
    for label, colour, marker in zip(classes, COLOURS, MARKERS, strict=False):
        look = {"c": colour, "marker": marker, "edgecolors": "white", "linewidths": 0.6}
        axes.scatter(*X[y == label].T, s=24, label=f"class {label}", **look)
    Z = np.reshape(classifier.inducing_points_, (-1, 2))
    axes.scatter(*Z.T, s=34, c="black", marker="x", linewidths=1.3, label="inducing points")
    handles, _ = axes.get_legend_handles_labels()
    handles.append(Line2D([], [], color="#333333", lw=1.6, label="decision boundary"))
    handles.append(Line2D([], [], color="#333333", lw=0.9, ls="--", label=f"{CERTAIN:.0%} sure"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel=names[0])
    axes.set(ylabel=names[1], title="Class probabilities: the whiter, the less sure")
    figure.savefig(path, dpi=DPI)


def reliability_diagram(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], path: str | PathLike[str]
) -> None:
    """Draw confidence against accuracy for each named (log_probabilities, y_index).

    A calibrated predictor lies on the diagonal. The area of a point follows the number of rows in
    its bin; the bars below show how the rows spread over the bins.
    """
    if not 1 <= len(curves) <= len(COLOURS):
        raise ValueError(f"curves must hold 1 to {len(COLOURS)} predictions, got {len(curves)}.")
    figure = _figure(6.2, 7.6)
    from matplotlib.lines import Line2D

    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    upper.plot([0, 1], [0, 1], color="#666666", ls="--", lw=1.2)
    handles = [Line2D([], [], color="#666666", ls="--", lw=1.2, label="perfectly calibrated")]
    width = 0.86 / BINS / len(curves)
    for k, (name, (log_p, y)) in enumerate(curves.items()):
        curve = reliability_curve(log_p, y)
        share = curve.count / curve.count.sum()
        points = curve.confidence, curve.accuracy
        filled = curve.count > 0
        upper.plot(*(x[filled] for x in points), color=COLOURS[k], lw=1.2, alpha=0.55)
        look = {"marker": MARKERS[k], "edgecolors": "white", "linewidths": 0.7, "alpha": 0.85}
        upper.scatter(*points, s=14 + 200 * share, c=COLOURS[k], zorder=3, **look)
        centres = (np.arange(BINS) + 0.5) / BINS + width * (k - (len(curves) - 1) / 2)
        lower.bar(centres, share, width=width, color=COLOURS[k])
        label = f"{name} (ECE {ece(log_p, y):.3f})"
        handles.append(Line2D([], [], color=COLOURS[k], marker=MARKERS[k], mec="w", label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    upper.set(ylim=(-0.03, 1.06), ylabel="accuracy: share of rows where it is right")
    upper.set(title="Reliability of the top class: the larger a point, the more rows")
    lower.set(xlim=(-0.03, 1.06), xlabel="confidence: probability of the top class")
    lower.set_ylabel("share of rows")
    for axes in (upper, lower):
        axes.grid(color="#DDDDDD", lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=DPI)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _blend(
    p: Float[np.ndarray, "H W C"], colours: Float[np.ndarray, "C 3"]
) -> Float[np.ndarray, "H W 3"]:
    """Mix the class colours by probability, then fade to white as the top class nears 1/C."""
    n_classes = p.shape[-1]
    strength = (p.max(axis=-1, keepdims=True) - 1 / n_classes) / (1 - 1 / n_classes)
    return np.clip(1 + 0.55 * strength * (p @ colours - 1), 0, 1)
