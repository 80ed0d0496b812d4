"""The picture of a comparison: a point and its interval for each method."""

from pathlib import Path

from gpclf.report import Interval

SUFFIXES = (".png", ".svg", ".pdf")
OURS, OTHERS = "#0072B2", "#777777"


def scores_drawn(found: dict[str, Interval], path: Path, kind: str, data: str) -> None:
    """Log-loss of every method, the best on top."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(7.0, 1.3 + 0.36 * len(found)), layout="constrained")
    axes = figure.subplots()
    ordered = list(found.items())[::-1]
    for place, (name, score) in enumerate(ordered):
        colour = OURS if name.startswith("gpclf") else OTHERS
        axes.plot([score.low, score.high], [place, place], color=colour, lw=2.2, alpha=0.6)
        axes.plot(score.value, place, "o", color=colour, ms=7)
        axes.annotate(
            f"{score.value:.3f}",
            (score.value, place),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=colour,
        )
    axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
    axes.set_ylim(-0.6, len(ordered) - 0.3)
    best, score = next(iter(found.items()))
    axes.set_title(
        f"{best} has the lowest log-loss on {data}: {score.value:.3f}", fontsize=11, loc="left"
    )
    axes.set_xlabel("log-loss of rows left out, with 95 % intervals: lower is better")
    axes.grid(axis="x", color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, format=kind, dpi=150)
