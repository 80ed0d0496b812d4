"""A Gaussian for the true input of each row: what it is, what it bounds, and what is left of it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural, moments
from gpclf.inference import engines
from gpclf.inference.fresh_bound import fresh_bound
from gpclf.inference.passes import gradient_pass, theta_pass
from gpclf.inputs import Augmented, Own, Parametric
from gpclf.model import prepare
from problems import POINTS, ROWS, problem

QUICK = {"kernel": "rbf", "n_inducing": 12, "max_epochs": 12, "random_state": 0}
SMALL = Parametric(count=4)


def some_law(rows=ROWS, features=3, seed=1):
    """Means and log-variances of rows, in units of the error."""
    return 0.5 * np.random.default_rng(seed).normal(size=(2, rows, features))


def some_q(n_latent, seed=0):
    """A Gaussian that is not the prior."""
    rng = np.random.default_rng(seed)
    roots = 0.3 * rng.normal(size=(n_latent, POINTS, POINTS))
    precision = np.eye(POINTS) + roots @ roots.swapaxes(1, 2)
    m, _ = moments(Natural(rng.normal(size=(n_latent, POINTS)), precision))
    return jax.tree.map(jnp.asarray, m)


def stripes(rows=120, std=0.8, seed=0):
    """Three stripes of two classes, measured with large errors."""
    rng = np.random.default_rng(seed)
    true = rng.uniform(-3, 3, (rows, 2))
    y = (np.abs(true[:, 0]) > 1.5).astype(int)
    return true + std * rng.normal(size=true.shape), y, std


@pytest.mark.parametrize("errors", [(0.5, 0.3), (0.05, 3.0), (40.0, 0.0)])
@pytest.mark.parametrize("prior", [1.0, 1000.0])
def test_the_divergence_is_what_the_paper_adds_less_the_evidence_of_what_was_measured(
    errors, prior, x64
):
    """E log p(x̃ | x) − KL(q(x) ‖ p(x)) − log p(x̃), each written out."""
    shift, log_variance = some_law(5, 2)
    X, std = np.random.default_rng(0).normal(size=(5, 2)), np.array([errors])
    inputs = Parametric(prior_variance=prior)
    ours = inputs.divergence(*map(jnp.asarray, (X, std, shift, log_variance)))
    with np.errstate(divide="ignore", invalid="ignore"):
        V, v, mean = std**2, std**2 * np.exp(log_variance), X + std * shift
        fit = -0.5 * (np.log(2 * np.pi * V) + ((X - mean) ** 2 + v) / V)
        from_prior = 0.5 * ((v + mean**2) / prior - 1 - np.log(v / prior))
        evidence = -0.5 * (np.log(2 * np.pi * (prior + V)) + X**2 / (prior + V))
        theirs = np.where(std > 0, fit - from_prior - evidence, 0.0).sum(axis=1)
    np.testing.assert_allclose(-np.asarray(ours), theirs, rtol=1e-9)
    assert np.all(np.asarray(ours) >= 0)


@pytest.mark.parametrize(("std", "prior"), [(0.1, 1000.0), (1.0, 1000.0), (1.0, 1.0)])
def test_no_law_of_a_row_has_a_bound_above_the_integral(std, prior, x64):
    """log ∫ p(x | x̃) exp ℓ(x) dx, which with log p(x̃) is log ∫ p(x̃ | x) p(x) exp ℓ(x) dx."""
    theta, rows, n_latent = problem("Probit", rows=8)
    X, y, errors = map(jnp.asarray, (rows.X, rows.y, [[std, 0.0, 0.0]]))
    prepared, _ = prepare(*theta, 1e-9)
    m, inputs = some_q(n_latent), Parametric(count=256, prior_variance=prior)

    def bounds(places):
        labels = inputs.at_nodes(y)
        return prepared.bounds(labels, *prepared.marginals(prepared.features(places), m))

    kappa, steps = prior / (prior + std**2), np.linspace(-8, 8, 256)
    places = np.repeat(rows.X[:, None], len(steps), axis=1)
    places[:, :, 0] = kappa * places[:, :, 0] + np.sqrt(kappa) * std * steps
    density = np.exp(-0.5 * steps**2) / np.sqrt(2 * np.pi) * (steps[1] - steps[0])
    each = np.asarray(bounds(jnp.asarray(places.reshape(-1, 3)))).reshape(8, -1)
    integral = np.log(np.exp(each) @ density)
    exact = -std * rows.X / (prior + std**2), np.full((8, 3), np.log(kappa))  # p(x | x̃) itself
    found = []
    for shift, log_variance in (exact, *(some_law(8, seed=seed) for seed in range(6))):
        own = replace(inputs, shift=shift, log_variance=log_variance)
        nodes = own.nodes(X, errors, y, Own(jnp.arange(8)))
        found.append(np.asarray(own.joined(bounds(nodes.X), nodes.log_weight)))
    assert np.all(np.array(found) <= integral + 1e-4)
    np.testing.assert_allclose(found[0], each @ density, atol=0.02 * std)  # no divergence


def with_inputs(theta, inputs):
    return theta._replace(model=replace(theta.model, inputs=inputs))


def test_the_gradient_by_the_law_of_a_row_equals_finite_differences_and_is_its_own(x64):
    theta, rows, n_latent = problem("Softmax")
    shift, log_variance = some_law()
    std = np.full((1, 3), 0.4)
    std[0, 2] = 0.0
    m = some_q(n_latent)
    chunk = next(ArrayRows(rows.X, rows.y, rows.weight, std=std).chunks())

    def values(shift, log_variance):
        inputs = replace(SMALL, shift=shift, log_variance=log_variance)
        prepared, _ = prepare(*with_inputs(theta, inputs), 1e-9)
        return gradient_pass(prepared, m, chunk)

    inputs = replace(SMALL, shift=shift, log_variance=log_variance)
    prepared, _ = prepare(*with_inputs(theta, inputs), 1e-9)
    here = gradient_pass(prepared, m, chunk)
    through = theta_pass(prepared, here.by_features, None, here.sites, chunk).model.inputs
    by_inputs = here.by_own[1]
    for place, name in enumerate(("shift", "log_variance")):
        gradient = np.asarray(getattr(by_inputs, name)) + np.asarray(getattr(through, name))
        np.testing.assert_array_equal(gradient[:, 2], 0.0)  # no error, no freedom
        for row, column in ((0, 0), (7, 1)):
            moved = []
            for step in (1e-5, -1e-5):
                law = [shift.copy(), log_variance.copy()]
                law[place][row, column] += step
                moved.append(float(values(*law).bound))
            numeric = (moved[0] - moved[1]) / 2e-5
            np.testing.assert_allclose(gradient[row, column], numeric, rtol=1e-5)


def test_rows_may_change_places_with_their_errors_and_laws(x64):
    rng = np.random.default_rng(5)
    std, law, order = rng.uniform(0, 0.5, (ROWS, 3)), some_law(), rng.permutation(ROWS)
    theta, rows, n_latent = problem("Softmax")
    m = some_q(n_latent)

    def bound(law, source):
        inputs = replace(SMALL, shift=law[0], log_variance=law[1])
        prepared, _ = prepare(*with_inputs(theta, inputs), 1e-9)
        chunks = source.in_chunks(16)
        return float(chunks.sum(lambda chunk: gradient_pass(prepared, m, chunk).sums()).bound)

    source = ArrayRows(rows.X, rows.y, rows.weight, std=std)
    other = ArrayRows(rows.X[order], rows.y[order], rows.weight[order], std=std[order])
    here = bound(law, source)
    np.testing.assert_allclose(bound(law[:, order], other), here, rtol=1e-12)
    np.testing.assert_allclose(bound(law, source.take(order)), here, rtol=1e-12)  # it knows them
    assert abs(bound(law, other) - here) > 1e-6 * abs(here)


def test_a_batch_has_draws_of_its_own_the_same_whenever_it_is_seen(x64):
    _, rows, _ = problem("Softmax")
    source = ArrayRows(rows.X, rows.y, rows.weight).drawing(2)
    assert next(source.chunks()).standard is None
    seen = []
    for _ in range(2):
        rng = np.random.default_rng(0)
        seen += [b for _ in range(2) for b in source.batches(30, rng)]
    draws = [np.asarray(next(batch.in_chunks(16).chunks()).standard) for batch in seen]
    again = [np.asarray(next(batch.in_chunks(16).chunks()).standard) for batch in seen]
    np.testing.assert_array_equal(draws, again)
    np.testing.assert_array_equal(draws[:4], draws[4:])
    assert len({float(draw.sum()) for draw in draws[:4]}) == 4
    first, second = (np.asarray(c.standard) for c in list(seen[0].in_chunks(15).chunks())[:2])
    assert not np.array_equal(first, second)
    everything = np.concatenate([d.ravel() for d in draws[:4]])
    assert abs(everything.mean()) < 0.15
    assert everything.std() == pytest.approx(1.0, abs=0.1)


@pytest.fixture(scope="module")
def fitted():
    X, y, std = stripes()
    return GPClassifier("robust-max", input_noise=SMALL, **QUICK).fit(X, y, X_std=std)


def test_a_fit_with_it_beats_ignoring_the_errors(fitted):
    X, y, _ = stripes()
    new, labels, _ = stripes(200, seed=1)
    plain = GPClassifier("robust-max", **QUICK).fit(X, y)
    ours, theirs = (
        -clf.predict_log_proba(new)[np.arange(len(new)), labels].mean() for clf in (fitted, plain)
    )
    assert ours < theirs - 0.1


def test_rows_without_errors_are_taken_as_they_are():
    X, y, _ = stripes()
    engine = engines.Natural("lbfgs")
    noisy, plain = (
        GPClassifier(
            input_noise=kind, inference=engine, precision="double", scaling="standard", **QUICK
        )
        for kind in (Parametric(), None)
    )
    p, expected = noisy.fit(X, y, X_std=0).predict_proba(X), plain.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, expected, atol=1e-5)


def test_the_same_seed_gives_the_same_fit(fitted):
    X, y, std = stripes()
    again = GPClassifier("robust-max", input_noise=SMALL, **QUICK).fit(X, y, X_std=std)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.elbo_ == fitted.elbo_


@pytest.mark.parametrize("engine", [engines.Natural(optimizer="lbfgs"), "gradient"])
def test_other_engines_learn_the_laws(engine):
    X, y, std = stripes()
    elbos = [
        GPClassifier("robust-max", input_noise=kind, inference=engine, **QUICK)
        .fit(X, y, X_std=std)
        .elbo_
        for kind in (SMALL, Augmented(count=4))  # the error's law for each row
    ]
    assert elbos[0] > elbos[1] + 1.0


def test_what_is_learned_of_rows_is_gone_at_the_end_and_a_file_brings_the_rest(fitted, tmp_path):
    inputs = fitted.posterior_.prepared.model.inputs
    assert inputs.shift is None
    assert inputs.log_variance is None
    fitted.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    X, _, std = stripes(30, seed=2)
    for given in ({}, {"X_std": std}, {"X_std": 0.0}):
        np.testing.assert_array_equal(
            loaded.predict_proba(X, **given), fitted.predict_proba(X, **given)
        )
    assert loaded.elbo_ == fitted.elbo_


def test_the_laws_of_training_rows_are_better_than_that_of_the_error(fitted):
    X, y, std = stripes()
    each = fitted.expected_log_likelihood(X, y, std)  # which knows no training row
    assert each.sum() - fitted.kl_divergence() < fitted.elbo_ - 1.0


def test_a_fit_may_go_on_from_one_of_fewer_rows():
    X, y, std = stripes()
    clf = GPClassifier(input_noise=SMALL, warm_start=True, **QUICK)
    clf.fit(X[:80], y[:80], X_std=std).fit(X, y, X_std=std)
    assert np.isfinite(clf.elbo_)


def test_the_bound_at_the_end_is_the_mean_over_the_laws_less_the_divergence(x64):
    theta, rows, n_latent = problem("Softmax")
    shift, log_variance = some_law()
    source = ArrayRows(rows.X, rows.y, rows.weight, std=np.full((1, 3), 0.5))
    m = some_q(n_latent)
    many, few = (
        prepare(
            *with_inputs(theta, Parametric(count=count, shift=shift, log_variance=log_variance)),
            1e-9,
        )[0]
        for count in (2048, 4)
    )
    expected = float(gradient_pass(many, m, next(source.chunks())).bound)
    fresh, none = (fresh_bound(few, m, r) for r in (source, weightless(source)))
    np.testing.assert_allclose(fresh - none, expected, rtol=2e-3)


def weightless(rows):
    """The same rows, none of which counts: what is left of a bound is −KL(q ‖ p)."""
    return ArrayRows(rows.X, rows.y, 0 * rows.weight, std=rows.std)


def test_what_cannot_be_done_is_said():
    X, y, std = stripes(20)
    with pytest.raises(ValueError, match="prior_variance must be a number above 0"):
        Parametric(prior_variance=0.0)
    with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
        Parametric(count=0)
    for kind in ("parametric", SMALL):
        clf = GPClassifier(input_noise=kind, **QUICK)
        with pytest.raises(ValueError, match=r'partial_fit.* use "latent"'):
            clf.partial_fit(X, y, classes=[0, 1], X_std=std)
        assert not hasattr(clf, "posterior_")
    with pytest.raises(ValueError, match='"power-ep" takes rows as exact'):
        GPClassifier(input_noise="parametric", inference="power-ep").fit(X, y, X_std=std)
