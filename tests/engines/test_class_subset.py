"""Laws of class subsampling: unbiased, below the whole, and no step sees an undrawn class."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural, moments
from gpclf.inference import engines
from gpclf.inference.class_subset import ClassDraws, estimated_total
from gpclf.inference.passes import step_pass
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.likelihoods import LogisticSoftmax, LogisticSoftmaxAugmented
from gpclf.likelihoods.drawn_classes import DrawnClasses, DrawnLabel
from gpclf.likelihoods.logistic_softmax import log_rest
from gpclf.model import Model, Theta, prepare
from gpclf.precision import cast

CLOSED = LogisticSoftmax(bound_by="augmentation")
BOTH = pytest.mark.parametrize("whole", [CLOSED, LogisticSoftmaxAugmented()])
C, K = 5, 2
SUBSETS = np.array(list(itertools.combinations(range(C), K)))
FUNCTIONS = st.lists(st.floats(-6, 6), min_size=C, max_size=C)
VARIANCES = st.lists(st.floats(-4, 2).map(lambda e: 10.0**e), min_size=C, max_size=C)


def _places(y, drawn):
    return jnp.asarray(list(drawn).index(y) if y in drawn else len(drawn))


@jax.jit
def _values(whole, y, mu, nu, off):
    """The bound, and the mean over all draws of its tangent at T and at another."""
    few = DrawnClasses(whole, C, K)
    exact = jax.nn.logsumexp(log_rest(mu, nu))
    drawn = jnp.asarray(SUBSETS)
    matches = drawn == y
    places = jnp.where(matches.any(axis=1), matches.argmax(axis=1), K)

    def mean(log_total):
        labels = DrawnLabel(places, jnp.full(len(SUBSETS), log_total))
        return jnp.mean(jax.vmap(few.bound)(labels, mu[drawn], nu[drawn]))

    return whole.bound(y, mu, nu), mean(exact), mean(jnp.minimum(exact + off, jnp.log(C)))


@BOTH
@given(y=st.integers(0, C - 1), mu=FUNCTIONS, nu=VARIANCES, off=st.floats(-2, 2))
def test_the_mean_over_all_draws_is_the_tangent_which_lies_below_and_touches(whole, y, mu, nu, off):
    with jax.enable_x64(True):
        value, touching, elsewhere = _values(whole, y, jnp.asarray(mu), jnp.asarray(nu), off)
        np.testing.assert_allclose(touching, value, rtol=1e-7, atol=1e-7)
        assert elsewhere <= value + 1e-7


@BOTH
def test_drawn_sites_are_the_gradient_and_those_of_the_whole(whole, x64):
    rng = np.random.default_rng(0)
    few = DrawnClasses(whole, C, K)
    gradient = jax.jit(jax.grad(few.bound, argnums=(1, 2)))
    for _ in range(5):
        y = int(rng.integers(C))
        mu, nu = jnp.asarray(rng.normal(size=C)), jnp.asarray(rng.uniform(0.1, 3, C))
        exact = jax.nn.logsumexp(log_rest(mu, nu))
        sites = whole.sites(jnp.asarray(y), mu, nu)
        for drawn in SUBSETS:
            label = DrawnLabel(_places(y, drawn), exact)
            tau, lam = few.sites(label, mu[drawn], nu[drawn])
            np.testing.assert_allclose(tau, few.factor * sites.precision[drawn], rtol=1e-8)
            np.testing.assert_allclose(lam, few.factor * sites.linear[drawn], rtol=1e-7, atol=1e-9)
            by_mean, by_variance = gradient(label, mu[drawn], nu[drawn])
            np.testing.assert_allclose(tau, -2 * by_variance, rtol=1e-7)
            np.testing.assert_allclose(lam, by_mean + tau * mu[drawn], rtol=1e-6, atol=1e-8)


def _draws_at_one_q(whole, drawn_lists):
    """What steps on these classes in turn found under one q, and what all classes would have."""
    rng = np.random.default_rng(0)
    rows = 30
    X, y = rng.normal(size=(rows, 2)), np.arange(rows, dtype=np.int32) % C
    source = ArrayRows(X, y, np.ones(rows))
    model = cast(Model(RBF([1.0, 1.0], 2.0), whole, Exact()), jnp.float64)
    theta = Theta(model, jnp.asarray(rng.normal(size=(6, 2))))
    q = Natural(rng.normal(size=(C, 6)), np.stack([2 * np.eye(6)] * C))
    (chunk,) = source.chunks()
    prepared, m = prepare(*theta, 1e-9)[0], moments(q)[0]
    exact = step_pass(prepared, m, chunk)[0].target()
    mu, nu = prepared.marginals(prepared.features(chunk.X), m)
    totals = np.exp(jax.vmap(lambda *row: jax.nn.logsumexp(log_rest(*row)))(mu, nu))
    draws = ClassDraws(whole, rows, C, len(drawn_lists[0]))
    narrow, _ = prepare(*draws.narrowed(theta), 1e-9)
    for drawn in drawn_lists:
        m, _ = moments(Natural(q.linear[drawn], q.precision[drawn]))
        statistics, _ = draws.step(narrow, m, chunk, drawn)
    return draws, draws.target(statistics.target()), exact, totals


@BOTH
def test_where_all_classes_are_drawn_nothing_is_estimated(whole, x64):
    draws, target, exact, totals = _draws_at_one_q(whole, [np.arange(C)] * 2)
    np.testing.assert_allclose(draws.total, totals, rtol=1e-5)
    np.testing.assert_allclose(target.precision, exact.precision, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(target.linear, exact.linear, rtol=1e-4, atol=1e-4)


@given(y=st.integers(0, C - 1), seed=st.integers(0, 9))
def test_what_rows_remember_is_right_on_average_over_draws(y, seed):
    rng = np.random.default_rng(seed)
    rest, usual = rng.uniform(size=C), rng.uniform(size=C)  # however far off the usual is
    label = np.array([y])
    found = [
        estimated_total(rest[None, drawn], rest[label], usual, label, drawn) for drawn in SUBSETS
    ]
    np.testing.assert_allclose(np.mean(found), rest.sum(), rtol=1e-12)


def test_memory_does_not_hold_a_number_for_every_row_and_class():
    draws = ClassDraws(CLOSED, 1000, 50, 5)
    held = sum(part.size for part in vars(draws).values() if isinstance(part, np.ndarray))
    assert held <= 3 * 1000 + 50


@pytest.mark.parametrize("optimizer", ["adam", None])
def test_a_fit_on_drawn_classes_comes_near_the_one_on_all(optimizer):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 6
    angle = y * np.pi / 3
    X = np.c_[np.cos(angle), np.sin(angle)] * 3 + 0.6 * rng.normal(size=(400, 2))
    fits = []
    for drawn, epochs in ((None, 15), (2, 45)):
        engine = engines.Natural(optimizer, batch_size=50, class_subset=drawn)
        settings = {"n_inducing": 15, "random_state": 0, "max_epochs": epochs}
        fits.append(GPClassifier("logistic-softmax", inference=engine, **settings).fit(X, y))
    every, few = fits
    assert type(few.likelihood_) is LogisticSoftmax
    np.testing.assert_allclose(few.predict_proba(X), every.predict_proba(X), atol=0.2)
    assert few.score(X, y) > 0.97


def test_what_cannot_draw_classes_says_so():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2]
    two, none = engines.Natural(class_subset=2), engines.Natural(class_subset=0)
    with pytest.raises(ValueError, match="class_subset needs a likelihood that is a sum"):
        GPClassifier("softmax", inference=two).fit(X, y)
    with pytest.raises(ValueError, match='use share="both"'):
        GPClassifier("logistic-softmax", inference=two, share="none").fit(X, y)
    with pytest.raises(ValueError, match="The 'class_subset' parameter of Natural must be"):
        GPClassifier("logistic-softmax", inference=none).fit(X, y)


@pytest.mark.parametrize("kind", ["latent", "amortised", "augment", "parametric"])
def test_rows_of_several_nodes_cannot_draw_classes_and_say_so(kind):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 4
    engine = engines.Natural(class_subset=2)
    clf = GPClassifier("logistic-softmax", inference=engine, input_noise=kind, n_inducing=5)
    with pytest.raises(ValueError, match="class_subset needs rows of one node"):
        clf.fit(X, y, X_std=0.1)
