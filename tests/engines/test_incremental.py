"""Rows in pieces: laws of what is kept of them, and the classifier that learns so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_moons

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural, moments
from gpclf.inference.incremental import absorb, divergence, grown, new_points
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.rules import Variational
from gpclf.model import prepare
from problems import POINTS, problem

TOLERANCE = 1e-9


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def _gaussian(rng, n_latent=2, size=5):
    A = rng.normal(size=(n_latent, size, size))
    precision = np.eye(size) + np.einsum("cij,ckj->cik", A, A)
    return Natural(rng.normal(size=(n_latent, size)), precision)


def test_the_divergence_is_zero_at_itself_positive_elsewhere_and_known_from_the_prior():
    rng = np.random.default_rng(0)
    one, other = _gaussian(rng), _gaussian(rng)
    assert divergence(one, one) == pytest.approx(0, abs=1e-10)
    assert divergence(one, other) > 0
    prior = Natural.standard(2, 5)
    assert divergence(one, prior) == pytest.approx(moments(one)[1], rel=1e-10)


@pytest.mark.parametrize("name", ["Logit", "LogitPG", "Softmax", "LogisticSoftmax", "Step"])
def test_one_piece_after_the_prior_is_a_fit(name):
    theta, source, n_latent = problem(name)
    prepared, _ = prepare(*theta, 1e-9)
    prior = Natural.standard(n_latent, POINTS)
    q, bound = absorb(prepared, prior, source, TOLERANCE)
    end = settle(Variational(), prepared, Start(q), source, Limits(200, 1e-9, 1e-10))
    assert np.isfinite(bound)
    assert bound <= end.objective + 1e-6 * abs(end.objective)
    assert bound > end.objective - 0.02 * abs(end.objective)


def test_pieces_one_after_the_other_come_near_all_rows_at_once():
    theta, source, n_latent = problem("Logit", rows=200)
    prepared, _ = prepare(*theta, 1e-9)
    prior = Natural.standard(n_latent, POINTS)
    q, total = prior, 0.0
    for rows in np.split(np.arange(200), 4):
        piece = ArrayRows(source.X[rows], source.y[rows], source.weight[rows])
        q, bound = absorb(prepared, q, piece, TOLERANCE)
        total += bound
    whole, together = absorb(prepared, prior, source.in_chunks(50), TOLERANCE)
    assert total <= together + 0.01 * abs(together)
    assert divergence(q, whole) < 0.05 * divergence(prior, whole)


def test_points_that_are_added_leave_what_is_known_as_it_was():
    """The marginals at any row, and the divergence from the prior, stay the same."""
    theta, source, n_latent = problem("Softmax")
    prepared, _ = prepare(*theta, 1e-9)
    prior = Natural.standard(n_latent, POINTS)
    q, _ = absorb(prepared, prior, source, TOLERANCE)
    same = grown(theta, q, source.X, POINTS + 1, 1e-9)
    assert same[0].Z.shape == theta.Z.shape  # too few to be worth it
    more, longer = grown(theta, q, source.X, 2 * POINTS, 1e-9)
    assert more.Z.shape == (2 * POINTS, 3)
    after, _ = prepare(*more, 1e-9)
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(30, 3)))
    for one, other in zip(
        prepared.marginals(prepared.features(rows), moments(q)[0]),
        after.marginals(after.features(rows), moments(longer)[0]),
        strict=True,
    ):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
    assert moments(longer)[1] == pytest.approx(moments(q)[1], rel=1e-9)


def test_new_points_are_the_rows_least_known():
    theta, source, _ = problem("Logit")
    prepared, _ = prepare(*theta, 1e-9)
    far = np.r_[source.X, [[50.0, 0, 0], [0, 50.0, 0], [0, 50.1, 0]]]
    chosen = new_points(prepared, far, 2)
    assert np.any(np.all(chosen == far[-3], axis=1))
    assert np.sum(chosen[:, 1] > 40) == 1  # the second of two neighbours is known by the first
    assert len(new_points(prepared, np.asarray(theta.Z), 3)) == 0


def test_a_classifier_learns_in_pieces():
    X, y = make_moons(1200, noise=0.2, random_state=0)
    labels = np.array(["no", "yes"])[y]
    clf = GPClassifier(random_state=0)
    clf.partial_fit(X[:60], labels[:60], classes=["yes", "no"])
    first = len(clf.inducing_points_)
    for start in range(60, 1200, 380):
        clf.partial_fit(X[start : start + 380], labels[start : start + 380])
    assert len(clf.inducing_points_) > first
    assert clf.n_samples_seen_ == 1200
    whole = GPClassifier(random_state=0).fit(X, labels)
    test, truth = make_moons(2000, noise=0.2, random_state=1)
    nll = [-np.mean(c.predict_log_proba(test)[np.arange(2000), truth]) for c in (clf, whole)]
    assert nll[0] < nll[1] + 0.02


def test_a_class_may_be_missing_from_a_piece_but_not_from_the_list():
    X, y = make_moons(90, noise=0.2, random_state=0)
    clf = GPClassifier(n_inducing=12, max_epochs=5, random_state=0)
    with pytest.raises(ValueError, match="needs classes"):
        clf.partial_fit(X, y)
    clf.partial_fit(X, y, classes=[0, 1, 2])
    assert clf.predict_proba(X).shape == (90, 3)
    clf.partial_fit(X[:5], np.full(5, 2))
    with pytest.raises(ValueError, match="label 3, which is not among the classes"):
        clf.partial_fit(X[:5], np.full(5, 3))
    with pytest.raises(ValueError, match="classes differ"):
        clf.partial_fit(X[:5], y[:5], classes=[0, 1])
