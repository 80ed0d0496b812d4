"""Laws of the engine, on every likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cases
from gpclf import compilation
from gpclf.data import ArrayStream
from gpclf.gaussian import Natural, moments
from gpclf.inference import hyper, make_plan
from gpclf.inference.hyper import Known, Theta, dual_bound, improve
from gpclf.inference.lbfgs import Memory
from gpclf.inference.loop import compile_ahead
from gpclf.inference.natural import (
    begin,
    climb,
    less_prior,
    no_sites,
    peak,
    slope,
    stochastic_step,
    visit_all,
    weakened,
)
from gpclf.inference.sites import (
    definite,
    finite_rows,
    gradient,
    survey,
    visit,
    with_features,
    with_prior,
)
from gpclf.inference.sites import held as held_sum
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.likelihoods import Sites
from gpclf.model import Model, prepare
from gpclf.precision import cast
from problems import POINTS, ROWS, problem

ALL = pytest.mark.parametrize("name", sorted(cases.LIKELIHOODS))
# one kernel for all functions, and for some likelihoods one for each
SHARED = pytest.mark.parametrize(
    ("name", "shared"),
    [(name, True) for name in sorted(cases.LIKELIHOODS)]
    + [(name, False) for name in ("Logit", "Softmax", "RobustMax", "LogisticSoftmax")],
)


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def _settled(theta, stream, n_latent, steps=200):
    prepared, _ = prepare(*theta, 1e-9)
    q = Natural.standard(n_latent, theta.Z.shape[-2])
    chunks = list(stream.whole(stream.n_rows))
    zeros = jnp.zeros((stream.n_rows, n_latent))
    result = climb(
        prepared, q, lambda: chunks, max_steps=steps, tolerance=1e-11, slack=1e-10,
        held=[Sites(zeros, zeros)], keep_features=True,
    )  # fmt: skip
    return prepared, result


def test_gradients_by_features_are_kept_only_where_they_are_asked_for():
    """M numbers a row: where all rows are seen, memory must not grow with them."""
    theta, stream, n_latent = problem("Logit")
    prepared, settled = _settled(theta, stream, n_latent, steps=2)
    assert settled.here.by_features is not None
    chunks = list(stream.whole(ROWS))
    assert visit_all(prepared, settled.q, chunks, keep_sites=True).by_features is None
    steps = {"max_steps": 2, "tolerance": 0.0, "slack": 1e-10, "held": settled.held}
    assert climb(prepared, settled.q, lambda: chunks, **steps).here.by_features is None


@SHARED
def test_chunked_equals_whole(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    prepared, settled = _settled(theta, stream, n_latent, steps=2)
    whole = visit_all(prepared, settled.q, stream.whole(ROWS), keep_sites=False)
    parts = visit_all(prepared, settled.q, stream.whole(25), keep_sites=False)  # 15 rows fill up
    np.testing.assert_allclose(parts.elbo, whole.elbo, rtol=1e-12)
    one, other = whole.target(), parts.target()
    np.testing.assert_allclose(other.precision, one.precision, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_features_that_are_kept_change_nothing(shared):
    theta, stream, n_latent = problem("RobustMax", shared=shared)
    prepared, settled = _settled(theta, stream, n_latent, steps=2)
    m, _ = moments(settled.q)
    (chunk,) = stream.whole(ROWS)
    kept, (sites,) = with_features(prepared, chunk), settled.held
    first = survey(prepared, m, chunk)
    for pass_over in (
        lambda chunk: visit(prepared, m, chunk),
        lambda chunk: survey(prepared, m, chunk),
        lambda chunk: held_sum(prepared, sites, chunk),
        lambda chunk: definite(prepared, m, sites, chunk),
        lambda chunk: gradient(prepared, first.by_features, settled.q, sites, chunk),
    ):
        made, again = (jax.tree.leaves(pass_over(each)) for each in (chunk, kept))
        for one, other in zip(made, again, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@ALL
def test_batches_are_unbiased(name):
    theta, stream, n_latent = problem(name)
    prepared, settled = _settled(theta, stream, n_latent, steps=2)
    m, _ = moments(settled.q)
    whole = visit_all(prepared, settled.q, stream.whole(ROWS), keep_sites=False)
    assert whole.sums is not None
    batches = list(stream.batches(16, np.random.default_rng(0)))
    estimates = [visit(prepared, m, batch)[0] for batch in batches]
    shares = [np.sum(batch.weight > 0) / ROWS for batch in batches]
    mean = sum(share * e.bound for share, e in zip(shares, estimates, strict=True))
    np.testing.assert_allclose(mean, whole.sums.bound, rtol=1e-10)


@SHARED
def test_full_batch_steps_never_lower_the_elbo_and_end_at_a_fixed_point(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    seen = []
    prepared, _ = prepare(*theta, 1e-9)
    q = Natural.standard(n_latent, POINTS)
    climbed = climb(
        prepared, q, lambda: stream.whole(ROWS), max_steps=600, tolerance=1e-10, slack=1e-10,
        on_step=lambda elbo, q: seen.append(elbo),
    )  # fmt: skip
    assert len(seen) > 2
    assert np.all(np.diff(seen) >= -1e-10)
    assert climbed.reason == "converged"
    there = visit_all(prepared, climbed.q, stream.whole(ROWS), keep_sites=False)
    target = there.target()
    np.testing.assert_allclose(climbed.q.linear, target.linear, rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(climbed.q.precision, target.precision, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["Logit", "Softmax", "LogisticSoftmax"])
def test_the_slope_along_a_step_equals_a_finite_difference(name):
    theta, stream, n_latent = problem(name)
    prepared, settled = _settled(theta, stream, n_latent, steps=1)
    q = settled.q

    def look(q):
        return visit_all(prepared, q, stream.whole(ROWS), keep_sites=False)

    here = look(q)
    target = here.target()
    numeric = (look(q.towards(target, 1e-5)).elbo - look(q.towards(target, -1e-5)).elbo) / 2e-5
    np.testing.assert_allclose(slope(q, here.m, target), numeric, rtol=1e-5)


def test_a_parabola_peaks_where_its_slope_is_zero():
    for top in (0.1, 0.7, 3.0):
        assert peak(2 * top, 2 * top * 0.5 - 0.25, 0.5) == pytest.approx(top)  # 2·top·r − r²
    assert peak(1.0, 2.0, 1.0) == np.inf  # bends up


@pytest.mark.parametrize("name", sorted(cases.COORDINATE_ASCENT))
def test_full_closed_form_steps_are_coordinate_ascent(name):
    theta, stream, n_latent = problem(name)
    prepared, _ = prepare(*theta, 1e-9)
    q, before = Natural.standard(n_latent, POINTS), -np.inf
    for _ in range(15):
        here = visit_all(prepared, q, stream.whole(ROWS), keep_sites=False)
        assert here.elbo >= before - 1e-10
        q, before = here.target(), here.elbo


@SHARED
def test_held_sites_make_up_q_and_the_dual_bound_is_its_elbo(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    prepared, settled = _settled(theta, stream, n_latent, steps=4)
    chunks = list(stream.whole(ROWS))
    elbo, by_theta, q, here = dual_bound(theta, settled.held, chunks, 1e-9)
    np.testing.assert_allclose(elbo, settled.elbo, rtol=1e-10)
    np.testing.assert_allclose(q.precision, settled.q.precision, rtol=1e-8, atol=1e-10)
    # what the one has seen saves the other a look, and changes nothing
    kept = [with_features(prepared, chunk) for chunk in chunks]
    known = Known(settled.q, settled.here, kept)
    again = dual_bound(theta, settled.held, chunks, 1e-9, known=known)
    for one, other in zip(*map(jax.tree.leaves, (by_theta, again.by_theta)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)
    steps = {"max_steps": 2, "tolerance": 0.0, "slack": 1e-10, "held": settled.held}
    on, anew = (climb(prepared, q, lambda: kept, **steps, here=seen) for seen in (here, None))
    np.testing.assert_allclose(on.q.precision, anew.q.precision, rtol=1e-8, atol=1e-8)
    assert on.elbo == pytest.approx(anew.elbo, rel=1e-12)


@SHARED
def test_the_gradient_of_the_dual_bound_equals_finite_differences(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    _, settled = _settled(theta, stream, n_latent, steps=2)  # not settled: q moves with θ
    chunks = list(stream.whole(25))
    sites = [
        jax.tree.map(lambda s, i=i: jnp.pad(s, ((0, 25), (0, 0)))[25 * i : 25 * i + 25], part)
        for i in range(len(chunks))
        for part in settled.held
    ]
    gradient = dual_bound(theta, sites, chunks, 1e-9)[1]
    rng = np.random.default_rng(3)
    leaves, structure = jax.tree.flatten(theta)
    directions = [rng.normal(size=leaf.shape) for leaf in leaves]

    def value(step):
        moved = [leaf + step * d for leaf, d in zip(leaves, directions, strict=True)]
        return dual_bound(jax.tree.unflatten(structure, moved), sites, chunks, 1e-9)[0]

    numeric = (value(1e-5) - value(-1e-5)) / 2e-5
    pairs = zip(jax.tree.leaves(gradient), directions, strict=True)
    along = sum(float(np.sum(g * d)) for g, d in pairs)
    np.testing.assert_allclose(along, numeric, rtol=2e-4 if name in cases.INDEFINITE else 2e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_what_was_compiled_ahead_is_not_compiled_again(shared, traces):
    theta, stream, n_latent = problem("Softmax", shared=shared, rows=53)  # a shape of its own
    theta, chunks = jax.device_put(theta), list(stream.whole(53))
    plan = make_plan(
        53, n_latent, POINTS, optimizer="lbfgs", max_epochs=2, batch_size="auto", tolerance=1e-4,
        dtype=np.dtype(float),
    )  # fmt: skip
    compile_ahead(theta.model, POINTS, stream, n_latent, plan)
    prepared, _ = prepare(*theta, 1e-9)
    hyper.compiled_beside(prepared, chunks[0], n_latent).wait()
    traces.clear()
    kept = [with_features(prepared, chunk) for chunk in chunks]
    sites = visit_all(prepared, Natural.standard(n_latent, POINTS), kept, keep_sites=True).sites
    improve(
        theta,
        sites,
        chunks,
        Memory(),
        evaluations=2,
        jitter=1e-9,
        move_points=True,
        on_evaluation=lambda *_: None,
    )
    assert not traces


@SHARED
def test_hyper_parameters_climb_the_bound_and_the_prior(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    _, settled = _settled(theta, stream, n_latent, steps=4)
    chunks = list(stream.whole(ROWS))
    seen = []
    best, found, total = improve(
        jax.device_put(theta),
        settled.held,
        chunks,
        Memory(),
        evaluations=6,
        jitter=1e-9,
        move_points=True,
        on_evaluation=lambda elbo, theta, q: seen.append(elbo + float(theta.model.log_prior())),
    )
    assert len(seen) <= 6
    assert total == pytest.approx(max(seen), rel=1e-14)
    assert total > seen[0]
    elbo, _, same, _ = dual_bound(best, settled.held, chunks, 1e-9)
    np.testing.assert_allclose(elbo + best.model.log_prior(), total, rtol=1e-12)
    assert found is not None
    assert np.array_equal(found.q.linear, same.linear)


def test_where_no_row_counts_adam_follows_the_prior_alone():
    theta, stream, n_latent = problem("Logit")
    chunk = stream.blank(ROWS)
    before = theta.model.kernel
    theta = jax.device_put(theta)
    after, *_ = hyper.stochastic_hyper_step(
        theta, Natural.standard(n_latent, POINTS), hyper.adam_start(theta), chunk,
        q_rate=0.1, rate=0.01, jitter=1e-9, move_points=True,
    )  # fmt: skip
    moved = np.asarray(after.model.kernel.log_lengthscale - before.log_lengthscale)
    to_mean = np.mean(before.log_lengthscale) - np.asarray(before.log_lengthscale)
    np.testing.assert_allclose(moved, 0.01 * np.sign(to_mean), rtol=1e-3)
    assert after.model.kernel.log_variance == before.log_variance
    np.testing.assert_array_equal(after.Z, theta.Z)


@SHARED
def test_the_gradient_by_q_holds_the_same_sums_as_the_sites(name, shared):
    theta, stream, n_latent = problem(name, shared=shared)
    prepared, settled = _settled(theta, stream, n_latent, steps=2)
    chunk = next(stream.whole(ROWS))
    m, _ = moments(settled.q)
    by_sites, _ = visit(prepared, m, chunk)
    by_gradient = survey(prepared, m, chunk).statistics(m)
    np.testing.assert_allclose(by_gradient.bound, by_sites.bound, rtol=1e-10)
    np.testing.assert_allclose(by_gradient.linear, by_sites.linear, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_gradient.precision, by_sites.precision, rtol=1e-6, atol=1e-8)


@ALL
def test_sparse_with_every_row_equals_the_full_process(name):
    """An independent full GP, unwhitened: iterate f's Gaussian under the sites to convergence."""
    theta, stream, n_latent = problem(name, rows=24)
    theta = Theta(theta.model, jnp.asarray(stream.X))
    _, settled = _settled(theta, stream, n_latent)
    likelihood, kernel = theta.model.likelihood, theta.model.kernel
    K = np.asarray(kernel.matrix(theta.Z, theta.Z))
    tau, lam = (np.asarray(part) for part in settled.held[0])
    weight, y = stream.weight, jnp.asarray(stream.y)
    sites = jax.jit(lambda *row: jax.vmap(likelihood.sites)(*row))
    for _ in range(100):
        mean, variance, kl = np.empty_like(tau), np.empty_like(tau), 0.0
        for c in range(n_latent):
            B = np.eye(24) + (weight * tau[:, c])[:, None] * K  # τ may be negative
            S = K @ np.linalg.inv(B)
            mean[:, c], variance[:, c] = S @ (weight * lam[:, c]), np.diag(S)
            alpha = np.linalg.solve(K + 1e-10 * np.eye(24), mean[:, c])
            trace = np.trace(np.linalg.inv(B))
            kl += 0.5 * (np.linalg.slogdet(B)[1] + trace - 24 + alpha @ mean[:, c])
        fresh = sites(y, jnp.asarray(mean), jnp.asarray(variance))
        tau, lam = (0.5 * o + 0.5 * np.asarray(n) for o, n in zip((tau, lam), fresh, strict=True))
    bounds = jax.vmap(likelihood.bound)(y, jnp.asarray(mean), jnp.asarray(variance))
    np.testing.assert_allclose(settled.elbo, float(weight @ bounds) - kl, rtol=1e-6)


