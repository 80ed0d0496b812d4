"""Laws of orthogonally decoupled bases: more points, for the mean alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons

from bad_tables import BAD, WORST
from gpclf import GPClassifier
from gpclf.gaussian import Natural, moments
from gpclf.inference import Settings, Sizes, Watch, engines, fit
from gpclf.inference.decoupled import DecoupledForm, climb_decoupled, look
from gpclf.inference.decoupled_hyper import dual_bound, hold
from gpclf.inference.engines import Decoupled
from gpclf.inference.hyper import flat, shaped_like
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.passes import with_kept_features
from gpclf.inference.rules import Variational
from gpclf.inference.stops import Stop
from gpclf.kernels import RBF
from gpclf.linalg import conjugate_gradients
from gpclf.model import prepare
from problems import POINTS, ROWS, problem

FEW = {"n_inducing": 5, "random_state": 0}
QUICK = {**FEW, "max_epochs": 8}
CLOSE = Limits(300, 1e-11, 1e-10)
MORE = 4  # of the points are for the mean alone


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    engine = Decoupled(n_mean=8, optimizer=None)
    return GPClassifier(**FEW, kernel=RBF(0.7, 3.0), inference=engine).fit(*moons)


def _settled(prepared, source, n_latent, size, on_step=lambda elbo, m: None):
    """From the prior, mean and Λ of the first points where nothing leads up."""
    q = DecoupledForm(np.zeros((n_latent, POINTS)), np.stack([np.eye(size)] * n_latent))
    rows = with_kept_features(prepared, source.in_chunks(16))
    return *climb_decoupled(prepared, q, rows, rows, CLOSE, on_step), rows


@pytest.mark.parametrize("name", ["Logit", "Probit", "Softmax"])
def test_steps_never_lower_the_elbo_and_end_at_a_fixed_point(name, x64):
    theta, source, n_latent = problem(name)
    prepared, _ = prepare(*theta, 1e-9)
    seen = []
    q, _, why, rows = _settled(
        prepared, source, n_latent, POINTS - MORE, on_step=lambda elbo, m: seen.append(elbo)
    )
    assert len(seen) > 2
    assert np.all(np.diff(seen) >= -1e-10)
    assert why == Stop.CONVERGED
    there = look(prepared, q, rows)
    assert np.abs(there.by_mean).max() < 1e-3
    np.testing.assert_allclose(q.precision, there.target, rtol=1e-3, atol=1e-3)


def test_the_family_is_a_gaussian_of_all_points_with_the_variance_of_some(x64):
    """ν and KL of diag(S, I) written out, as the coupled engine sees them."""
    theta, source, n_latent = problem("Softmax")
    prepared, _ = prepare(*theta, 1e-9)
    q, elbo, _, rows = _settled(prepared, source, n_latent, POINTS - MORE)
    precision = np.stack([np.eye(POINTS)] * n_latent)
    precision[:, :-MORE, :-MORE] = q.precision
    whole = Natural(np.einsum("cij,cj->ci", precision, q.mean), precision)
    np.testing.assert_allclose(Variational().look(prepared, whole, rows).objective, elbo)
    features = prepared.features(next(rows.chunks()).X)
    for one, other in zip(
        prepared.marginals(features, q.moments()[0]),
        prepared.marginals(features, moments(whole)[0]),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["Logit", "Softmax"])
def test_where_all_points_are_coupled_it_ends_where_the_natural_engine_does(name, x64):
    theta, source, n_latent = problem(name)
    prepared, _ = prepare(*theta, 1e-9)
    _, elbo, _, rows = _settled(prepared, source, n_latent, POINTS)
    prior = Natural.standard(n_latent, POINTS)
    natural = settle(Variational(), prepared, Start(prior), rows, CLOSE)
    np.testing.assert_allclose(elbo, natural.objective, rtol=1e-9)


@pytest.mark.parametrize("name", ["Softmax", "RobustMax"])
def test_the_gradient_of_the_dual_bound_equals_finite_differences(name, x64):
    """By kernel, likelihood, Z and Zβ, with the sites of a q that is not settled."""
    theta, source, n_latent = problem(name)
    rows = source.in_chunks(16)
    prepared, _ = prepare(*theta, 1e-9)
    first = DecoupledForm(
        np.zeros((n_latent, POINTS)), np.stack([np.eye(POINTS - MORE)] * n_latent)
    )
    q, elbo, _ = climb_decoupled(prepared, first, rows, rows, Limits(2, 1e-9, 1e-9))
    held = hold(prepared, q, rows)
    assert all(np.all(own.precision >= 0) for own in held.sites)
    here = dual_bound(held, rows, theta, 1e-9)
    np.testing.assert_allclose(here.objective, elbo, rtol=1e-12)  # q is what it was
    np.testing.assert_allclose(here.q.precision, q.precision, rtol=1e-9, atol=1e-9)
    leaves, structure = jax.tree.flatten(jax.device_put(theta))
    place, slope = flat(leaves), flat(jax.tree.leaves(here.by_theta))
    way = np.random.default_rng(0).normal(size=place.shape)
    up, down = (
        dual_bound(held, rows, jax.tree.unflatten(structure, shaped_like(leaves, there)), 1e-9)
        for there in (place + 1e-5 * way, place - 1e-5 * way)
    )
    np.testing.assert_allclose((up.objective - down.objective) / 2e-5, slope @ way, rtol=1e-4)


def test_points_for_the_mean_lie_between_fewer_and_more_coupled_points(x64):
    theta, source, n_latent = problem("Logit")
    prepared, _ = prepare(*theta, 1e-9)
    elbos = []
    for size in (POINTS - MORE, POINTS):
        elbos.append(_settled(prepared, source, n_latent, size)[1])
    fewer, _ = prepare(theta.model, theta.Z[:-MORE], 1e-9)
    prior = Natural.standard(n_latent, POINTS - MORE)
    least = settle(Variational(), fewer, Start(prior), source, CLOSE).objective
    assert least + 1e-3 < elbos[0] < elbos[1]


def test_conjugate_gradients_solve_for_all_functions_at_once():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 6, 6))
    P = np.eye(6) + A @ np.swapaxes(A, 1, 2)
    right = rng.normal(size=(3, 6))

    def product(x):
        return np.einsum("cij,cj->ci", P, x)

    for condition in (lambda x: x, lambda x: np.einsum("cij,cj->ci", np.linalg.inv(P), x)):
        x = conjugate_gradients(product, condition, right, most=12, left=1e-9)
        np.testing.assert_allclose(product(x), right, atol=1e-7)
    short = conjugate_gradients(product, lambda x: x, right, most=2, left=0.0)
    assert np.all(np.sum(short * right, axis=1) > 0)
    none = np.zeros_like(right)
    np.testing.assert_array_equal(
        conjugate_gradients(product, lambda x: x, none, most=3, left=0.1), none
    )


def test_without_more_points_it_is_the_coupled_engine(moons):
    X, y = moons
    coupled = GPClassifier(**QUICK, inference="natural").fit(X, y)
    none = GPClassifier(**QUICK, inference=Decoupled(n_mean=0)).fit(X, y)
    assert none.elbo_ == coupled.elbo_
    assert np.array_equal(none.predict_proba(X), coupled.predict_proba(X))


def _value(clf):
    """What is climbed: the ELBO, and the prior of the kernel."""
    return clf.elbo_ + float(clf.kernel_.log_prior())


@pytest.mark.parametrize("name", ["Probit", "RobustMax"])
def test_learning_never_lowers_the_bound_and_ends_above_that_of_the_coupled_kernel(name, x64):
    """Objective and prior of θ: every round begins with the best of all before it."""
    theta, source, n_latent = problem(name)
    engine = Decoupled(n_mean=8)
    plan = engine.plan(Sizes(source.n_rows, n_latent, POINTS, 3), 36)._replace(chunk_rows=16)
    seen, total = [], source.total_weight

    def report(line):
        if line.stage.startswith("mean: "):
            value = line.elbo * total + float(line.theta.model.log_prior())
            seen.append((line.stage, value))

    rng = np.random.default_rng(0)
    end = fit(theta, n_latent, source, engine, plan, Settings(), rng, Watch(report))
    stages, values = zip(*seen, strict=True)
    first = stages.index("mean: hyper-parameters")
    assert stages[first:].count("mean: posterior") > 1  # several rounds
    best = np.maximum.accumulate(values)
    steps = [i for i, stage in enumerate(stages) if i > 0 and "hyper" not in stage]
    assert all(values[i] >= best[i - 1] - 1e-9 for i in steps)
    prior = float(end.theta.model.log_prior())
    assert end.objective + prior > values[first - 1] + 1e-3  # where θ was still the coupled one
    assert end.theta.Z.shape[0] == end.q.mean.shape[1] > POINTS


@pytest.mark.parametrize("likelihood", ["softmax", "robust-max"])
def test_without_an_optimizer_more_points_raise_the_elbo_of_the_same_kernel(moons, likelihood):
    X, y = moons
    settings = {**QUICK, "likelihood": likelihood, "kernel": RBF(0.7, 3.0)}
    coupled = GPClassifier(**settings, inference=engines.Natural(optimizer=None)).fit(X, y)
    more = clone(coupled).set_params(inference=Decoupled(8, optimizer=None)).fit(X, y)
    assert repr(more.kernel_) == repr(coupled.kernel_)
    np.testing.assert_array_equal(more.inducing_points_[:5], coupled.inducing_points_)
    assert more.elbo_ >= coupled.elbo_
    assert len(more.inducing_points_) > 5


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_points_that_are_not_learned_stay_and_those_of_the_mean_are_rows(moons, optimizer):
    X, y = moons
    engine = Decoupled(n_mean=8, optimizer=optimizer, learn_inducing=False)
    settings = {**QUICK, "precision": "double"}
    clf = GPClassifier(**settings, inference=engine).fit(X, y)
    kept = clone(clf).set_params(inference=engines.Natural(optimizer=None)).fit(X, y)
    np.testing.assert_array_equal(clf.inducing_points_[:5], kept.inducing_points_)
    more = clf.inducing_points_[5:]
    assert len(more) > 0
    assert np.max(np.min(np.abs(more[:, None] - X).sum(-1), axis=1)) < 1e-9
    assert repr(clf.kernel_) != repr(kept.kernel_)


@pytest.mark.parametrize("likelihood", ["logit", "robust-max"])
def test_steps_on_batches_reach_the_bound_of_full_steps(moons, likelihood):
    X, y = moons
    settings = {**FEW, "likelihood": likelihood, "kernel": RBF(0.7, 3.0), "max_epochs": 30}
    whole = GPClassifier(**settings, inference=Decoupled(8, optimizer=None)).fit(X, y)
    batches = Decoupled(8, optimizer=None, batch_size=40)
    found = GPClassifier(**settings, inference=batches).fit(X, y)
    assert len(found.inducing_points_) == len(whole.inducing_points_)
    assert "mean: epoch limit" in found.stopped_
    coupled = GPClassifier(**settings, inference=engines.Natural(optimizer=None)).fit(X, y)
    assert abs(found.elbo_ - whole.elbo_) < 0.05 * (whole.elbo_ - coupled.elbo_)


def test_the_bound_reported_after_batches_is_that_of_all_rows(moons):
    X, y = moons
    engine = Decoupled(8, optimizer="adam", batch_size=40)
    clf = GPClassifier(**{**QUICK, "max_epochs": 3}, inference=engine).fit(X, y)
    bound = clf.expected_log_likelihood(X, y).sum() - clf.kl_divergence()
    np.testing.assert_allclose(clf.elbo_, bound, rtol=1e-4)


def test_adam_on_batches_raises_the_decoupled_bound_by_the_kernel_too(moons):
    X, y = moons
    ends = []
    for optimizer in (None, "adam"):
        engine = Decoupled(8, optimizer=optimizer, batch_size=40)
        settings = {**FEW, "kernel": RBF(0.7, 3.0), "max_epochs": 30}
        ends.append(GPClassifier(**settings, inference=engine).fit(X, y))
    assert _value(ends[1]) > _value(ends[0])
    assert "hyper-parameters: epoch limit" in ends[1].stopped_


def test_the_variance_knows_nothing_of_points_for_the_mean(fitted):
    q = fitted.posterior_.q
    assert q.mean.shape == (1, 13)
    assert q.excess.shape == (1, 5, 5)


def test_prediction_from_roots_equals_that_from_features(fitted, moons):
    X, _ = moons
    assert fitted.posterior_.roots is not None
    mean, variance = fitted.latent_mean_and_variance(X)
    with jax.enable_x64(True):
        prepared, q = jax.device_put((fitted.posterior_.prepared, fitted.posterior_.q))
        features = prepared.features(jnp.asarray(fitted._scaling.forward(X)))
        mu, nu = prepared.marginals(features, q)
    np.testing.assert_allclose(mean, mu[:, 0], atol=1e-6)
    np.testing.assert_allclose(variance, nu[:, 0], atol=1e-6)


def test_a_file_keeps_it(fitted, moons, tmp_path):
    X, _ = moons
    fitted.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.get_params()["inference__n_mean"] == 8


def test_a_warm_start_and_a_piece_go_on_from_it(moons):
    X, y = moons
    clf = GPClassifier(**FEW, inference=Decoupled(8), max_epochs=8, warm_start=True).fit(X, y)
    first = clf.elbo_
    assert clf.fit(X, y).elbo_ >= first - 1e-2 * abs(first)
    assert clf.posterior_.q.excess.shape == (1, 5, 5)
    points = len(clf.inducing_points_)
    clf.partial_fit(X[:40], y[:40])
    assert clf.posterior_.q.excess.shape == (1, points, points)
    assert clf.score(X, y) > 0.85


@pytest.mark.parametrize("case", WORST)
def test_difficult_data_give_finite_probabilities(case):
    X, y = BAD[case]
    clf = GPClassifier(inference="decoupled", n_inducing=2, max_epochs=5, random_state=0)
    assert np.all(np.isfinite(clf.fit(X, y).predict_proba(X)))


def test_steps_on_some_rows_for_the_curvature_also_lead_up(moons, monkeypatch):
    """Where features of all rows would not fit."""
    X, y = moons
    engine = Decoupled(n_mean=8, optimizer=None)
    settings = {**FEW, "inference": engine, "kernel": RBF(0.7, 3.0)}
    whole = GPClassifier(**settings, tol=1e-8).fit(X, y)
    monkeypatch.setattr("gpclf.inference.engines.decoupled.KEPT_FLOATS", ROWS * 13)
    some = GPClassifier(**settings, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(some.elbo_, whole.elbo_, rtol=1e-4)


def test_kernels_of_their_own_get_one_sentence(moons):
    with pytest.raises(ValueError, match='use share="both"'):
        GPClassifier(**FEW, inference="decoupled", share="none").fit(*moons)
