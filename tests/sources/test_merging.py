"""Laws of the first pass in pieces: what they have found together is what one would have found."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from gpclf.data.sources.base import Piece, Roles
from gpclf.data.sources.coding import Coder
from gpclf.data.sources.merging import taken_in
from gpclf.data.survey import Survey


def _looked(rows, where="all"):
    coder = Coder(Roles("y", "w", {}, None), ["a", "b"], [1], True, {})
    found = Survey(coder.is_level)
    for block in coder.blocks(Piece(0, where, rows)):
        found.add(block.X, block.weight, block.y)
    return coder, found


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=90) * 10.0 ** np.repeat([300, -300, 2], 30)
    a[::7] = np.nan
    b = np.array(["u", "w", None, "v"], object)[np.arange(90) // 25]
    y = np.array(["no", "yes", "maybe"])[np.arange(90) // 31]
    return pa.table({"a": a, "b": b, "y": y, "w": rng.uniform(0.5, 2, 90)})


@pytest.mark.parametrize("cuts", [[0, 90], [0, 1, 1, 40, 90], [0, 30, 60, 90]])
def test_pieces_find_what_the_whole_has(rows, cuts):
    whole, of_whole = _looked(rows)
    coder, found = _looked(rows.slice(0, 0))
    for first, end in pairwise(cuts):
        taken_in(coder, found, *_looked(rows.slice(first, end - first), str(first)))
    assert list(coder.labels.places) == list(whole.labels.places)
    assert list(coder.levels[1].places) == list(whole.levels[1].places)
    assert coder.gaps == whole.gaps
    assert (found.n_rows, found.uneven, found.even) == (90, True, False)
    assert found.total == pytest.approx(of_whole.total)
    np.testing.assert_array_equal(found.counts, of_whole.counts)
    np.testing.assert_allclose(found.of_classes, of_whole.of_classes)
    np.testing.assert_allclose(found.of_levels[1], of_whole.of_levels[1])
    np.testing.assert_allclose(found.of_gaps, of_whole.of_gaps)
    np.testing.assert_allclose(found.numbers.found(0), of_whole.numbers.found(0), rtol=1e-12)


def test_too_many_classes_are_refused_once_all_pieces_are_known(rows, monkeypatch):
    coder, found = _looked(rows.slice(0, 40))
    coder.labels.most = 2
    with pytest.raises(ValueError, match="must hold classes"):
        taken_in(coder, found, *_looked(rows.slice(40)))
