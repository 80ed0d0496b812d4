"""Laws of steps on batches: they end where all rows at once do, whatever the bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpclf import GPClassifier
from gpclf.gaussian import Natural
from gpclf.inference.natural import stochastic_step
from gpclf.likelihoods import Sites


@given(seed=st.integers(0, 2**16), rate=st.floats(0.01, 1.0), size=st.floats(0.0, 3.0))
def test_no_batch_takes_more_than_half_of_what_is_known(seed, rate, size):
    """Λ stays above half of what it was, in every direction and for sites of any sign."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, 4, 4))
    q = Natural(rng.normal(size=(1, 4)), (A @ A.T + np.eye(4))[None])
    target = Natural(q.linear, q.precision + 10.0**size * (B + B.T))
    sites = Sites(np.full((3, 1), -1.0), np.zeros((3, 1)))
    step = stochastic_step(q, target, rate, sites)
    root = np.linalg.inv(np.linalg.cholesky(q.precision[0]))
    assert np.linalg.eigvalsh(root @ step.precision[0] @ root.T)[0] >= 0.5 - 1e-9


def _waves(rows, seed=0):
    """Three classes that overlap a little, in four dimensions."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    return rng.normal(size=(rows, 4)) + 2.0 * np.eye(4)[y], y


def _log_loss(clf, X, y):
    return -clf.predict_log_proba(X)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("likelihood", ["step", "noisy-probit", "robust-max"])
def test_batches_from_the_beginning_end_near_the_full_batch(likelihood):
    X, y = _waves(900)
    common = {"kernel": "rbf", "n_inducing": 20, "optimizer": None, "random_state": 0}
    full = GPClassifier(likelihood, **common).fit(X[:600], y[:600])
    batches = GPClassifier(likelihood, batch_size=60, **common).fit(X[:600], y[:600])
    assert abs(batches.score(X[600:], y[600:]) - full.score(X[600:], y[600:])) <= 0.02
    assert abs(_log_loss(batches, X[600:], y[600:]) - _log_loss(full, X[600:], y[600:])) <= 0.1


@pytest.mark.parametrize("inference", ["natural", "power-ep"])
def test_epochs_are_as_many_as_asked_for(inference):
    """The bound of batches may stand still on the way: that is not the end of it."""
    X, y = _waves(90)
    options = {"n_inducing": 8, "optimizer": "adam", "batch_size": 45, "random_state": 0}
    clf = GPClassifier("robust-max", inference=inference, max_epochs=12, tol=0.5, **options).fit(
        X, y
    )
    assert np.sum(clf.history_["stage"] == "epochs") == 12


def test_stochastic_ep_ends_where_its_site_stands_still():
    """Its energy may fall on the way there, which is no sign of an end."""
    X, y = _waves(60)
    common = {"likelihood": "probit", "inference": "power-ep", "n_inducing": 10, "optimizer": None}
    common |= {"batch_size": 60, "tol": 1e-12, "random_state": 0}
    slow = GPClassifier(learning_rate=0.1, max_epochs=400, **common).fit(X, y > 0)
    quick = GPClassifier(learning_rate=0.6, max_epochs=100, **common).fit(X, y > 0)
    means = [clf.latent_mean_and_variance(X)[0] for clf in (slow, quick)]
    np.testing.assert_allclose(*means, atol=1e-3)
