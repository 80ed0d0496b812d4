"""Laws of rows left out, in folds and one by one, and of a kernel that they choose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural as NaturalForm
from gpclf.gaussian import moments
from gpclf.inference import selection
from gpclf.inference.engines import Natural, PowerEP, sites
from gpclf.inference.left_out import (
    FOLDS,
    SCORED,
    Folds,
    RowScores,
    fold_scores,
    folds_enough,
    folds_of,
)
from gpclf.inference.loo import leave_one_out
from gpclf.inference.natural import Limits, Start, settle
from gpclf.inference.rules import Variational
from gpclf.inference.selection import HIGHEST, LOWEST, SHORTER, SURER, WAYS, Choice, _for_themselves
from gpclf.kernels import FAMILIES, RBF, Matern52
from gpclf.model import prepare
from gpclf.precision import cast
from problems import POINTS, ROWS, problem, settled

RULE, CLOSE = Variational(), Limits(300, 1e-12, 1e-12)


def _logs(prepared, q, X, y):
    """log p(y) of rows as predicted."""
    mu, nu = prepared.marginals(prepared.features(jnp.asarray(X)), jax.device_put(moments(q)[0]))
    likelihood = prepared.model.likelihood
    each = jax.jit(jax.vmap(lambda *law: likelihood.log_probabilities(*law)))
    return np.asarray(each(mu, nu))[np.arange(len(y)), y]


@pytest.mark.parametrize("name", ["Logit", "Softmax"])
def test_a_fold_is_a_fit_without_its_rows(name, x64):
    theta, rows, n_latent = problem(name)
    rows = rows.in_chunks(16)
    prepared, _ = prepare(*theta, 1e-9)
    folds = Folds.of(rows, np.random.default_rng(0))
    assert folds.fitted == FOLDS
    prior = NaturalForm.standard(n_latent, POINTS)
    found, ends = fold_scores(RULE, prepared, folds.under(prepared), [prior] * FOLDS, CLOSE)
    of_rows, logs, weights = np.concatenate(folds.fold)[:ROWS], [], []
    for fold in range(FOLDS):
        out = of_rows == fold
        others = ArrayRows(rows.X[~out], rows.y[~out], rows.weight[~out])
        q = settle(RULE, prepared, Start(prior), others, CLOSE).q
        np.testing.assert_allclose(ends[fold].linear, q.linear, rtol=1e-5, atol=1e-6)
        logs.append(_logs(prepared, q, rows.X[out], rows.y[out]))
        weights.append(rows.weight[out])
    np.testing.assert_allclose(found.logs, np.concatenate(logs), rtol=1e-5)
    np.testing.assert_allclose(found.weights, np.concatenate(weights))


def test_what_is_clearly_beaten_is_not_fitted_to_all_folds_and_scores_what_it_has(x64):
    theta, rows, n_latent = problem("Logit")
    prepared, _ = prepare(*theta, 1e-9)
    folds = Folds.of(rows, np.random.default_rng(0)).under(prepared)
    prior, limits = [NaturalForm.standard(n_latent, POINTS)] * FOLDS, Limits(4, 0.0, 0.0)
    whole, _ = fold_scores(RULE, prepared, folds, prior, limits)
    surer = RowScores(whole.logs + 1.0, whole.weights, whole.distinct)
    part, ends = fold_scores(RULE, prepared, folds, prior, limits, surer)
    assert len(ends) == 1
    np.testing.assert_array_equal(part.logs, whole.logs[: len(part.logs)])
    assert part.gain(surer)[0] == pytest.approx(-1.0)
    assert len(fold_scores(RULE, prepared, folds, prior, limits, whole)[1]) == FOLDS


def test_features_of_one_kernel_serve_the_programs_of_another(x64):
    """Kept with the rows, they are all that steps and scores ask of the kernel."""
    theta, rows, n_latent = problem("Softmax")
    prepared, _ = prepare(*theta, 1e-9)
    other = theta.model.kernel.of_family(Matern52)
    same = jax.tree.map(lambda leaf: leaf, prepared)
    object.__setattr__(same, "model", type(theta.model)(other, *_rest(theta.model)))
    folds = Folds.of(rows, np.random.default_rng(0)).under(prepared)
    prior = [NaturalForm.standard(n_latent, POINTS)] * FOLDS
    limits = Limits(4, 0.0, 0.0)
    own, foreign = (fold_scores(RULE, p, folds, prior, limits)[0] for p in (prepared, same))
    np.testing.assert_array_equal(own.logs, foreign.logs)


def _rest(model):
    return model.likelihood, model.inputs, model.shared_kernel, model.shared_points


def test_every_class_is_spread_evenly_over_the_folds():
    y = np.repeat([0, 1, 2], [31, 17, 5]).astype(np.int32)
    rows = ArrayRows(np.arange(53.0)[:, None], y, np.ones(53)).in_chunks(20)
    folds, distinct = folds_of(rows, np.random.default_rng(0))
    assert [len(part) for part in folds] == [20, 20, 20]
    assert distinct.sum() == 53
    fold = np.concatenate(folds)[:53]
    for label in range(3):
        counts = np.bincount(fold[y == label], minlength=FOLDS)
        assert np.ptp(counts) <= 1
    other, _ = folds_of(rows, np.random.default_rng(1))
    assert not np.array_equal(fold, np.concatenate(other)[:53])


def test_rows_that_are_the_same_are_left_out_together_whatever_their_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), (np.arange(30) % 3).astype(np.int32)
    twice = rng.permutation(np.repeat(np.arange(30), 1 + np.arange(30) % 2))
    once, repeated = (
        ArrayRows(X[rows], y[rows], np.ones(len(rows))) for rows in (np.arange(30), twice)
    )
    found = (folds_of(rows, np.random.default_rng(5))[0] for rows in (once, repeated))
    folds = [np.concatenate(own) for own in found]
    np.testing.assert_array_equal(folds[0][twice], folds[1])


def test_rows_that_are_too_few_for_folds_leave_the_kernel_as_it_was_learned():
    X, y = np.arange(4.0)[:, None].repeat(5, axis=0), np.arange(20) % 2
    clf = GPClassifier(random_state=0).fit(X, y)
    assert clf.selection_ is None


@pytest.mark.parametrize("n_rows", [10, SCORED, 2 * SCORED, 10**6])
def test_folds_are_fitted_until_enough_rows_are_scored(n_rows):
    count = folds_enough(n_rows)
    assert 2 <= count <= FOLDS
    assert count == FOLDS or count * n_rows >= FOLDS * SCORED
    assert count == 2 or (count - 1) * n_rows < FOLDS * SCORED


def test_a_gain_is_that_of_a_row_with_its_error_over_rows():
    weights = np.array([2.0, 3.0])
    one, other = (RowScores(logs, weights, 2) for logs in (np.array([-0.5, -1.0]), -np.ones(2)))
    gain, error = one.gain(other)
    assert gain == pytest.approx(0.5 * 2 / 5)
    assert error == pytest.approx(np.sqrt((0.4 * 0.3**2 + 0.6 * 0.2**2) / 2))
    assert other.gain(other) == (0.0, 0.0)
    for nothing in (-np.inf, np.nan):
        lost = RowScores(np.array([nothing, 0.0]), weights, 2)
        assert lost.mean == -np.inf
        assert lost.gain(other) == lost.gain(lost) == (-np.inf, 0.0)


@pytest.mark.parametrize("name", ["Logit", "LogitPG", "Softmax", "LogisticSoftmax"])
def test_leave_one_out_removes_the_site_and_solves_again(name, x64):
    theta, rows, n_latent = problem(name)
    prepared, end = settled(theta, rows, n_latent)
    found = leave_one_out(prepared, end.q, rows.in_chunks(16), None)
    features = prepared.features(jnp.asarray(rows.X))
    A = np.asarray(features.A)
    mu, nu = prepared.marginals(features, jax.device_put(moments(end.q)[0]))
    own = prepared.sites(jnp.asarray(rows.y), mu, nu)
    tau, lam = np.asarray(own.precision), np.asarray(own.linear)
    logs = []
    for n in range(ROWS):  # a site counts as often as its row: one of them goes
        linear = end.q.linear - lam[n][:, None] * A[n]
        precision = end.q.precision - tau[n][:, None, None] * np.outer(A[n], A[n])
        q = NaturalForm(linear, precision)
        logs.append(_logs(prepared, q, rows.X[n : n + 1], rows.y[n : n + 1])[0])
    assert found.score == pytest.approx(rows.weight @ logs / rows.weight.sum(), rel=1e-6)
    order = np.random.default_rng(0).permutation(ROWS)
    again = leave_one_out(prepared, end.q, rows.take(order), None)
    assert again.score == pytest.approx(found.score, rel=1e-9)


def _rings(rows, seed):
    """Two classes that never mix, along a spiral: a kernel that is sure is right."""
    rng = np.random.default_rng(seed)
    radius, y = rng.uniform(0.5, 3.0, rows), np.arange(rows) % 2
    angle = 2.5 * radius + np.pi * y
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], y


def test_leave_one_out_of_a_full_process_by_ep_is_near_that_of_refits():
    """Under one kernel; the predictive of a refit has every other site moved, too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=40) > 0).astype(int)
    options = {"n_inducing": None, "kernel": RBF(1.0, 1.5), "random_state": 0, "tol": 1e-9}
    options |= {"inference": PowerEP(optimizer=None), "max_epochs": 60}
    clf = GPClassifier("probit", **options).fit(X, y)
    logs = []
    for n in range(40):
        weight = np.ones(40)
        weight[n] = 1e-9  # not left out: the scaling is then the same
        one = GPClassifier("probit", **options).fit(X, y, sample_weight=weight)
        logs.append(one.predict_log_proba(X[n : n + 1])[0, y[n]])
    assert clf.loo_score_ == pytest.approx(np.mean(logs), abs=0.01)
    assert clf.loo_unsure_ == 0
    np.testing.assert_allclose(clf.loo_log_proba_[np.arange(40), y], logs, rtol=0.1, atol=0.02)


