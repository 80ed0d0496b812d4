"""Laws of the engine, on every likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cases
from gpclf import compilation
from gpclf.data import ArrayRows, Kept
from gpclf.gaussian import Natural, moments
from gpclf.inference.hyper import (
    Problem,
    dual_objective,
)
from gpclf.inference.natural import (
    Limits,
    Start,
    initial_posterior,
    less_prior,
    settle,
    stochastic_step,
    tempered,
)
from gpclf.inference.passes import (
    definite,
    finite_rows,
    gradient_pass,
    held_sum,
    step_pass,
    theta_pass,
    with_features,
)
from gpclf.inference.rules import (
    Held,
    Variational,
    held_posterior,
    no_sites,
    peak,
    slope,
)
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.model import Model, Theta, prepare
from gpclf.precision import cast
from problems import POINTS, ROWS, SHARED, problem, settled

RULE = Variational()
# one of each kind, where a law is the engine's and a likelihood only gives the numbers
KINDS = ["Logit", "LogitPG", "NoisyProbit 2", "RobustMax 2", "Softmax 2", "LogisticSoftmax 2"]


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def test_gradients_by_features_are_kept_only_where_they_are_asked_for():
    """M numbers a row: where all rows are seen, memory must not grow with them."""
    theta, rows, n_latent = problem("Logit")
    prepared, found = settled(theta, rows, n_latent, steps=2)
    assert found.here.by_features is not None
    assert RULE.look(prepared, found.q, rows, Kept()).by_features is None
    start = Start(found.q, found.held)
    assert settle(RULE, prepared, start, rows, Limits(2, 0.0, 1e-10)).here.by_features is None


@pytest.mark.parametrize(
    ("name", "share"), [(name, "both") for name in KINDS] + [("Softmax", "none")]
)
def test_chunked_equals_whole(name, share):
    theta, rows, n_latent = problem(name, share=share)
    prepared, found = settled(theta, rows, n_latent, steps=2)
    whole = RULE.look(prepared, found.q, rows)
    parts = RULE.look(prepared, found.q, rows.in_chunks(16))  # 12 rows fill up
    np.testing.assert_allclose(parts.objective, whole.objective, rtol=1e-12)
    one, other = whole.target, parts.target
    np.testing.assert_allclose(other.precision, one.precision, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("share", ["both", "none"])
def test_features_that_are_kept_change_nothing(share):
    theta, rows, n_latent = problem("RobustMax", share=share)
    prepared, found = settled(theta, rows, n_latent, steps=2)
    m, _ = moments(found.q)
    (chunk,) = rows.chunks()
    kept, (sites,) = with_features(prepared, chunk), found.held.sites
    first = gradient_pass(prepared, m, chunk)
    for pass_over in (
        lambda chunk: step_pass(prepared, m, chunk),
        lambda chunk: gradient_pass(prepared, m, chunk),
        lambda chunk: held_sum(prepared, sites, chunk),
        lambda chunk: definite(prepared, m, sites, chunk),
        lambda chunk: theta_pass(prepared, first.by_features, found.q, sites, chunk),
    ):
        made, again = (jax.tree.leaves(pass_over(each)) for each in (chunk, kept))
        for one, other in zip(made, again, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_batches_are_unbiased(name):
    theta, rows, n_latent = problem(name)
    prepared, found = settled(theta, rows, n_latent, steps=2)
    m, _ = moments(found.q)
    whole = RULE.look(prepared, found.q, rows)
    assert whole.sums is not None
    mean = 0.0
    for batch in rows.in_chunks(9).batches(16, np.random.default_rng(0)):  # two chunks each
        bound = batch.sum(lambda chunk: step_pass(prepared, m, chunk)[0]).bound
        mean += bound * batch.n_rows / ROWS
    np.testing.assert_allclose(mean, whole.sums.bound, rtol=1e-10)


@SHARED
def test_full_batch_steps_never_lower_the_elbo_and_end_at_a_fixed_point(name, share):
    theta, rows, n_latent = problem(name, share=share)
    seen = []
    prepared, _ = prepare(*theta, 1e-9)
    q = Natural.standard(n_latent, POINTS, common=share == "covariance")
    limits = Limits(600, tolerance=1e-10, slack=1e-10)
    climbed = settle(
        RULE, prepared, Start(q), rows, limits, on_step=lambda elbo, q: seen.append(elbo)
    )
    assert len(seen) > 2
    assert np.all(np.diff(seen) >= -1e-10)
    assert climbed.reason == "converged"
    target = RULE.look(prepared, climbed.q, rows).target
    np.testing.assert_allclose(climbed.q.linear, target.linear, rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(climbed.q.precision, target.precision, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["Logit", "Softmax", "LogisticSoftmax"])
def test_the_slope_along_a_step_equals_a_finite_difference(name):
    theta, rows, n_latent = problem(name)
    prepared, found = settled(theta, rows, n_latent, steps=1)
    q = found.q

    def look(q):
        return RULE.look(prepared, q, rows)

    here = look(q)
    target = here.target
    ahead, behind = (look(q.towards(target, rate)).objective for rate in (1e-5, -1e-5))
    numeric = (ahead - behind) / 2e-5
    np.testing.assert_allclose(slope(q, here.m, target), numeric, rtol=1e-5)


def test_a_parabola_peaks_where_its_slope_is_zero():
    for top in (0.1, 0.7, 3.0):
        assert peak(2 * top, 2 * top * 0.5 - 0.25, 0.5) == pytest.approx(top)  # 2·top·r − r²
    assert peak(1.0, 2.0, 1.0) == np.inf  # bends up


@pytest.mark.parametrize("name", cases.ASCENT)
def test_full_closed_form_steps_are_coordinate_ascent(name):
    theta, rows, n_latent = problem(name)
    prepared, _ = prepare(*theta, 1e-9)
    q, before = Natural.standard(n_latent, POINTS), -np.inf
    for _ in range(15):
        here = RULE.look(prepared, q, rows)
        assert here.objective >= before - 1e-10
        q, before = here.target, here.objective


@SHARED
def test_the_gradient_by_q_holds_the_same_sums_as_the_sites(name, share):
    theta, rows, n_latent = problem(name, share=share)
    prepared, found = settled(theta, rows, n_latent, steps=2, common=share == "covariance")
    (chunk,) = rows.chunks()
    m, _ = moments(found.q)
    by_sites, _ = step_pass(prepared, m, chunk)
    by_gradient = gradient_pass(prepared, m, chunk).statistics(m)
    np.testing.assert_allclose(by_gradient.bound, by_sites.bound, rtol=1e-10)
    np.testing.assert_allclose(by_gradient.linear, by_sites.linear, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_gradient.precision, by_sites.precision, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", KINDS)
def test_sparse_with_every_row_equals_the_full_process(name):
    """An independent full GP, unwhitened: iterate f's Gaussian under the sites to convergence."""
    theta, rows, n_latent = problem(name, rows=24)
    theta = Theta(theta.model, jnp.asarray(rows.X))
    _, found = settled(theta, rows, n_latent)
    likelihood, kernel = theta.model.likelihood, theta.model.kernel
    K = np.asarray(kernel.matrix(theta.Z, theta.Z))
    tau, lam = (np.asarray(part) for part in found.held.sites[0])
    weight, y = rows.weight, jnp.asarray(rows.y)
    sites, bound = (jax.jit(jax.vmap(f)) for f in (likelihood.sites, likelihood.bound))
    for _ in range(40):
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
    bounds = bound(y, jnp.asarray(mean), jnp.asarray(variance))
    np.testing.assert_allclose(found.objective, float(weight @ bounds) - kl, rtol=1e-6)