def _lopsided():
    """robust-max, nine rows of ten in one class, a large variance: raw sites are no Gaussian."""
    theta, stream, n_latent = problem("RobustMax", rows=200)
    y = np.where(np.arange(200) % 10 == 0, stream.y, 0).astype(np.int32)
    model = Model(RBF([1.0, 1.5, 2.0], 500.0), theta.model.likelihood, Exact(), shared=True)
    prepared, _ = prepare(cast(model, jnp.float64), theta.Z, 1e-9)
    return prepared, list(ArrayStream(stream.X, y, stream.weight).whole(200)), n_latent


def test_sites_that_are_no_gaussian_do_not_stop_the_climb():
    prepared, chunks, n_latent = _lopsided()
    prior = Natural.standard(n_latent, POINTS)
    here = visit_all(prepared, prior, chunks, keep_sites=False)
    assert min(np.linalg.eigvalsh(p).min() for p in here.target().precision) < 0
    seen = [here.elbo]
    climb(
        prepared, prior, lambda: chunks, max_steps=20, tolerance=1e-9, slack=1e-10,
        on_step=lambda elbo, q: seen.append(elbo),
    )  # fmt: skip
    assert np.all(np.diff(seen) >= -1e-10)
    assert seen[-1] > 0.5 * seen[0]  # both negative


