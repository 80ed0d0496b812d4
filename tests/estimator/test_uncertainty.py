"""What is not known: the parts of uncertainty, their laws on every likelihood, and queries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

import cases
from gpclf import GPClassifier

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return GPClassifier(**QUICK).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("name", ["logit", "softmax", "step", "noisy-probit", "robust-max"])
def test_uncertainty_has_two_parts_that_agree_with_the_probabilities(name):
    X, y = make_moons(80, noise=0.25, random_state=0)
    clf = GPClassifier(name, **QUICK).fit(X, y)
    p, std = clf.predict_proba(X, return_std=True)
    found = clf.uncertainty(X)
    assert np.all(found.data >= 0)
    assert np.all(found.model >= 0)
    np.testing.assert_allclose(found.total, found.data + found.model, rtol=1e-6)
    entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1)
    np.testing.assert_allclose(found.total, entropy, rtol=1e-6, atol=1e-9)
    assert np.all(std <= np.sqrt(p * (1 - p)) + 0.02)  # a number in [0, 1] varies no more
    np.testing.assert_allclose(std[:, 0], std[:, 1], atol=1e-5)  # two classes: one number


@pytest.mark.parametrize("name", ["Logit", "Softmax", "NoisyProbit"])
def test_the_spread_equals_that_of_many_random_draws(name):
    likelihood, n_classes, *_ = cases.LIKELIHOODS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.argmax(X @ rng.normal(size=(2, n_classes)), axis=1)
    clf = GPClassifier(likelihood, **QUICK).fit(X, y)
    rows = 4 * rng.normal(size=(6, 2))
    mean, variance = (np.reshape(part, (6, -1)) for part in clf.latent_mean_and_variance(rows))
    draws = mean + np.sqrt(variance) * rng.normal(size=(20_000, *mean.shape))

    def probabilities(f):
        of = jax.vmap(clf.likelihood_.log_prob, in_axes=(0, None))
        return jnp.exp(of(jnp.arange(n_classes), f))

    p = np.asarray(jax.jit(jax.vmap(jax.vmap(probabilities)))(draws.astype(np.float32)))
    _, std = clf.predict_proba(rows, return_std=True)
    np.testing.assert_allclose(std, p.std(axis=0), atol=0.02)
    noise = -np.sum(p * np.log(np.maximum(p, 1e-30)), axis=2).mean(axis=0)
    np.testing.assert_allclose(clf.uncertainty(rows).data, noise, atol=0.03)


def test_far_from_all_rows_it_is_the_model_that_does_not_know():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = (rng.random(300) < 0.5).astype(int)  # pure noise: nothing to learn where rows are
    clf = GPClassifier(kernel="rbf", random_state=0).fit(X, y)
    near = clf.uncertainty([[0.0]])
    assert near.data > 10 * near.model
    clf = GPClassifier(**QUICK).fit(*make_moons(200, noise=0.1, random_state=0))
    near, far = clf.uncertainty([[-0.5, 0.8]]), clf.uncertainty([[30.0, 30.0]])
    assert far.model > 10 * near.model


@pytest.mark.parametrize("by", ["entropy", "bald", "margin"])
def test_the_most_uncertain_rows_come_first(fitted, by):
    X, _ = load_iris(return_X_y=True)
    order = fitted.most_uncertain(X, len(X), by)
    assert sorted(order) == list(range(len(X)))
    assert np.array_equal(fitted.most_uncertain(X, 5, by), order[:5])
    p = fitted.predict_proba(X)
    second, first = np.sort(p, axis=1)[:, -2:].T
    score = {
        "entropy": -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1),
        "bald": fitted.uncertainty(X).model,
        "margin": second - first,
    }[by]
    assert np.all(np.diff(score[order]) <= 1e-9)


def test_queries_that_make_no_sense_get_one_sentence(fitted):
    X, _ = load_iris(return_X_y=True)
    for k in (0, 151, 2.5, True):
        with pytest.raises(ValueError, match="k must be a whole number from 1 to the rows, 150"):
            fitted.most_uncertain(X, k)
    with pytest.raises(ValueError, match="by must be one of 'entropy', 'bald', 'margin'"):
        fitted.most_uncertain(X, 3, by="luck")
