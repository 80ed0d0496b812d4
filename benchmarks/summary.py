"""Tables of the comparison: means by set, ranks and ratios with intervals over sets.

A method that failed on a split counts as worse than all others there, and is named.
"""

from math import inf, isfinite, isnan
from statistics import geometric_mean, mean
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

FIGURES = {"nll": "NLL", "brier": "Brier", "error": "error", "ece": "ECE"}
SECONDS = {"seconds": "fit", "predicted": "prediction"}
BOOTSTRAP = 2000
LEAST = 1e-3  # NLLs below count as this in ratios: 1e-6 to 1e-5 is no tenfold loss

Key = tuple[str, int, str, int | None]  # set, seed, method, training rows
Table = dict[str, dict[str, list[float]]]  # by set and method, over the seeds


class Results(NamedTuple):
    """What there is of some methods for so many training rows; seeds that all methods have."""

    found: dict[Key, dict]
    methods: list[str]
    n_rows: int | None
    seeds: dict[str, list[int]]  # of each set, in order

    @classmethod
    def of(
        cls, found: dict[Key, dict], sets: list[str], methods: list[str], n_rows: int | None
    ) -> "Results":
        have: dict[str, list[int]] = {}
        for name in sets:
            tried = sorted({key[1] for key in found if (key[0], key[3]) == (name, n_rows)})
            whole = [s for s in tried if all((name, s, m, n_rows) in found for m in methods)]
            if whole:
                have[name] = whole
        return cls(found, methods, n_rows, have)

    def table(self, figure: str) -> Table:
        return {
            name: {
                method: [
                    number(self.found[name, seed, method, self.n_rows], figure) for seed in seeds
                ]
                for method in self.methods
            }
            for name, seeds in self.seeds.items()
        }

    def failures(self) -> list[tuple[str, int, str, str]]:
        """Method, seed, set and why."""
        return [
            (method, seed, name, why)
            for method in self.methods
            for name, seeds in self.seeds.items()
            for seed in seeds
            if (why := self.found[name, seed, method, self.n_rows].get("failed"))
        ]


def number(record: dict, figure: str) -> float:
    value = record.get(figure, inf)
    return inf if isnan(value) else value


def ranks_of(table: Table, methods: list[str]) -> np.ndarray:
    """Of each set and method, by the mean over seeds; 1 for the lowest."""
    return np.array(
        [rankdata([mean(of_set[method]) for method in methods]) for of_set in table.values()]
    )


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Of two mean ranks, by Nemenyi's test at 5 % (Demšar 2006)."""
    quantile = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def interval(values: list[np.ndarray]) -> tuple[float, float]:
    """Of a mean over sets, 95 %, by drawing sets and, within each, splits."""
    rng = np.random.default_rng(0)
    count = len(values)
    drawn = np.stack(
        [each[rng.integers(0, len(each), (BOOTSTRAP, len(each)))].mean(axis=1) for each in values],
        axis=1,
    )
    sets = rng.integers(0, count, (BOOTSTRAP, count))
    means = np.take_along_axis(drawn, sets, axis=1).mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def print_table(title: str, table: Table, methods: list[str]) -> None:
    print(f"\nmean {title}\n\n| set | " + " | ".join(methods) + " |")
    print("| --- |" + " ---: |" * len(methods))
    for name, of_set in table.items():
        values = [mean(of_set[method]) for method in methods]
        cells = " | ".join(f"{value:.4f}" if isfinite(value) else "-" for value in values)
        print(f"| {name} | {cells} |")


def print_ranks(title: str, table: Table, methods: list[str]) -> None:
    """Mean ranks with intervals over sets, and whether they differ at all."""
    ranks = ranks_of(table, methods)
    print(f"\nmean rank by {title} over {len(ranks)} sets, 95 % interval over sets\n")
    for place in np.argsort(ranks.mean(axis=0)):
        low, high = interval(list(ranks[:, [place]]))
        print(f"{methods[place]:<20} {ranks[:, place].mean():5.2f}  [{low:.2f}, {high:.2f}]")
    if len(methods) > 2 and len(ranks) > 1:
        chance = friedmanchisquare(*ranks.T).pvalue
        difference = critical_difference(len(methods), len(ranks))
        print(f"Friedman's test: p = {chance:.1g}; critical difference (Nemenyi): {difference:.2f}")


def print_costs(results: Results) -> None:
    """Calibration error, and seconds where the method did not fail."""
    print("\nmean ECE; seconds of fit and prediction, geometric means over sets; mean load of the")
    print("machine as fits began (above its number of cores: these seconds say little)\n")
    for method in results.methods:
        cells = []
        for figure in ("ece", *SECONDS):
            table = results.table(figure)
            values = [mean(of_set[method]) for of_set in table.values()]
            values = [value for value in values if isfinite(value)]
            if not values:
                cells.append("-")
            elif figure == "ece":
                cells.append(f"{mean(values):.4f}")
            else:
                cells.append(f"{geometric_mean([max(1e-3, value) for value in values]):.3f}")
        loads = [
            results.found[name, seed, method, results.n_rows].get("load", 0.0)
            for name, seeds in results.seeds.items()
            for seed in seeds
        ]
        print(f"{method:<20} {cells[0]:>7} {cells[1]:>9} {cells[2]:>9} {mean(loads):6.1f}")


def print_pairs(table: Table, methods: list[str], ours: str) -> None:
    """The NLL of one method beside each other's, paired by split."""
    print(f"\n{ours} beside each other method, NLL, paired by split: geometric mean over sets of")
    print(
        "the ratio, mean of the difference, 95 % intervals over sets and splits; sets where it is"
    )
    print(
        f"lower. In ratios an NLL below {LEAST:g} counts as that; splits where one failed are out\n"
    )
    for method in methods:
        if method == ours:
            continue
        logs, differences = [], []
        for of_set in table.values():
            pairs = np.array([of_set[ours], of_set[method]])
            pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
            if pairs.size:
                logs.append(np.subtract(*np.log(np.maximum(pairs, LEAST))))
                differences.append(np.subtract(*pairs))
        if not logs:
            continue
        ratio, bounds = np.exp(mean(map(np.mean, logs))), np.exp(interval(logs))
        difference, ends = mean(map(np.mean, differences)), interval(differences)
        lower = sum(each.mean() < 0 for each in differences)
        print(
            f"{method:<20} {ratio:5.3f} [{bounds[0]:.3f}, {bounds[1]:.3f}]  "
            f"{difference:+.4f} [{ends[0]:+.4f}, {ends[1]:+.4f}]  {lower} of {len(logs)}"
        )


def print_failures(results: Results) -> None:
    failures = results.failures()
    if failures:
        print("\nfailed, and counted as last\n")
    for method, seed, name, why in failures:
        print(f"{method:<20} {name:<19} seed {seed}: {why}")


def report(results: Results) -> None:
    """All tables for so many training rows."""
    methods, n_rows = results.methods, results.n_rows
    splits = sum(map(len, results.seeds.values()))
    print(f"\n# trained on {'all rows' if n_rows is None else f'{n_rows} rows'}")
    print(f"\n{len(results.seeds)} sets, {splits} splits, which all methods have")
    tables = {figure: results.table(figure) for figure in FIGURES}
    for figure, title in FIGURES.items():
        print_table(title, tables[figure], methods)
    for figure, title in FIGURES.items():
        print_ranks(title, tables[figure], methods)
    print_costs(results)
    print_pairs(tables["nll"], methods, "gpclf" if "gpclf" in methods else methods[0])
    print_failures(results)