def test_a_fit_starts_from_the_better_of_q_and_the_prior():
    prepared, chunks, n_latent = _lopsided()
    prior = Natural.standard(n_latent, POINTS)
    q = climb(
        prepared, prior, lambda: chunks, max_steps=10, tolerance=1e-9, slack=1e-10
    ).q  # fmt: skip
    for before in (prior, q):
        first, held = begin(prepared, before, lambda: chunks)
        elbos = [
            visit_all(prepared, each, chunks, keep_sites=False).elbo for each in (first, prior)
        ]
        assert elbos[0] >= elbos[1]
        assert all(np.all(np.asarray(sites.precision) >= 0) for sites in held)
        (sites,), (chunk,) = held, chunks
        for made, own in zip(with_prior(held_sum(prepared, sites, chunk)), first, strict=True):
            np.testing.assert_allclose(made, own, rtol=1e-9, atol=1e-9)  # they make up q


def test_a_stochastic_step_is_positive_definite_whatever_the_sites():
    rng = np.random.default_rng(0)
    for lowest in [-20.0, 0.0] * 10:
        A = rng.normal(size=(5, 5))
        q = Natural(rng.normal(size=(1, 5)), (np.eye(5) + A @ A.T)[None])
        a, tau = rng.normal(size=(3, 5)), rng.uniform(lowest, 20.0, (3, 1))
        target = Natural(rng.normal(size=(1, 5)), (np.eye(5) + a.T @ (tau * a))[None])
        for rate in (0.01, 0.3, 1.0):
            step = stochastic_step(q, target, rate, Sites(tau, tau))
            assert np.linalg.eigvalsh(step.precision[0]).min() > 0