def test_each_row_left_out_has_probabilities_of_its_own(tmp_path):
    """They sum to one, their mean is the score, and their order is that of the rows."""
    X, y = _rings(60, 0)
    weight = np.ones(60)
    weight[:3] = 0
    options = {"n_inducing": 20, "max_epochs": 5, "random_state": 0, "inference": "natural"}
    clf = GPClassifier(**options).fit(X, y, sample_weight=weight)
    logs = clf.loo_log_proba_
    assert logs.shape == (57, 2)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-6)
    assert np.mean(logs[np.arange(57), y[3:]]) == pytest.approx(clf.loo_score_, rel=1e-6)
    clf.save(tmp_path / "model")
    assert GPClassifier.load(tmp_path / "model").loo_log_proba_ is None


def test_rows_that_stand_alone_are_counted_as_unsure():
    """With a huge variance and a tiny lengthscale nothing else is known of a row."""
    X, y = _rings(40, 0)
    options = {"inference": Natural(optimizer=None), "max_epochs": 200, "n_inducing": None}
    alone = GPClassifier("logit-pg", RBF(1e-3, 1e4), random_state=0, **options).fit(X, y)
    near = GPClassifier("logit-pg", RBF(1.0, 1.0), random_state=0, **options).fit(X, y)
    assert alone.loo_unsure_ > 0.5
    assert near.loo_unsure_ == 0