def _lopsided():
    """robust-max, nine rows of ten in one class, a large variance: raw sites are no Gaussian."""
    theta, rows, n_latent = problem("RobustMax", rows=200)
    y = np.where(np.arange(200) % 10 == 0, rows.y, 0).astype(np.int32)
    model = Model(RBF([1.0, 1.5, 2.0], 500.0), theta.model.likelihood, Exact())
    prepared, _ = prepare(cast(model, jnp.float64), theta.Z, 1e-9)
    return prepared, ArrayRows(rows.X, y, rows.weight), n_latent


def test_sites_that_are_no_gaussian_do_not_stop_the_climb():
    prepared, rows, n_latent = _lopsided()
    prior = Natural.standard(n_latent, POINTS)
    here = RULE.look(prepared, prior, rows)
    assert min(np.linalg.eigvalsh(p).min() for p in here.target.precision) < 0
    seen, limits = [here.objective], Limits(20, tolerance=1e-9, slack=1e-10)
    settle(RULE, prepared, Start(prior), rows, limits, on_step=lambda e, q: seen.append(e))
    assert np.all(np.diff(seen) >= -1e-10)
    assert seen[-1] > 0.5 * seen[0]  # both negative


def test_a_fit_starts_from_the_better_of_q_and_the_prior():
    prepared, rows, n_latent = _lopsided()
    prior = Natural.standard(n_latent, POINTS)
    q = settle(RULE, prepared, Start(prior), rows, Limits(10, 1e-9, 1e-10)).q
    for before in (prior, q):
        first, held = initial_posterior(prepared, before, rows)
        elbos = [RULE.look(prepared, each, rows).objective for each in (first, prior)]
        assert elbos[0] >= elbos[1]
        assert all(np.all(np.asarray(sites.precision) >= 0) for sites in held.sites)
        for made, own in zip(held_posterior(prepared, held, rows), first, strict=True):
            np.testing.assert_allclose(made, own, rtol=1e-9, atol=1e-9)  # they make up q


