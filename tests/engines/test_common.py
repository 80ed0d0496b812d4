"""Laws of functions that have one covariance in common, and of the points that this affords."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gpclf import GPClassifier, inducing
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural as NaturalForm
from gpclf.gaussian import divergence, moments
from gpclf.inference.engines import Natural
from gpclf.inference.engines.sites import COMMON
from gpclf.inference.loo import leave_one_out
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.rules import Variational, slope
from gpclf.inputs import Exact
from gpclf.kernels import Matern52
from gpclf.likelihoods import Softmax
from gpclf.model import Model, Theta, prepare
from gpclf.posterior import freeze, joint, thawed
from gpclf.precision import cast
from gpclf.prediction import latent_marginals, log_probabilities

N, M, C = 60, 12, 4
CLOSE = Limits(300, 1e-12, 1e-12)


def _theta():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0.3)
    model = cast(Model(Matern52([0.8, 1.2], 3.0), Softmax(), Exact()), jnp.float64)
    return Theta(model, X[:M]), ArrayRows(X, y, rng.uniform(0.5, 2.0, N)).in_chunks(20)


@pytest.fixture(scope="module")
def fitted():
    with jax.enable_x64(True):
        theta, rows = _theta()
        prepared, _ = prepare(*theta, 1e-9)
        start = Start(NaturalForm.standard(C, M, common=True))
        return theta, rows, prepared, settle(Variational(), prepared, start, rows, CLOSE)


def _own(q):
    """The same Gaussian, with a Λ for each function."""
    return NaturalForm(q.linear, np.repeat(q.precision, C, axis=0))


def test_everything_of_it_is_what_it_is_with_a_copy_for_each_function(fitted, x64):
    theta, rows, prepared, found = fitted
    common, own = found.q, _own(found.q)
    (m, kl), (m_own, kl_own) = moments(common), moments(own)
    np.testing.assert_allclose(kl, kl_own, rtol=1e-12)
    np.testing.assert_allclose([divergence(m), divergence(m_own)], kl, rtol=1e-9)
    np.testing.assert_allclose(m.mean, m_own.mean, rtol=1e-12)
    looks = [Variational().look(prepared, q, rows) for q in (common, own)]
    np.testing.assert_allclose(looks[0].objective, looks[1].objective, rtol=1e-12)
    frozen = [freeze(theta, q, 1e-9, np.dtype(np.float64)) for q in (common, own)]
    X = np.random.default_rng(1).normal(size=(7, 2))
    for function in (log_probabilities, latent_marginals, joint):
        one, other = (np.concatenate([*map(np.ravel, function(each, X))]) for each in frozen)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    (_, q), (_, q_own) = map(thawed, frozen)
    np.testing.assert_allclose(q.precision, q_own.precision, rtol=1e-9)


def test_where_steps_end_nothing_near_is_higher(fitted, x64):
    """The mean of the functions' sites is the gradient along all Λ that they can have together."""
    _, rows, prepared, found = fitted
    rng, highest = np.random.default_rng(2), found.objective
    for _ in range(20):
        by_h, by_Lambda = rng.normal(size=(C, M)), rng.normal(size=(M, M))
        for size in (1e-3, -1e-3):
            near = NaturalForm(
                found.q.linear + size * by_h,
                found.q.precision + size * (by_Lambda + by_Lambda.T),
            )
            assert Variational().look(prepared, near, rows).objective <= highest


def test_the_slope_along_a_step_is_that_of_the_bound(fitted, x64):
    _, rows, prepared, found = fitted
    q = found.q.prior().towards(found.q, 0.6)
    here = Variational().look(prepared, q, rows)
    rise, tiny = slope(q, here.m, here.target), 1e-6
    there = Variational().look(prepared, q.towards(here.target, tiny), rows).objective
    np.testing.assert_allclose((there - here.objective) / tiny, rise, rtol=1e-4)


def test_it_is_lower_than_the_bound_of_functions_with_their_own(fitted, x64):
    _, rows, prepared, found = fitted
    own = settle(Variational(), prepared, Start(NaturalForm.standard(C, M)), rows, CLOSE)
    assert found.objective <= own.objective
    assert own.objective - found.objective < 0.05 * N


def test_a_row_without_its_part_in_it_is_about_a_fit_without_the_row(fitted, x64):
    theta, rows, prepared, found = fitted
    score = leave_one_out(prepared, found.q, rows, None).score
    logs, weights = [], rows.weight
    for out in range(N):
        weight = np.where(np.arange(N) == out, 0.0, weights)
        fewer = ArrayRows(rows.X, rows.y, weight).in_chunks(20)
        q = settle(Variational(), prepared, Start(found.q), fewer, CLOSE).q
        frozen = freeze(theta, q, 1e-9, np.dtype(np.float64))
        logs.append(log_probabilities(frozen, rows.X[out : out + 1])[0, rows.y[out]])
    refitted = np.average(logs, weights=weights)
    np.testing.assert_allclose(score, refitted, rtol=0.1)


def test_many_classes_get_more_points_than_were_learned_and_keep_them_in_a_file(tmp_path):
    X, y = make_blobs(240, centers=COMMON, cluster_std=1.0, random_state=0)
    clf = GPClassifier(random_state=0, max_epochs=4).fit(X, y)
    assert len(clf.posterior_.q.excess) == 1
    assert len(clf.inducing_points_) > inducing.auto_count(240, 2, COMMON)
    assert len(clf.inducing_points_) <= inducing.most_points(240, 2)
    clf.save(tmp_path / "model")
    again = GPClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    assert clf.sample_latent(X[:3], 2, random_state=0).shape == (2, 3, COMMON)
    before, count = clf.predict_proba(X), len(clf.inducing_points_)
    clf.set_params(warm_start=True).fit(X, y)
    assert len(clf.inducing_points_) == count
    np.testing.assert_allclose(clf.predict_proba(X), before, atol=0.2)
    before = clf.predict_proba(X)
    clf.partial_fit(X[:40], y[:40])
    assert np.all(np.isfinite(clf.predict_proba(X)))
    assert np.mean(np.abs(clf.predict_proba(X) - before)) < 0.1


def test_two_classes_get_more_points_where_rows_are_neither_few_nor_many():
    X, y = make_blobs(1100, centers=2, cluster_std=4.0, random_state=0)
    clf = GPClassifier(random_state=0, max_epochs=4).fit(X, y)
    assert inducing.auto_count(1100, 2, 2) < len(clf.inducing_points_)
    assert len(clf.inducing_points_) <= inducing.most_points(1100, 2)
    assert not Natural(select="auto").adds_points(1, 1000)
    assert not Natural(select="auto").adds_points(1, 2**15 + 1)


def test_a_number_of_points_that_was_asked_for_is_kept():
    X, y = make_blobs(160, centers=COMMON, random_state=0)
    for options in ({"n_inducing": 15}, {"inference": Natural()}):
        clf = GPClassifier(random_state=0, max_epochs=2, **options).fit(X, y)
        assert len(clf.posterior_.q.excess) == COMMON
        assert len(clf.inducing_points_) <= inducing.auto_count(160, 2, COMMON)
