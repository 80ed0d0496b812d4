"""Merging: what the first pass found in one piece, taken into what it found in those before.

Levels and classes have the places in which they came, piece after piece in their order, so that
nothing depends on which piece was looked at first.
"""

import numpy as np

from gpclf.data.sources.coding import Coder, Distinct
from gpclf.data.survey import Survey, grown


def taken_in(coder: Coder, found: Survey, other: Coder, more: Survey) -> None:
    """Into `coder` and `found` what another piece has."""
    for number, known in coder.levels.items():
        order = _places(known, other.levels[number])
        coder.refuse_many(number)
        found.of_levels[number] = _sum(found.of_levels[number], more.of_levels[number], order)
    classes = _places(coder.labels, other.labels)
    coder.refuse_many_classes()
    coder.gaps |= other.gaps
    found.of_gaps = found.of_gaps + more.of_gaps
    found.of_classes = _sum(found.of_classes, more.of_classes, classes)
    found.counts = _sum(found.counts, more.counts, classes)
    found.join(more)


def _places(known: Distinct, other: Distinct) -> np.ndarray:
    """Where each value of the other stands among those known, which it joins."""
    for (value, place), first in zip(other.places.items(), other.first, strict=True):
        del place
        if value not in known.places:
            known.places[value] = len(known.places)
            known.first.append(first)
    return np.array([known.places[value] for value in other.places], np.intp)


def _sum(known: np.ndarray, more: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Entries of both, those of the other at their places among the known."""
    places = places[: len(more)]
    total = grown(known, int(places.max(initial=-1)) + 1)
    np.add.at(total, places, more)
    return total