def test_a_stochastic_step_is_positive_definite_whatever_the_sites():
    rng = np.random.default_rng(0)
    for lowest in [-20.0, 0.0] * 10:
        A = rng.normal(size=(5, 5))
        q = Natural(rng.normal(size=(1, 5)), (np.eye(5) + A @ A.T)[None])
        a, tau = rng.normal(size=(3, 5)), rng.uniform(lowest, 20.0, (3, 1))
        target = Natural(rng.normal(size=(1, 5)), (np.eye(5) + a.T @ (tau * a))[None])
        for rate in (0.01, 0.3, 1.0):
            step = stochastic_step(q, target, rate, bool(np.any(tau < 0)))
            assert np.linalg.eigvalsh(step.precision[0]).min() > 0


@pytest.mark.parametrize("name", ["Logit", "Softmax", "RobustMax"])
def test_new_rows_take_over_from_a_posterior_of_others(name):
    """Sites of the rows seen now, and what is left of the first q, make up q; the bound agrees."""
    theta, rows, n_latent = problem(name)
    others = problem(name, rows=30)[1]
    first = tempered(settled(theta, others, n_latent, steps=20)[1].q, 0.3)
    prepared, _ = prepare(*theta, 1e-9)
    rows = rows.in_chunks(16)
    held = Held(no_sites(prepared, rows, first), less_prior(first))
    seen = [RULE.look(prepared, first, rows).objective]
    climbed = settle(
        RULE, prepared, Start(first, held, 0.25), rows, Limits(4, 0.0, 1e-10),
        on_step=lambda elbo, q: seen.append(elbo),
    )  # fmt: skip
    left = climbed.held.rest.linear / held.rest.linear
    assert np.all((left > 0) & (left < 0.75))
    assert np.all(np.diff(seen) >= -1e-10)
    elbo, _, q, _ = dual_objective(Problem(RULE, rows, climbed.held, 1e-9), theta)
    np.testing.assert_allclose(elbo, climbed.objective, rtol=1e-9)
    for made, own in zip(q, climbed.q, strict=True):
        np.testing.assert_allclose(made, own, rtol=1e-9, atol=1e-9)


def test_what_is_tempered_lies_between_the_prior_and_itself():
    theta, rows, n_latent = problem("Logit")
    q = settled(theta, rows, n_latent)[1].q
    prior = Natural.standard(n_latent, POINTS)
    for share, expected in ((0.0, prior), (1.0, q)):
        for made, own in zip(tempered(q, share), expected, strict=True):
            np.testing.assert_allclose(made, own)
    less = tempered(q, 0.1)
    assert np.linalg.eigvalsh(q.precision[0] - less.precision[0]).min() > -1e-9


@pytest.mark.parametrize("options", [compilation.QUICK, compilation.PLAIN, None])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_compiled_or_not_a_row_with_anything_but_numbers_is_found(bad, options):
    values, parts = np.full(5, 3e38, np.float32), np.full((5, 4), -3e38, np.float32)
    values[1], parts[3, 2] = bad, bad
    compiled = compilation.program(finite_rows, options)
    for look in (finite_rows, compiled):
        assert np.array_equal(look(jnp.asarray(values), jnp.asarray(parts)), [1, 0, 1, 0, 1])
