"""Laws of sources of rows: an engine needs no more than one chunk after the other, forwards."""

import weakref
from dataclasses import replace

import jax
import numpy as np
import pytest

import cases
from gpclf.data import ArrayRows, Kept, Rows
from gpclf.inference import Settings, Sizes, engines, fit
from gpclf.inputs import Parametric
from problems import POINTS, ROWS, problem


class Forwards(Rows):
    """Rows as from a file: read forwards, and one chunk is gone before the next one comes."""

    def __init__(self, source):
        self.source, self.chunk_rows = source, source.chunk_rows
        self.passes = 0

    n_rows = property(lambda self: self.source.n_rows)
    total_weight = property(lambda self: self.source.total_weight)
    n_columns = property(lambda self: self.source.n_columns)
    uneven = property(lambda self: self.source.uneven)

    def chunks(self):
        self.passes += 1
        source, before = self.source.chunks(), []
        while True:
            assert all(part() is None for part in before), "a chunk is held after its turn"
            now = [chunk for chunk in [next(source, None)] if chunk is not None]
            if not now:
                return
            before = [weakref.ref(now[0]), weakref.ref(now[0].X)]
            yield now.pop()

    def room(self, floats):
        return False

    def in_chunks(self, chunk_rows):
        return self._like(self.source.in_chunks(chunk_rows))

    def in_double(self):
        return self._like(self.source.in_double())

    def _like(self, source):
        made = Forwards(source)
        made.whole = self.whole if hasattr(self, "whole") else self
        made.whole.others = [*getattr(made.whole, "others", []), made]
        return made

    def take(self, rows, rng=None):
        """One pass, then what memory holds of it."""
        parts = self.keep(
            lambda chunk: [np.array(part) for part in (chunk.X, chunk.y, chunk.weight)]
        )
        X, y, weight = (np.concatenate(part)[: self.n_rows] for part in zip(*parts, strict=True))
        return ArrayRows(X, y, weight).in_chunks(self.chunk_rows).take(rows, rng)

    def blank(self):
        return self.source.blank()


def _even(source):
    return ArrayRows(source.X, source.y, np.ones(ROWS))


def _both(engine, source, theta, n_latent, **changes):
    """A fit on arrays and one forwards, in chunks of 16 rows, the last filled up."""
    plan = engine.plan(Sizes(ROWS, n_latent, POINTS, 3), 6)._replace(chunk_rows=16, **changes)
    forwards = Forwards(source)
    ends = [
        fit(theta, n_latent, rows, engine, plan, Settings(), np.random.default_rng(0))
        for rows in (source, forwards)
    ]
    assert sum(made.passes for made in forwards.others) > 2
    return ends


def _same(arrays, forwards):
    np.testing.assert_allclose(forwards.objective, arrays.objective, rtol=1e-9)
    for there, here in zip(jax.tree.leaves(forwards.q), jax.tree.leaves(arrays.q), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9 * np.abs(here).max())


@pytest.mark.parametrize("case", sorted(cases.ENGINES))
def test_every_engine_reads_rows_forwards_one_chunk_at_a_time(case, x64):
    engine, _ = cases.ENGINES[case]
    theta, source, n_latent = problem("Probit")
    source = _even(source) if case.startswith("MeanField") else source
    _same(*_both(engine, source, theta, n_latent))


@pytest.mark.parametrize(
    "kind", [engines.Natural, engines.PowerEP, engines.Gradient, engines.Decoupled]
)
def test_so_do_steps_on_batches(kind, x64):
    theta, source, n_latent = problem("Probit")
    _same(*_both(kind(optimizer="adam", batch_size=20), source, theta, n_latent))


def test_so_do_rounds_on_some_of_the_rows(x64):
    theta, source, n_latent = problem("Probit")
    _same(*_both(engines.Natural(), source, theta, n_latent, learning_rows=32))


@pytest.mark.parametrize("engine", [engines.Natural(), engines.Natural("adam", 20)])
def test_so_do_fits_with_parameters_for_each_row(engine, x64):
    theta, source, n_latent = problem("Probit")
    inputs = Parametric(count=4, log_std=np.log(0.3)).for_rows(ROWS, 3)
    theta = theta._replace(model=replace(theta.model, inputs=inputs))
    arrays, forwards = _both(engine, source, theta, n_latent)
    _same(arrays, forwards)
    law = arrays.theta.model.inputs.shift
    np.testing.assert_allclose(forwards.theta.model.inputs.shift, law, rtol=1e-6, atol=1e-9)
    assert np.all(np.any(np.asarray(law) != 0, axis=1))  # each row has moved


def test_what_is_kept_belongs_to_as_many_chunks_as_there_are(x64):
    _, source, _ = problem("Probit")
    rows = source.in_chunks(16)
    found = rows.keep(lambda chunk: np.asarray(chunk.weight).sum())
    total = rows.sum(lambda chunk, own: np.asarray(chunk.weight).sum() - own, found)
    assert total == pytest.approx(0.0, abs=1e-12)
    for wrong in (Kept(found[:-1]), Kept([*found, 0.0])):
        with pytest.raises(ValueError, match="3 chunks"):
            rows.sum(lambda chunk, own: own, wrong)
