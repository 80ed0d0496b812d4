"""Table 1 of Hensman, Matthews & Ghahramani (2015): median test NLL of ten folds, probit, RBF.

    cd benchmarks && python -m papers.hensman_table --data FOLDER [--resume]

Full methods (KL, EP) where rows are few; sparse ones with 8 inducing points and with 3 % of the
rows; their mean-field baseline with both. Bounds are climbed until they converge; EP keeps its
default number of evaluations, because its energy bounds nothing, and inducing points that climb it
for long fit the rows (`--long-ep` shows that). The last column is the lowest NLL that the paper's
table prints for the set. What differs: folds are ours, twonorm and ringnorm have 7,400 rows,
ringnorm is drawn anew from its formula, and flare-solar, german and the like have un-normalised
inputs.
"""

import argparse
import time

import numpy as np
from sklearn.model_selection import StratifiedKFold

from datasets import add_data_option, find, load
from figures import figures
from gpclf import GPClassifier
from papers.grid import Grid, table

# The lowest NLL of the paper's table, two digits as printed.
PAPER_BEST = {
    "raetsch-thyroid": 0.09,
    "raetsch-heart": 0.41,
    "twonorm": 0.08,
    "ringnorm": 0.15,
    "raetsch-german": 0.48,
    "raetsch-waveform": 0.22,
    "raetsch-cancer": 0.55,
    "raetsch-flare-solar": 0.57,
    "raetsch-diabetes": 0.47,
}
MOST_FULL = 1200  # rows that a full method takes: its cost grows with their cube
ROUNDING = 0.005
METHODS = {
    "KL": {"n_inducing": None},
    "EP": {"inference": "power-ep", "n_inducing": None},
    "EP-FITC 8": {"inference": "power-ep", "n_inducing": 8},
    "EP-FITC 3%": {"inference": "power-ep", "n_inducing": 0.03},
    "KL sparse 8": {"n_inducing": 8},
    "KL sparse 3%": {"n_inducing": 0.03},
    "mean field 8": {"inference": "mean-field", "n_inducing": 8},
    "mean field 3%": {"inference": "mean-field", "n_inducing": 0.03},
}


LONG = {"max_epochs": 200, "tol": 1e-6}


def classifier(method: str, n_rows: int, seed: int, long_ep: bool) -> GPClassifier | None:
    """As the table has it; None where it takes too long."""
    options = dict(METHODS[method])
    if long_ep or not method.startswith("EP"):
        options |= LONG
    if options["n_inducing"] is None and n_rows > MOST_FULL:
        return None
    if options["n_inducing"] == 0.03:
        options["n_inducing"] = max(2, round(0.03 * n_rows))
    return GPClassifier(likelihood="probit", kernel="rbf", random_state=seed, **options)


def main() -> int:
    """Print the table; 1 if the sparse bound with 3 % is above the paper's best on a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=list(PAPER_BEST), metavar="NAME")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--folds", type=int, default=10, help="the first so many of ten")
    parser.add_argument("--long-ep", action="store_true", help="EP until it converges, too")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    for name in options.sets:
        find(name, options.data)
    grid, rows, above = Grid("hensman_table.jsonl", options.resume), [], []
    for name in options.sets:
        X, y = load(name, options.data)
        folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
        cells = [name]
        for method in options.methods:
            found = []
            for fold, (train, test) in enumerate(folds[: options.folds]):
                model = classifier(method, len(train), fold, options.long_ep)
                if model is None:
                    break

                def run(model=model, train=train, test=test, X=X, y=y) -> dict:
                    began = time.perf_counter()
                    model.fit(X[train], y[train])
                    seconds = time.perf_counter() - began
                    scored = figures(model.predict_log_proba(X[test]), y[test])
                    return {"nll": scored["nll"], "error": 1 - scored["accuracy"], "s": seconds}

                of = {"set": name, "method": method, "fold": fold}
                if options.long_ep and method.startswith("EP"):
                    of["long"] = True
                found.append(grid.cell(of, run)["nll"])
            if not found:
                cells.append("")
                continue
            low, median, high = np.quantile(found, [0.1, 0.5, 0.9])
            cells.append(f"{median:.3f} ({low:.2f} to {high:.2f})")
            if method == "KL sparse 3%" and median >= PAPER_BEST[name] + ROUNDING:
                above.append(name)
        rows.append([*cells, f"{PAPER_BEST[name]:.2f}"])
    print("\nmedian NLL (a tenth and nine tenths of the folds)")
    table(["set", *options.methods, "paper's best"], rows)
    print(f"\nKL sparse 3% above the paper's best: {', '.join(above) or 'nowhere'}")
    return int(bool(above))


if __name__ == "__main__":
    raise SystemExit(main())
