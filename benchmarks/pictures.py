"""Pictures of the comparison: mean ranks with a critical difference, and against training rows."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from summary import critical_difference


def groups(means: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """First and last of each longest run of sorted means that lie within the difference."""
    lasts = [int(np.searchsorted(means, low + difference, "right")) - 1 for low in means]
    runs = [(first, last) for first, last in enumerate(lasts) if last > first]
    return [(first, last) for first, last in runs if first == 0 or last > lasts[first - 1]]


def ranks(path: Path, ranks: np.ndarray, methods: list[str], title: str) -> None:
    """Demšar's picture: bars join methods whose mean ranks cannot be told apart (Nemenyi, 5 %)."""
    n_sets, count = ranks.shape
    difference = critical_difference(count, n_sets)
    order = np.argsort(ranks.mean(axis=0))
    means = ranks.mean(axis=0)[order]
    bars = groups(means, difference)
    half = (count + 1) // 2
    first_label = 1.0 + 0.35 * len(bars)
    figure = Figure(figsize=(7, 1.1 + 0.35 * (half + len(bars) / 3)))
    axes = figure.subplots()
    axes.hlines(0, 1, count, color="black", lw=1)
    for rank in range(1, count + 1):
        axes.vlines(rank, -0.15, 0, color="black", lw=1)
        axes.text(rank, -0.25, str(rank), ha="center", va="bottom")
    axes.hlines(-1.2, 1, 1 + difference, color="black", lw=2)
    axes.text(1 + difference / 2, -1.3, f"CD = {difference:.2f}", ha="center", va="bottom")
    for place, mean in enumerate(means):
        left = place < half
        height = first_label + (place if left else count - 1 - place) * 0.9
        edge = 0.6 if left else count + 0.4
        axes.plot([mean, mean, edge], [0, height, height], color="black", lw=0.8)
        name = methods[order[place]]
        text = f"{name}  {mean:.2f} " if left else f" {mean:.2f}  {name}"
        axes.text(edge, height, text, ha="right" if left else "left", va="center")
    for row, (first, last) in enumerate(bars):
        height = 0.4 + 0.35 * row
        axes.hlines(height, means[first] - 0.05, means[last] + 0.05, color="black", lw=3)
    axes.set_ylim(first_label + half * 0.9, -2.2)
    axes.set_xlim(0.5, count + 0.5)
    axes.axis("off")
    axes.set_title(f"{title}, {n_sets} sets", fontsize="medium")
    figure.savefig(path, bbox_inches="tight", dpi=150)
    print(f"\n{path} written")


def by_rows(path: Path, of_rows: dict[int | None, np.ndarray], methods: list[str]) -> None:
    """Mean rank by log-loss against training rows; sets with fewer rows are left out there."""
    figure = Figure(figsize=(7, 4.5))
    axes = figure.subplots()
    places = np.arange(len(of_rows))
    means = np.array([ranks.mean(axis=0) for ranks in of_rows.values()])
    for number, method in enumerate(methods):
        style = {"lw": 3, "color": "black"} if method == "gpclf" else {"lw": 1.2}
        axes.plot(places, means[:, number], "o-", ms=4, label=method, **style)
    axes.set_xticks(
        places,
        [f"{'all' if n is None else n}\n{len(ranks)} sets" for n, ranks in of_rows.items()],
    )
    axes.invert_yaxis()
    axes.set_xlabel("training rows")
    axes.set_ylabel("mean rank by log-loss, 1 is best")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path, bbox_inches="tight", dpi=150)
    print(f"\n{path} written")