def test_some_of_many_rows_are_enough_for_a_score_near_that_of_all(monkeypatch):
    X, y = _rings(200, 0)
    common = {"n_inducing": 30, "max_epochs": 10, "random_state": 0, "inference": "natural"}
    whole = GPClassifier(**common).fit(X, y)
    monkeypatch.setattr(sites, "LEFT_OUT", 150)
    some = GPClassifier(**common).fit(X, y)
    assert some.loo_score_ != whole.loo_score_
    assert some.loo_score_ == pytest.approx(whole.loo_score_, rel=0.2)
    np.testing.assert_array_equal(some.predict_proba(X), whole.predict_proba(X))


def test_engines_without_sites_have_no_score_of_rows_left_out():
    X, y = _rings(30, 0)
    clf = GPClassifier(n_inducing=10, inference="gradient", max_epochs=3, random_state=0).fit(X, y)
    assert clf.loo_score_ is None
    assert clf.selection_ is None


def test_a_kernel_chosen_by_rows_left_out_predicts_new_rows_better():
    (X, y), (new, labels) = _rings(120, 0), _rings(400, 1)
    common = {"n_inducing": 40, "random_state": 0}
    fits = [GPClassifier(**common, inference=name).fit(X, y) for name in ("natural", "auto")]
    plain, surer = (-np.mean(clf.predict_log_proba(new)[np.arange(400), labels]) for clf in fits)
    assert surer < 0.7 * plain
    assert fits[0].selection_ is None
    assert "by rows left out" not in fits[0].stopped_
    assert "by rows left out" in fits[1].stopped_
    first, *others = fits[1].selection_
    assert (first["lengthscale"], first["variance"], first["gain"]) == (1.0, 1.0, 0.0)
    assert max(each["gain"] for each in others) > 0
    again = GPClassifier(**common).fit(X, y)
    assert np.array_equal(again.predict_proba(new), fits[1].predict_proba(new))


