"""Laws of hyper-parameters: the dual bound, its gradient, and who climbs it."""

import jax
import numpy as np
import pytest

import cases
from gpclf.data import ArrayRows, Kept
from gpclf.gaussian import Natural, moments
from gpclf.inference.ahead import compile_ahead, compiled_beside
from gpclf.inference.hyper import (
    Known,
    Moves,
    Problem,
    batch_gradient,
    dual_objective,
    improve,
    uphill,
)
from gpclf.inference.natural import (
    Limits,
    Start,
    settle,
)
from gpclf.inference.optim.adaptive import Adaptive
from gpclf.inference.optim.lbfgs import Memory
from gpclf.inference.passes import (
    with_kept_features,
)
from gpclf.inference.rules import Variational
from gpclf.model import prepare
from problems import POINTS, SHARED, no_sites_held, problem, settled

RULE = Variational()
ALL = pytest.mark.parametrize("name", sorted(cases.LIKELIHOODS))


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


@SHARED
def test_held_sites_make_up_q_and_the_dual_bound_is_its_elbo(name, share):
    theta, rows, n_latent = problem(name, share=share)
    prepared, found = settled(theta, rows, n_latent, steps=4, common=share == "covariance")
    problem_ = Problem(RULE, rows, found.held, 1e-9)
    elbo, by_theta, q, here = dual_objective(problem_, theta)
    np.testing.assert_allclose(elbo, found.objective, rtol=1e-10)
    np.testing.assert_allclose(q.precision, found.q.precision, rtol=1e-8, atol=1e-10)
    # what the one has seen saves the other a look, and changes nothing
    kept = with_kept_features(prepared, rows)
    again = dual_objective(problem_, theta, Known(found.q, found.here, kept))
    for one, other in zip(*map(jax.tree.leaves, (by_theta, again.by_theta)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)
    on, anew = (
        settle(RULE, prepared, Start(q, found.held, 1.0, seen), kept, Limits(2, 0.0, 1e-10))
        for seen in (here, None)
    )
    np.testing.assert_allclose(on.q.precision, anew.q.precision, rtol=1e-8, atol=1e-8)
    assert on.objective == pytest.approx(anew.objective, rel=1e-12)


@SHARED
def test_the_gradient_of_the_dual_bound_equals_finite_differences(name, share):
    theta, rows, n_latent = problem(name, share=share)
    _, found = settled(
        theta, rows, n_latent, steps=2, common=share == "covariance"
    )  # not settled: q moves with θ
    problem_ = Problem(RULE, rows, found.held, 1e-9)
    gradient = dual_objective(problem_, theta).by_theta
    rng = np.random.default_rng(3)
    leaves, structure = jax.tree.flatten(theta)
    directions = [rng.normal(size=leaf.shape) for leaf in leaves]

    def value(step):
        moved = [leaf + step * d for leaf, d in zip(leaves, directions, strict=True)]
        return dual_objective(problem_, jax.tree.unflatten(structure, moved)).objective

    numeric = (value(1e-5) - value(-1e-5)) / 2e-5
    pairs = zip(jax.tree.leaves(gradient), directions, strict=True)
    along = sum(float(np.sum(g * d)) for g, d in pairs)
    np.testing.assert_allclose(
        along, numeric, rtol=2e-5 if cases.LIKELIHOODS[name].concave else 2e-4
    )


@pytest.mark.parametrize("name", ["Logit", "RobustMax 2", "Softmax 2"])
def test_the_dual_bound_and_its_gradient_in_chunks_are_those_of_the_whole(name):
    theta, rows, n_latent = problem(name)
    _, found = settled(theta, rows, n_latent, steps=2)
    (whole,) = found.held.sites
    parts = Kept(
        jax.tree.map(lambda s, i=i: np.pad(s, ((0, 16), (0, 0)))[16 * i : 16 * i + 16], whole)
        for i in range(3)
    )
    chunks = Problem(RULE, rows.in_chunks(16), found.held._replace(sites=parts), 1e-9)
    one, other = (
        dual_objective(each, theta) for each in (Problem(RULE, rows, found.held, 1e-9), chunks)
    )
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-12)
    for own, again in zip(*map(jax.tree.leaves, (one.by_theta, other.by_theta)), strict=True):
        np.testing.assert_allclose(again, own, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("share", ["both", "none"])
def test_what_was_compiled_ahead_is_not_compiled_again(share, traces):
    theta, rows, n_latent = problem("Softmax", share=share, rows=53)  # a shape of its own
    theta, blank = jax.device_put(theta), rows.blank()
    compile_ahead(RULE, theta.model, blank, Natural.standard(n_latent, POINTS))
    prepared, _ = prepare(*theta, 1e-9)
    compiled_beside(RULE, prepared, blank, Natural.standard(n_latent, POINTS)).wait()
    nothing = no_sites_held(prepared, rows, n_latent)
    traces.clear()
    kept = with_kept_features(prepared, rows)
    sites = RULE.look(prepared, Natural.standard(n_latent, POINTS), kept, Kept()).sites
    problem_ = Problem(RULE, rows, nothing._replace(sites=sites), 1e-9)
    improve(
        theta,
        lambda theta, _: dual_objective(problem_, theta),
        Memory(),
        total=rows.total_weight,
        evaluations=2,
        moves=Moves(),
        on_evaluation=lambda *_: None,
    )
    assert not traces


@SHARED
def test_hyper_parameters_climb_the_bound_and_the_prior(name, share):
    theta, rows, n_latent = problem(name, share=share)
    _, found = settled(theta, rows, n_latent, steps=4, common=share == "covariance")
    problem_, seen = Problem(RULE, rows, found.held, 1e-9), []
    best, better, total = improve(
        jax.device_put(theta),
        lambda theta, _: dual_objective(problem_, theta),
        Memory(),
        total=rows.total_weight,
        evaluations=6,
        moves=Moves(),
        on_evaluation=lambda elbo, theta, *_: seen.append(elbo + float(theta.model.log_prior())),
    )
    assert len(seen) <= 6
    assert total == pytest.approx(max(seen), rel=1e-14)
    assert total > seen[0]
    elbo, _, same, _ = dual_objective(problem_, best)
    np.testing.assert_allclose(elbo + best.model.log_prior(), total, rtol=1e-12)
    assert better is not None
    assert np.array_equal(better.q.linear, same.linear)


def test_where_no_row_counts_adam_follows_the_prior_alone():
    theta, rows, n_latent = problem("Logit")
    empty = ArrayRows(rows.X, rows.y, 0 * rows.weight)
    before = theta.model.kernel
    theta = jax.device_put(theta)
    prepared, _ = prepare(*theta, 1e-9)
    m, _ = moments(Natural.standard(n_latent, POINTS))
    _, by_theta, _ = batch_gradient(prepared, m, empty)
    after = Adaptive("adam", theta).step(theta, uphill(theta, by_theta, True), 0.01)
    moved = np.asarray(after.model.kernel.log_lengthscale - before.log_lengthscale)
    to_mean = np.mean(before.log_lengthscale) - np.asarray(before.log_lengthscale)
    np.testing.assert_allclose(moved, 0.01 * np.sign(to_mean), rtol=1e-3)
    assert after.model.kernel.log_variance == before.log_variance
    np.testing.assert_array_equal(after.Z, theta.Z)
