"""Laws of mean field for the probit: its bound, its gradient, its two predictives."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bad_tables import BAD, WORST
from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import moments
from gpclf.inference.engines import MeanField
from gpclf.inference.mean_field import MeanFieldBound, cut, solve
from gpclf.model import Theta
from problems import problem

JITTER = 1e-9


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def _field(rows=30):
    """In chunks, of which the last is filled up."""
    theta, source, _ = problem("Probit", rows=rows)
    return theta, MeanFieldBound(ArrayRows(source.X, source.y, np.ones(rows)).in_chunks(12), JITTER)


def test_a_normal_law_that_is_cut_off_has_these_moments():
    rng = np.random.default_rng(0)
    g = rng.normal(0.7, 1 / np.sqrt(0.6), 2_000_000)
    for y in (1.0, -1.0):
        law = cut(np.array([0.7]), np.array([0.6]), np.array([y]))
        side = g[g * y > 0]
        np.testing.assert_allclose(law.mean, side.mean(), atol=5e-3)
        np.testing.assert_allclose(law.variance, side.var(), atol=5e-3)
        ahead, behind = (
            cut(np.array([0.7 + e]), np.array([0.6]), np.array([y])) for e in (1e-5, -1e-5)
        )
        np.testing.assert_allclose(law.slope, (ahead.mean - behind.mean) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.9])
@pytest.mark.parametrize("variance", [0.1, 4.0, 100.0])
def test_the_bound_rises_and_never_exceeds_the_evidence_of_two_rows(correlation, variance):
    """log P(both signs are right) under N(0, Q + I): a quarter, and an arc of the circle."""
    Q = variance * np.array([[1.0, correlation], [correlation, 1.0]])
    A = np.linalg.cholesky(Q)
    y = np.array([1.0, 1.0])
    solved = solve(A, y, np.zeros(2))
    assert solved is not None
    arc = np.arcsin(Q[0, 1] / (variance + 1)) / (2 * np.pi)
    exact = np.log(0.25 + arc)
    assert solved.bound <= exact + 1e-9
    assert np.all(np.diff(solved.climbed) > 0)
    if correlation == 0:  # then q(g) is exact
        np.testing.assert_allclose(solved.bound, exact, rtol=1e-9)


def test_the_best_laws_are_those_of_coordinate_ascent():
    """b = −Σ_{m≠n} Pₙₘ ḡₘ/Pₙₙ: the mean of gₙ given the others at theirs."""
    theta, field = _field()
    solved, A, _ = field.solve(theta)
    P = np.linalg.inv(np.eye(30) + A @ A.T)
    mean = solved.laws.mean
    others = (P - np.diag(np.diag(P))) @ mean
    np.testing.assert_allclose(solved.b, -others / np.diag(P), atol=1e-4)


def test_the_gradient_of_the_bound_equals_finite_differences():
    theta, field = _field()
    leaves, structure = jax.tree.flatten(theta)
    rng = np.random.default_rng(3)
    ways = [rng.normal(size=leaf.shape) for leaf in leaves]

    def moved(step):
        there = [leaf + step * way for leaf, way in zip(leaves, ways, strict=True)]
        return field(jax.tree.unflatten(structure, there))

    here = moved(0.0)
    solved = field.solve(theta).solved
    np.testing.assert_allclose(here.objective, solved.bound, rtol=1e-9)
    numeric = (moved(1e-4).objective - moved(-1e-4).objective) / 2e-4
    pairs = zip(jax.tree.leaves(here.by_theta), ways, strict=True)
    np.testing.assert_allclose(sum(float(np.sum(g * w)) for g, w in pairs), numeric, rtol=1e-4)


def test_both_predictives_are_those_of_g():
    """Moments of v by hand: of v given g at its mean, and with the spread of g as well."""
    theta, field = _field()
    solved, A, _ = field.solve(theta)
    S = np.linalg.inv(np.eye(A.shape[1]) + A.T @ A)
    more = S @ (A * solved.laws.variance[:, None]).T @ A @ S
    for plug_in in (True, False):
        q, bound = field.posterior(theta, plug_in)
        m, _ = moments(q)
        np.testing.assert_allclose(bound, solved.bound, rtol=1e-9)
        np.testing.assert_allclose(m.mean[0], S @ A.T @ solved.laws.mean, atol=1e-6)
        expected = S if plug_in else S + more
        np.testing.assert_allclose(np.eye(A.shape[1]) + m.excess[0], expected, atol=1e-7)


def test_every_row_as_inducing_point_is_the_full_process():
    theta, field = _field(rows=20)
    full = Theta(theta.model, jnp.asarray(field.rows.X))
    solved, A, _ = field.solve(full)
    K = np.asarray(theta.model.kernel.matrix(full.Z, full.Z))
    np.testing.assert_allclose(A @ A.T, K, atol=1e-7)
    other = solve(np.linalg.cholesky(K + 1e-9 * np.eye(20)), field.y, np.zeros(20))
    np.testing.assert_allclose(solved.bound, other.bound, rtol=1e-6)


@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_fewer_points_never_raise_the_bound(variance):
    """Else learning would trade them for functions that no point explains."""
    theta, field = _field(rows=20)
    kernel = eqx.tree_at(lambda k: k.log_variance, theta.model.kernel, np.log(variance))
    model, X = replace(theta.model, kernel=kernel), jnp.asarray(field.rows.X)
    bounds = [field.solve(Theta(model, X[:count])).solved.bound for count in (2, 5, 10, 20)]
    assert np.all(np.diff(bounds) > 0)


@pytest.fixture(scope="module")
def moons():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=80) > 0, "in", "out")


def test_plugging_g_in_makes_it_surer(moons):
    X, y = moons
    shown = {}
    for name in ("integrated", "plug-in"):
        engine = MeanField(name, optimizer=None)
        clf = GPClassifier("probit", inference=engine, n_inducing=15, random_state=0)
        shown[name] = np.abs(clf.fit(X, y).predict_proba(X)[:, 0] - 0.5)
    assert np.all(shown["plug-in"] >= shown["integrated"] - 1e-9)
    assert np.any(shown["plug-in"] > shown["integrated"] + 1e-3)


@pytest.mark.parametrize("case", WORST)
def test_difficult_data_give_finite_probabilities(case):
    X, y = BAD[case][0], np.minimum(BAD[case][1], 1)
    clf = GPClassifier("probit", inference="mean-field", max_epochs=5, random_state=0).fit(X, y)
    assert np.all(np.isfinite(clf.predict_proba(X)))


@pytest.mark.parametrize(
    ("parameters", "weight", "sentence"),
    [
        ({}, None, 'likelihood="probit", not Logit'),
        ({"likelihood": "probit"}, np.full(80, 0.5), "weights must be 1"),
        ({"likelihood": "probit", "input_noise_std": "learn"}, None, "takes rows as exact"),
    ],
)
def test_what_it_cannot_do_gets_one_sentence(parameters, weight, sentence, moons):
    with pytest.raises(ValueError, match=sentence):
        GPClassifier(inference="mean-field", **parameters).fit(*moons, sample_weight=weight)
