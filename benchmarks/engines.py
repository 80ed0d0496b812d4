"""Which inference when: every engine on the same model, test NLL, error and seconds.

    python benchmarks/engines.py --data FOLDER [--resume]

Default kernel and number of inducing points. The likelihood is the default one but for EP, which
has the probit with noise, of two or more classes, as in Liu et al. (2019): its moments have closed
forms. The gradient engine climbs the natural one's bound, so it is not here.
"""

import argparse
import time

import numpy as np
from scipy.stats import rankdata

from datasets import add_data_option, find, split
from figures import figures
from gpclf import GPClassifier
from gpclf.inference.engines import PowerEP
from papers.grid import Grid, table

SETS = [
    "glass", "vehicle", "vowel", "svmguide2", "new-thyroid", "wine", "waveform-1000", "fermi-4fgl",
    "raetsch-heart", "raetsch-german", "raetsch-diabetes", "raetsch-cancer", "raetsch-thyroid",
    "banana", "segment", "raetsch-image", "sensorless-2200", "dna", "wine-quality-white",
    "wall-following", "page-blocks", "statlog-landsat", "thyroid", "waveform-noise", "magic",
]  # fmt: skip
METHODS = {
    "natural": {},
    "decoupled": {"inference": "decoupled"},
    "power-EP, ½": {"inference": PowerEP(alpha=0.5)},
    "EP, noisy-probit": {"inference": PowerEP(), "likelihood": "noisy-probit"},
    "stochastic EP, noisy-probit": {
        "inference": PowerEP(batch_size=1024),
        "likelihood": "noisy-probit",
    },
}


def fitted(name: str, seed: int, method: str, folder: str | None) -> dict:
    rows = split(name, seed, folder=folder)
    model = GPClassifier(random_state=seed, **METHODS[method])
    began = time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    seconds = time.perf_counter() - began
    scored = figures(model.predict_log_proba(rows.X_test), rows.y_test)
    return {"nll": scored["nll"], "error": 1 - scored["accuracy"], "seconds": seconds}


def main() -> None:
    """Print a table of NLLs with their mean ranks, one of errors, one of seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    for name in options.sets:
        find(name, options.data)
    grid, means = Grid("engines.jsonl", options.resume), []
    for name in options.sets:
        found = [
            [
                grid.cell(
                    {"set": name, "method": method, "seed": seed},
                    lambda args=(name, seed, method, options.data): fitted(*args),
                )
                for seed in options.seeds
            ]
            for method in options.methods
        ]
        means.append({key: [np.mean([f[key] for f in of]) for of in found] for key in found[0][0]})
    for key, digits in (("nll", 4), ("error", 4), ("seconds", 1)):
        rows = [
            [name, *(f"{value:.{digits}f}" for value in of[key])]
            for name, of in zip(options.sets, means, strict=True)
        ]
        ranks = np.mean([rankdata(np.round(of[key], digits)) for of in means], axis=0)
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranks)])
        print(f"\n{key}", end="")
        table(["set", *options.methods], rows)


if __name__ == "__main__":
    main()
