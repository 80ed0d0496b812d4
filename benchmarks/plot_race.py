"""Draw test NLL against time, a panel per set, from what race.py wrote: results/race.png."""

import json
from collections import defaultdict
from math import isfinite
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

RESULTS = Path(__file__).parent / "results"
COLUMNS = 3

Curve = list[tuple[float, float]]  # seconds, NLL


def latest_curves(path: Path) -> dict[str, dict[str, Curve]]:
    """By set and method, the tests of the last run in the file."""
    curves: dict[str, dict[str, Curve]] = defaultdict(dict)
    runs: dict[tuple[str, str], str] = {}
    for line in path.read_text().splitlines():
        test = json.loads(line)
        if "nll" not in test or not isfinite(test["nll"]):
            continue
        name, method = test["set"], test["method"]
        if runs.get((name, method)) != test["when"]:
            runs[name, method] = test["when"]
            curves[name][method] = []
        curves[name][method].append((test["seconds"], test["nll"]))
    return curves


def draw(curves: dict[str, dict[str, Curve]]):
    """One panel per set; gpclf in black, the same colour for a rival everywhere."""
    methods = list(dict.fromkeys(method for of_set in curves.values() for method in of_set))
    rivals = [method for method in methods if not method.startswith("gpclf")]
    rows = -(-len(curves) // COLUMNS)
    columns = min(COLUMNS, len(curves))
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.2 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    for axis, (name, of_set) in zip(axes.flat, curves.items(), strict=False):
        for method, curve in of_set.items():
            ours = method.startswith("gpclf")
            seconds, nll = zip(*curve, strict=True)
            axis.plot(
                seconds,
                nll,
                label=method,
                color="black" if ours else f"C{rivals.index(method)}",
                linestyle=":" if method == "gpclf-defaults" else "-",
                linewidth=2 if ours else 1.2,
                marker="o" if len(curve) == 1 else None,
            )
        axis.set(title=name, xscale="log", yscale="log", xlabel="seconds", ylabel="test NLL")
        # What comes out worse than every first test, a blow-up, stays outside the panel.
        axis.set_ylim(top=1.05 * max(curve[0][1] for curve in of_set.values()))
        for ticks in (axis.xaxis, axis.yaxis):
            ticks.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
            ticks.set_major_formatter(ScalarFormatter())
            ticks.set_minor_formatter(NullFormatter())
    handles = {
        text: handle
        for axis in axes.flat
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2 * columns)
    return figure


def main() -> None:
    path = RESULTS / "race.jsonl"
    if not path.is_file():
        raise SystemExit(f"No file {path}: run race.py first.")
    target = RESULTS / "race.png"
    draw(latest_curves(path)).savefig(target, dpi=150)
    print(target)


if __name__ == "__main__":
    main()
