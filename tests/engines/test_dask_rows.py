"""Laws of rows in pieces that a Dask graph makes: another sum, and nothing else."""

from itertools import pairwise

import cloudpickle
import dask
import jax
import numpy as np
import pytest
from dask.delayed import delayed

import cases
from gpclf.data import ArrayRows, Block, Kept, Survey
from gpclf.data.sources.dask_rows import Cluster, DaskBlocks, DaskRows
from gpclf.gaussian import Natural, moments
from gpclf.inference import Settings, Sizes, fit
from gpclf.inference.passes import gradient_pass
from gpclf.model import prepare
from problems import POINTS, ROWS, problem

pytestmark = pytest.mark.usefixtures("sent_unchecked")


@pytest.fixture(autouse=True)
def as_if_far_away():
    """Every task, and what it gives, goes through bytes, as to and from a worker."""

    def through_bytes(graph, keys, **_):
        sent = cloudpickle.loads(cloudpickle.dumps(graph))
        return cloudpickle.loads(cloudpickle.dumps(dask.get(sent, keys)))

    with dask.config.set(scheduler=through_bytes):
        yield


def in_blocks(source, ends):
    """Rows of an array, cut at these places."""
    whole = Block(source.X, source.y, source.weight, None)
    parts = [whole.part(slice(*cut)) for cut in pairwise([0, *ends, source.n_rows])]
    sizes = [part.n_rows for part in parts]
    blocks = DaskBlocks([delayed(part, traverse=False) for part in parts], sizes, Cluster())
    found = Survey.of(source.X, source.weight, np.zeros(source.X.shape[1], bool))
    return DaskRows(blocks, found, None, source.dtype)


def _passed(rows, theta, n_latent):
    prepared, _ = prepare(*theta, 1e-9)
    m, _ = moments(Natural.standard(n_latent, POINTS))
    return rows.sum(lambda chunk: gradient_pass(prepared, m, chunk).sums())


def test_one_piece_gives_the_bits_of_an_array(x64):
    theta, source, n_latent = problem("Softmax")
    one, array = in_blocks(source, []).in_chunks(16), source.in_chunks(16)
    for there, here in zip(
        *(jax.tree.leaves(_passed(rows, theta, n_latent)) for rows in (one, array)), strict=True
    ):
        np.testing.assert_array_equal(there, here)


def test_pieces_of_any_length_add_up_to_the_whole_an_empty_one_too(x64):
    theta, source, n_latent = problem("Softmax")
    several = in_blocks(source, [3, 3, 20])
    for there, here in zip(
        *(jax.tree.leaves(_passed(rows, theta, n_latent)) for rows in (several, source)),
        strict=True,
    ):
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12)


def test_rows_are_taken_as_from_an_array(x64):
    _, source, _ = problem("Softmax")
    several, rows = in_blocks(source, [3, 3, 20]), np.array([30, 2, 21, 3, 19])
    for draws in (None, np.random.default_rng(0)):
        there, here = several.take(rows, draws), source.take(rows, draws)
        for one, other in zip(
            there.chunks(), here.in_chunks(there.chunk_rows).chunks(), strict=True
        ):
            for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
                np.testing.assert_array_equal(a, b)
        assert there.total_weight == here.total_weight


def test_what_is_kept_comes_back_to_its_own_chunk(x64):
    _, source, _ = problem("Probit")
    several = in_blocks(source, [3, 3, 20]).in_chunks(8)
    found = several.keep(lambda chunk: np.asarray(chunk.rows)[np.asarray(chunk.weight) > 0])
    np.testing.assert_array_equal(np.concatenate(found), np.arange(ROWS))
    total = several.sum(lambda chunk, own: np.sum(np.asarray(chunk.rows)[: len(own)] - own), found)
    assert total == 0
    with pytest.raises(ValueError, match="chunks"):
        several.sum(lambda chunk, own: own, Kept(found[1:]))


def test_neither_arrays_of_jax_nor_programs_travel(x64):
    from gpclf.data.sources.parcels import opened, packed
    from gpclf.inference.passes import curvature, definite

    array, *programs = opened(packed((jax.numpy.ones(3), definite, curvature)))
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    assert programs == [definite, curvature]


def test_a_second_pass_compiles_nothing(x64, traces):
    theta, source, n_latent = problem("Softmax")
    rows = in_blocks(source, [10, 20])
    _passed(rows, theta, n_latent)
    traces.clear()
    further = theta._replace(Z=theta.Z + 0.1)
    _passed(rows, further, n_latent)
    assert not [name for name in traces if "pass" in name]


def test_the_rows_themselves_are_never_sent(x64):
    _, source, _ = problem("Probit")
    rows = in_blocks(source, [20])
    with pytest.raises(TypeError, match="about to be sent"):
        rows.sum(lambda chunk: np.float64(rows.n_rows))


@pytest.mark.parametrize("case", sorted(cases.ENGINES))
def test_every_engine_fits_pieces_as_it_fits_an_array(case, x64):
    """Hyper-parameters see rows that come here; the last steps pass over the pieces."""
    engine, _ = cases.ENGINES[case]
    theta, source, n_latent = problem("Probit")
    source = ArrayRows(source.X, source.y, np.ones(ROWS))
    plan = engine.plan(Sizes(ROWS, n_latent, POINTS, 3), 6)._replace(chunk_rows=16)
    ends = [
        fit(theta, n_latent, rows, engine, plan, Settings(), np.random.default_rng(0))
        for rows in (source, in_blocks(source, [10, 10, 25]))
    ]
    near = 0.02 if case == "PowerEP" else 1e-8  # its steps begin elsewhere, and end by a gap
    np.testing.assert_allclose(ends[1].objective, ends[0].objective, rtol=min(near, 1e-5))
    for there, here in zip(*(jax.tree.leaves(end.q) for end in ends), strict=True):
        np.testing.assert_allclose(there, here, rtol=near, atol=near * np.abs(here).max())