def test_few_of_many_rows_do_not_make_the_kernel_more_timid(monkeypatch):
    """They would for themselves: pure noise asks for no function at all."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    options = {"n_inducing": 20, "random_state": 0, "max_epochs": 6}
    whole = GPClassifier(**options).fit(X, y).selection_
    monkeypatch.setattr(selection, "MOST_ROWS", 49)
    few = GPClassifier(**options).fit(X, y).selection_
    assert min(each["variance"] for each in whole) < 1
    assert min(each["variance"] for each in few) == 1
    assert max(each["lengthscale"] for each in few) == 1


def test_pure_noise_leaves_the_kernel_as_it_was_learned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    fits = [
        GPClassifier(n_inducing=40, random_state=0, inference=name).fit(X, y)
        for name in ("natural", "auto")
    ]
    assert "kernel: as learned" in fits[1].stopped_
    np.testing.assert_allclose(*(clf.kernel_.lengthscale for clf in fits))


def test_a_kernel_of_the_users_own_keeps_its_family():
    X, y = _rings(60, 0)
    clf = GPClassifier(kernel="rbf + linear", n_inducing=20, random_state=0).fit(X, y)
    assert {each["kernel"] for each in clf.selection_} == {"Sum"}
    own = GPClassifier(kernel="rbf", n_inducing=20, random_state=0).fit(X, y)
    assert type(own.kernel_) is RBF


def test_what_cannot_be_chosen_by_folds_says_so_and_is_left_out_by_default():
    X, y = _rings(20, 0)
    with pytest.raises(ValueError, match="select=True needs rows without errors"):
        GPClassifier(inference=Natural(select=True)).fit(X, y, X_std=0.1)
    for options in ({"batch_size": 5}, {"optimizer": None}, {"class_subset": 1}):
        engine = Natural(select=True, **options)
        with pytest.raises(ValueError, match="select=True needs all rows and classes at once"):
            GPClassifier("logistic-softmax", inference=engine).fit(X, y)
    assert GPClassifier(n_inducing=10, max_epochs=2).fit(X, y, X_std=0.1).selection_ is None


def test_ways_lead_to_every_choice_and_families_get_rougher():
    assert LOWEST < 0 < HIGHEST
    assert SHORTER < 1 < SURER
    count = len(FAMILIES)
    reached, new = set(), {Choice(1)}
    while new:
        reached |= new
        new = {
            there for one in new for way in WAYS if (there := one.moved(way, count, LOWEST))
        } - reached
    assert len(reached) == count * (HIGHEST - LOWEST + 1) ** 2
    x = jnp.asarray([0.1])
    falls = [1 - float(family.profile(x**2)[0]) for family in FAMILIES]
    assert falls == sorted(falls)


def test_a_kernel_of_another_family_has_its_parameters_and_its_typical_correlations(x64):
    kernel = cast(Matern52([1.0, 2.0, 0.5, 3.0], 3.0), jnp.float64)
    X = jnp.asarray(np.random.default_rng(0).normal(size=(400, 4)))
    typical = np.median(np.sqrt(kernel._squared_distances(X, X)))
    for family in FAMILIES:
        there = kernel.of_family(family)
        assert type(there) is family
        assert there.variance == kernel.variance
        ratio = np.asarray(there.lengthscale / kernel.lengthscale)
        np.testing.assert_allclose(ratio, ratio[0])
        distances = np.sqrt(there._squared_distances(X, X))
        np.testing.assert_allclose(family.profile(jnp.asarray(family.half) ** 2), 0.5, atol=1e-3)
        np.testing.assert_allclose(
            np.median(distances) / family.half, typical / Matern52.half, rtol=0.2
        )
        back = there.of_family(Matern52)
        np.testing.assert_allclose(back.lengthscale, kernel.lengthscale)


def test_rows_of_folds_count_once_where_they_are_some_of_many():
    rows = ArrayRows(np.zeros((100, 2)), np.arange(100) % 2, np.full(100, 2.0))
    some = _for_themselves(rows, 40, np.random.default_rng(0))
    assert some.n_rows == 40
    np.testing.assert_allclose(some.total_weight, 80)
    assert _for_themselves(rows, 100, np.random.default_rng(0)) is rows
