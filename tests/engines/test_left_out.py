"""Laws of rows left out, and of a kernel that they make surer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural as NaturalForm
from gpclf.gaussian import moments
from gpclf.inference.engines import Natural
from gpclf.inference.left_out import FOLDS, FoldScores, fold_scores, folds_of
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.passes import with_kept_features
from gpclf.inference.rescale import LENGTHSCALES, VARIANCES
from gpclf.inference.rules import Variational
from gpclf.model import prepare
from problems import POINTS, ROWS, problem

RULE, CLOSE = Variational(), Limits(300, 1e-12, 1e-12)


@pytest.mark.parametrize("name", ["Logit", "Softmax"])
def test_a_fold_is_a_fit_without_its_rows(name, x64):
    theta, rows, n_latent = problem(name)
    rows = rows.in_chunks(16)
    prepared, _ = prepare(*theta, 1e-9)
    folds = folds_of(rows, np.random.default_rng(0))
    prior = NaturalForm.standard(n_latent, POINTS)
    kept = with_kept_features(prepared, rows)
    found, ends = fold_scores(RULE, prepared, [prior] * FOLDS, kept, folds, CLOSE)
    of_rows = np.concatenate(folds)[:ROWS]
    likelihood = theta.model.likelihood
    each = jax.jit(jax.vmap(lambda *law: likelihood.log_probabilities(*law)))
    for fold in range(FOLDS):
        out = of_rows == fold
        others = ArrayRows(rows.X[~out], rows.y[~out], rows.weight[~out])
        q = settle(RULE, prepared, Start(prior), others, CLOSE).q
        np.testing.assert_allclose(ends[fold].linear, q.linear, rtol=1e-5, atol=1e-6)
        mu, nu = prepared.marginals(
            prepared.features(jnp.asarray(rows.X[out])), jax.device_put(moments(q)[0])
        )
        logs = np.asarray(each(mu, nu))[np.arange(out.sum()), rows.y[out]]
        np.testing.assert_allclose(found.sums[fold], rows.weight[out] @ logs, rtol=1e-5)
        np.testing.assert_allclose(found.weights[fold], rows.weight[out].sum())


def test_every_class_is_spread_evenly_over_the_folds():
    y = np.repeat([0, 1, 2], [31, 17, 5]).astype(np.int32)
    rows = ArrayRows(np.zeros((53, 1)), y, np.ones(53)).in_chunks(20)
    folds = folds_of(rows, np.random.default_rng(0))
    assert [len(part) for part in folds] == [20, 20, 20]
    fold = np.concatenate(folds)[:53]
    for label in range(3):
        counts = np.bincount(fold[y == label], minlength=FOLDS)
        assert np.ptp(counts) <= 1
    assert not np.array_equal(fold, np.concatenate(folds_of(rows, np.random.default_rng(1)))[:53])


def test_a_gain_is_that_of_a_row_with_its_error_over_folds():
    weights = np.array([2.0, 3.0])
    one, other = FoldScores(np.array([-1.0, -3.0]), weights), FoldScores(-weights, weights)
    gain, error = one.gain(other)
    assert gain == pytest.approx(-4 / 5 + 1)
    assert error == pytest.approx(np.std([0.5, 0.0], ddof=1) / np.sqrt(2))


def _rings(rows, seed):
    """Two classes that never mix, along a spiral: a kernel that is sure is right."""
    rng = np.random.default_rng(seed)
    radius, y = rng.uniform(0.5, 3.0, rows), np.arange(rows) % 2
    angle = 2.5 * radius + np.pi * y
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], y


def test_a_kernel_made_surer_by_rows_left_out_predicts_new_rows_better():
    (X, y), (new, labels) = _rings(120, 0), _rings(400, 1)
    common = {"n_inducing": 40, "random_state": 0}
    fits = [
        GPClassifier(**common, inference=Natural(rescale=own)).fit(X, y) for own in (False, True)
    ]
    plain, surer = (-np.mean(clf.predict_log_proba(new)[np.arange(400), labels]) for clf in fits)
    assert surer < 0.7 * plain
    said = fits[1].stopped_
    assert "by rows left out" in said
    assert "by rows left out" not in fits[0].stopped_
    again = GPClassifier(**common, inference=Natural(rescale=True)).fit(X, y)
    assert np.array_equal(again.predict_proba(new), fits[1].predict_proba(new))


def test_pure_noise_leaves_the_kernel_as_it_was_learned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    clf = GPClassifier(n_inducing=40, random_state=0, inference=Natural(rescale=True)).fit(X, y)
    assert "kernel: as learned" in clf.stopped_


def test_what_cannot_be_rescaled_says_so():
    X, y = _rings(20, 0)
    with pytest.raises(ValueError, match="rescale=True needs rows without errors"):
        GPClassifier(inference=Natural(rescale=True)).fit(X, y, X_std=0.1)
    for options in ({"batch_size": 5}, {"optimizer": None}, {"class_subset": 1}):
        engine = Natural(rescale=True, **options)
        with pytest.raises(ValueError, match="rescale=True needs all rows and classes at once"):
            GPClassifier("logistic-softmax", inference=engine).fit(X, y)


def test_the_kernel_as_learned_is_among_the_choices():
    assert 1.0 in LENGTHSCALES
    assert 1.0 in VARIANCES
