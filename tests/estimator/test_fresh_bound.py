"""The bound that a fit with errors of inputs ends with, on nodes that it has not learned from."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from gpclf import GPClassifier
from gpclf.inputs import Amortised, Augmented, Latent, Network
from gpclf.prediction import latent_marginals

DRAWS = 4096
QUICK = {"kernel": "rbf", "n_inducing": 20, "max_epochs": 15, "random_state": 0}


def problem(rows=50, features=8, std=0.8):
    """Many inputs with large errors: a few nodes say little about where a row is."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=(rows, features))
    return true + std * rng.normal(size=true.shape), (true[:, 0] + true[:, 1] > 0).astype(int), std


def divergence(posterior):
    """KL(q ‖ N(0, I)) of all functions."""
    total = 0.0
    for mean, excess in zip(posterior.q.mean, posterior.q.excess, strict=True):
        log_det = np.linalg.slogdet(np.eye(len(excess)) + excess)[1]
        total += 0.5 * (np.trace(excess) + mean @ mean - log_det)
    return total


def bounds(clf, X, y, std, draws=DRAWS):
    """ℓ of every row at random places about it: (N, S)."""
    rng = np.random.default_rng(7)
    rows = clf._scaling.forward(X)
    errors = clf._scaling.errors(np.full((1, X.shape[1]), std), X)
    places = rows[:, None] + errors * rng.normal(size=(len(X), draws, X.shape[1]))
    mu, nu = latent_marginals(clf.posterior_, places.reshape(-1, X.shape[1]))
    with jax.enable_x64(True):
        of = jax.jit(jax.vmap(clf.likelihood_.bound))
        found = of(jnp.asarray(np.repeat(y, draws)), jnp.asarray(mu), jnp.asarray(nu))
    return np.asarray(found).reshape(len(X), draws)


@pytest.mark.parametrize("kind", [Latent, Amortised])
def test_the_bound_of_a_fit_is_at_most_the_integral_over_where_rows_may_be(kind):
    X, y, std = problem()
    clf = GPClassifier("robust-max", input_noise=kind(count=8), **QUICK).fit(X, y, X_std=std)
    each = logsumexp(bounds(clf, X, y, std), axis=1) - np.log(DRAWS)
    integral = each.sum() - divergence(clf.posterior_)
    assert clf.history_["elbo"][-1] * len(X) > integral + 0.05 * len(X)  # the nodes of the fit
    assert clf.elbo_ < integral + 0.01 * len(X)
    assert clf.elbo_ > integral - 0.03 * len(X)  # and not far below


def test_the_bound_of_rows_repeated_is_the_mean_over_the_error():
    X, y, std = problem()
    clf = GPClassifier("robust-max", input_noise=Augmented(count=8), **QUICK).fit(X, y, X_std=std)
    mean = bounds(clf, X, y, std).mean(axis=1).sum() - divergence(clf.posterior_)
    assert clf.elbo_ == pytest.approx(mean, abs=0.01 * len(X))


def test_fresh_nodes_of_any_network_stand_for_the_law_of_the_error(x64):
    rng = np.random.default_rng(0)
    bias = np.concatenate([rng.normal(size=3), rng.normal(size=3)])
    inputs = Amortised(network=replace(Network.start(3, 2), last_bias=bias))
    X, std = jnp.asarray(rng.normal(size=(2, 3))), jnp.asarray([[0.5, 0.0, 2.0]])
    standard = jnp.asarray(rng.normal(size=(2, 20_000, 3)))
    nodes = inputs.drawn(X, std, jnp.array([0, 1]), standard)
    weight = np.exp(np.asarray(nodes.log_weight).reshape(2, -1))
    assert weight.max() <= 2
    np.testing.assert_allclose(weight.mean(axis=1), 1.0, atol=0.02)
    away = np.asarray(nodes.X).reshape(2, -1, 3) - np.asarray(X)[:, None]
    for power, expected in ((1, np.zeros((1, 3))), (2, np.asarray(std) ** 2)):
        moment = np.mean(weight[..., None] * away**power, axis=1)
        np.testing.assert_allclose(moment, np.broadcast_to(expected, (2, 3)), atol=0.1)
