"""The table that `gpclf demo` learns from: made-up sources of gamma rays, measured with errors.

Three classes differ in the slope of their spectra, in its curvature and in their flux. The fainter
a source, the larger the errors of what is measured of it, as telescopes have it: of faint sources
a slope says little, and a classifier that knows the errors knows that. The radio spectrum is a
category that some sources lack; so is the curvature of some. Written anew by

    python benchmarks/make_sources.py src/gpclf/cli/sources.csv
"""

import argparse
import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

ROWS = 600
SHARES = {"BL Lac": 0.42, "quasar": 0.38, "pulsar": 0.20}
# each class is of two kinds: their share, and mean and standard deviation of log10 flux, slope,
# curvature
LAWS = {
    "BL Lac": (
        (0.5, (-0.3, 0.35), (1.60, 0.12), (0.15, 0.06)),
        (0.5, (-0.1, 0.35), (2.40, 0.12), (0.15, 0.06)),
    ),
    "quasar": ((1.0, (0.0, 0.40), (2.00, 0.14), (0.15, 0.07)),),
    "pulsar": (
        (0.5, (0.2, 0.40), (1.60, 0.15), (0.50, 0.12)),
        (0.5, (0.0, 0.40), (2.20, 0.15), (0.45, 0.12)),
    ),
}
RADIO = {"BL Lac": (0.75, 0.15, 0.10), "quasar": (0.60, 0.35, 0.05), "pulsar": (0.15, 0.35, 0.50)}
KINDS = ("flat", "steep", "quiet")
ERRORS = (0.10, 0.08)  # of slope and curvature at flux 1
FAINTER = 0.8  # the power of flux by which errors fall
MISSING = 0.05
FIRST_DAY = date(2019, 1, 1)


def rows(rng: np.random.Generator) -> list[dict[str, object]]:
    """One a source; digits as a catalogue prints them."""
    found = []
    names = list(SHARES)
    for number in range(ROWS):
        kind = names[rng.choice(3, p=list(SHARES.values()))]
        laws = LAWS[kind]
        _, *law = laws[rng.choice(len(laws), p=[share for share, *_ in laws])]
        flux, slope, curvature = (rng.normal(*each) for each in law)
        flux = 10**flux
        scale = np.exp(0.5 * rng.standard_normal()) / flux**FAINTER
        slope_err, curvature_err = (error * scale for error in ERRORS)
        flux_err = 0.06 * np.sqrt(flux)
        gap = rng.random() < MISSING
        found.append(
            {
                "name": f"S{rng.integers(24):02d}{rng.integers(60):02d}+{number:03d}",
                "flux": f"{max(flux + flux_err * rng.standard_normal(), 0.01):.3f}",
                "flux_err": f"{flux_err:.3f}",
                "slope": f"{slope + slope_err * rng.standard_normal():.3f}",
                "slope_err": f"{slope_err:.3f}",
                "curvature": ""
                if gap
                else f"{curvature + curvature_err * rng.standard_normal():.3f}",
                "curvature_err": "" if gap else f"{curvature_err:.3f}",
                "radio": "" if rng.random() < MISSING else KINDS[rng.choice(3, p=RADIO[kind])],
                "first_seen": FIRST_DAY + timedelta(days=int(rng.integers(1500))),
                "class": kind,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    table = rows(np.random.default_rng(7))
    with parser.parse_args().output.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
