"""Two pictures of a fit, on the user's axes or on new ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_FEATURES = 30


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt  # slow to import

    return plt.subplots(layout="constrained")[1]


def plot_history(history: dict[str, np.ndarray], axes: Any) -> Any:
    """The bound against time, stage by stage."""
    axes = _axes(axes)
    for stage in dict.fromkeys(history["stage"]):
        here = history["stage"] == stage
        axes.plot(history["seconds"][here], history["elbo"][here], ".", label=stage)
    axes.plot(history["seconds"], history["elbo"], color="0.7", lw=0.8, zorder=0)
    axes.set(xlabel="seconds", ylabel="ELBO per row")
    axes.legend(frameon=False)
    return axes


def plot_relevance(
    relevance: np.ndarray, names: Sequence[str] | np.ndarray | None, axes: Any
) -> Any:
    """A bar for each feature, the one that matters most on top; the first 30 of many."""
    axes = _axes(axes)
    order = np.argsort(-relevance, kind="stable")[:MOST_FEATURES][::-1]
    labels = [f"feature {i}" if names is None else str(names[i]) for i in order]
    axes.barh(labels, relevance[order])
    axes.set(xlabel="relevance")
    return axes
