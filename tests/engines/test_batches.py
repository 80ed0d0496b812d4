"""Laws of steps on batches: they end where all rows at once do, whatever the bound."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpclf import GPClassifier
from gpclf.gaussian import Natural
from gpclf.inference import Sizes, engines
from gpclf.inference.context import FitContext
from gpclf.inference.drivers.epochs import Step
from gpclf.inference.drivers.natural_steps import NaturalSteps, TiedSteps
from gpclf.inference.engines import Gradient, PowerEP
from gpclf.inference.history import History
from gpclf.inference.journal import Journal
from gpclf.inference.natural import any_negative, stochastic_step
from gpclf.likelihoods import Sites
from problems import POINTS, ROWS, problem


@given(seed=st.integers(0, 2**16), rate=st.floats(0.01, 1.0), size=st.floats(0.0, 3.0))
def test_no_batch_takes_more_than_half_of_what_is_known(seed, rate, size):
    """Λ stays above half of what it was, in every direction and for sites of any sign."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, 4, 4))
    q = Natural(rng.normal(size=(1, 4)), (A @ A.T + np.eye(4))[None])
    target = Natural(q.linear, q.precision + 10.0**size * (B + B.T))
    step = stochastic_step(q, target, rate, negative=True)
    root = np.linalg.inv(np.linalg.cholesky(q.precision[0]))
    assert np.linalg.eigvalsh(root @ step.precision[0] @ root.T)[0] >= 0.5 - 1e-9


def test_one_negative_precision_is_enough_to_bend_a_step():
    some, none = (Sites(np.array([[1.0], [last]]), np.zeros((2, 1))) for last in (-1e-9, 0.0))
    assert any_negative(none, some)
    assert not any_negative(none, none)


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
    full, batches = (
        GPClassifier(
            likelihood, "rbf", 20, inference=engines.Natural(None, batch_size=size), random_state=0
        ).fit(X[:600], y[:600])
        for size in ("auto", 60)
    )
    assert abs(batches.score(X[600:], y[600:]) - full.score(X[600:], y[600:])) <= 0.02
    assert abs(_log_loss(batches, X[600:], y[600:]) - _log_loss(full, X[600:], y[600:])) <= 0.1


@pytest.mark.parametrize("kind", [engines.Natural, PowerEP, Gradient])
def test_epochs_are_as_many_as_asked_for_and_move_the_kernel(kind):
    """The bound of batches may stand still on the way: that is not the end of it."""
    X, y = _waves(90)
    options = {"n_inducing": 8, "max_epochs": 12, "tol": 0.5, "random_state": 0}
    engine = kind(optimizer="adam", batch_size=45)
    clf = GPClassifier("robust-max", inference=engine, **options).fit(X, y)
    assert np.sum(clf.history_["stage"] == "epochs") == 12
    assert clf.stopped_.startswith("hyper-parameters: epoch limit; posterior: epoch limit")
    if kind is not Gradient:  # it ends with a look at all rows
        np.testing.assert_allclose(90 * clf.history_["elbo"][-1], clf.elbo_)  # of the last epoch
    kept = GPClassifier("robust-max", inference=engine.set_params(optimizer=None), **options)
    assert kept.fit(X, y).stopped_.startswith("hyper-parameters: fixed; posterior: epoch limit")
    assert repr(kept.kernel_) != repr(clf.kernel_)


MOVERS = {
    "natural": (NaturalSteps, {}, None),
    "natural beside Adam": (NaturalSteps, {}, "adam"),
    "of drawn classes": (NaturalSteps, {"drawn": 2}, None),
    "of drawn classes beside Adam": (NaturalSteps, {"drawn": 2}, "adam"),
    "stochastic EP": (TiedSteps, {"alpha": 0.5}, None),
    "stochastic EP beside Adam": (TiedSteps, {"alpha": 0.5}, "adam"),
}


@pytest.mark.parametrize("name", MOVERS)
def test_a_batch_in_several_chunks_gives_the_step_of_one(name, x64):
    kind, options, optimizer = MOVERS[name]
    theta, source, n_latent = problem("LogisticSoftmax" if "drawn" in options else "Logit")
    sizes = Sizes(ROWS, n_latent, POINTS)
    plan = engines.Natural(optimizer, batch_size=30).plan(sizes, 1)

    def stepped(chunk_rows):
        rows, rng = source.in_chunks(chunk_rows), np.random.default_rng(0)
        log = History(lambda line: None, 0.0)
        context = FitContext(rows, plan, log, rng, Journal(), 1e-4, 1e-9, np.dtype(np.float64))
        mover = kind(theta, Natural.standard(n_latent, POINTS), context, seen=ROWS, **options)
        batch = next(rows.batches(plan.batch_rows, rng))
        value = mover.step(batch, Step(0, 0.0))
        return len(list(batch.chunks())), value, *mover.point()

    one, several = stepped(ROWS), stepped(5)
    assert (one[0], several[0]) == (1, 4)  # of 5 rows, the last filled up
    np.testing.assert_allclose(several[1], one[1], rtol=1e-10)
    leaves = zip(*(jax.tree.leaves(end[2:]) for end in (several, one)), strict=True)
    for there, here in leaves:
        np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-10)


def test_stochastic_ep_ends_where_its_site_stands_still():
    """Its energy may fall on the way there, which is no sign of an end."""
    X, y = _waves(60)
    means = []
    for rate, epochs in ((0.1, 400), (0.6, 100)):
        engine = PowerEP(optimizer=None, batch_size=60, learning_rate=rate)
        options = {"n_inducing": 10, "max_epochs": epochs, "tol": 1e-12, "random_state": 0}
        clf = GPClassifier("probit", inference=engine, **options).fit(X, y > 0)
        means.append(clf.latent_mean_and_variance(X)[0])
    np.testing.assert_allclose(*means, atol=1e-3)


def test_adadelta_leaves_its_start():
    """With the rate and batches of Hensman et al. (2015); its steps begin with the root of ε."""
    X, y = _waves(200)
    elbos = []
    for epsilon in ("auto", 1e-6):
        engine = engines.Gradient("adadelta", batch_size=10, learning_rate=0.1, epsilon=epsilon)
        clf = GPClassifier("probit", "rbf", 10, inference=engine, max_epochs=20, random_state=0)
        elbos.append(clf.fit(X, y > 0).elbo_ / 200)
    assert elbos[0] > elbos[1] + 0.1
