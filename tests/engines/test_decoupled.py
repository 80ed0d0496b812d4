"""Laws of orthogonally decoupled bases: more points, for the mean alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons

from bad_tables import BAD
from gpclf import GPClassifier
from gpclf.gaussian import Natural, moments
from gpclf.inference.decoupled import DecoupledForm, climb_decoupled, look
from gpclf.inference.engines import Decoupled
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.passes import with_kept_features
from gpclf.inference.rules import Variational
from gpclf.inference.stops import Stop
from gpclf.kernels import RBF
from gpclf.linalg import conjugate_gradients
from gpclf.model import prepare
from problems import POINTS, problem

FEW = {"n_inducing": 5, "random_state": 0}
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
    rows = with_kept_features(prepared, source.in_chunks(25))
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
    settings = {"n_inducing": 5, "max_epochs": 8, "random_state": 0}
    coupled = GPClassifier(**settings).fit(X, y)
    none = GPClassifier(**settings, inference=Decoupled(n_mean=0)).fit(X, y)
    assert none.elbo_ == coupled.elbo_
    assert np.array_equal(none.predict_proba(X), coupled.predict_proba(X))


@pytest.mark.parametrize("likelihood", ["logit", "softmax", "robust-max"])
def test_more_points_for_the_mean_raise_the_elbo_at_the_same_kernel_and_points(moons, likelihood):
    X, y = moons
    settings = {"n_inducing": 5, "max_epochs": 8, "random_state": 0}
    coupled = GPClassifier(likelihood, **settings).fit(X, y)
    more = clone(coupled).set_params(inference=Decoupled(n_mean=8)).fit(X, y)
    assert repr(more.kernel_) == repr(coupled.kernel_)
    np.testing.assert_array_equal(more.inducing_points_[:5], coupled.inducing_points_)
    assert more.elbo_ >= coupled.elbo_
    assert len(more.inducing_points_) > 5


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


@pytest.mark.parametrize("case", sorted(BAD))
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
    monkeypatch.setattr("gpclf.inference.engines.decoupled.KEPT_FLOATS", 60 * 13)
    some = GPClassifier(**settings, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(some.elbo_, whole.elbo_, rtol=1e-4)


def test_kernels_of_their_own_get_one_sentence(moons):
    with pytest.raises(ValueError, match='use share="both"'):
        GPClassifier(**FEW, inference="decoupled", share="none").fit(*moons)