@pytest.mark.parametrize("name", ["Logit", "Softmax", "RobustMax"])
def test_new_rows_take_over_from_a_posterior_of_others(name):
    """Sites of the rows seen now, and what is left of the first q, make up q; the bound agrees."""
    theta, stream, n_latent = problem(name)
    others = problem(name, rows=30)[1]
    first = weakened(_settled(theta, others, n_latent, steps=20)[1].q, 0.3)
    prepared, _ = prepare(*theta, 1e-9)
    chunks = list(stream.whole(25))
    none = no_sites(prepared, chunks, n_latent)
    seen = [visit_all(prepared, first, chunks, keep_sites=False).elbo]
    climbed = climb(
        prepared, first, lambda: chunks, max_steps=4, tolerance=0.0, slack=1e-10, rate=0.25,
        held=none, on_step=lambda elbo, q: seen.append(elbo),
    )  # fmt: skip
    assert 0 < climbed.left < 0.75
    assert np.all(np.diff(seen) >= -1e-10)
    assert climbed.held is not None
    rest = Natural(*(climbed.left * part for part in less_prior(first)))
    elbo, _, q, _ = dual_bound(theta, climbed.held, chunks, 1e-9, rest)
    np.testing.assert_allclose(elbo, climbed.elbo, rtol=1e-9)
    for made, own in zip(q, climbed.q, strict=True):
        np.testing.assert_allclose(made, own, rtol=1e-9, atol=1e-9)


def test_what_is_weakened_lies_between_the_prior_and_itself():
    theta, stream, n_latent = problem("Logit")
    q = _settled(theta, stream, n_latent)[1].q
    prior = Natural.standard(n_latent, POINTS)
    for share, expected in ((0.0, prior), (1.0, q)):
        for made, own in zip(weakened(q, share), expected, strict=True):
            np.testing.assert_allclose(made, own)
    less = weakened(q, 0.1)
    assert np.linalg.eigvalsh(q.precision[0] - less.precision[0]).min() > -1e-9


@pytest.mark.parametrize("options", [compilation.QUICK, compilation.PLAIN, None])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_compiled_or_not_a_row_with_anything_but_numbers_is_found(bad, options):
    values, parts = np.full(5, 3e38, np.float32), np.full((5, 4), -3e38, np.float32)
    values[1], parts[3, 2] = bad, bad
    compiled = compilation.program(finite_rows, options)
    for look in (finite_rows, compiled):
        assert np.array_equal(look(jnp.asarray(values), jnp.asarray(parts)), [1, 0, 1, 0, 1])
