"""Laws of numbers whose tails are bent before they are standardised."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpclf import GPClassifier
from gpclf.data import Scaling
from gpclf.data.survey import Sample
from gpclf.data.tails import REACH, bent, middle_and_unit, straightened

ALL = np.ones(1, bool)


def _column(seed, n=40):
    """Numbers with a tail, some of them equal."""
    rng = np.random.default_rng(seed)
    return np.round(np.exp(rng.normal(scale=2.0, size=n)), 2)[:, None] * 10.0 ** rng.integers(-9, 9)


@given(seed=st.integers(0, 2**31))
def test_bending_keeps_the_order_stays_within_reach_and_can_be_undone(seed):
    X = _column(seed)
    middle, unit = middle_and_unit(Sample(X, np.ones(len(X))), ALL)
    B = bent(X, middle, unit)
    order = np.argsort(X[:, 0], kind="stable")
    assert np.all(np.diff(B[order, 0]) >= 0)
    assert len(np.unique(B)) == len(np.unique(X))
    assert np.all(np.abs(B) <= REACH)
    np.testing.assert_allclose(straightened(B, middle, unit), X, rtol=1e-6, atol=1e-9 * unit[0])


def test_it_is_about_the_identity_near_the_median_of_normal_numbers():
    X = np.random.default_rng(0).normal(5.0, 2.0, (20_000, 1))
    middle, unit = middle_and_unit(Sample(X, np.ones(len(X))), ALL)
    np.testing.assert_allclose([middle[0], unit[0]], [5.0, 2.0], rtol=0.05)
    z = (X - middle) / unit
    near = np.abs(z) < 0.5
    np.testing.assert_allclose(bent(X, middle, unit)[near], z[near], rtol=0.02)


def test_how_far_out_a_few_values_lie_does_not_matter_to_the_others():
    X = np.random.default_rng(0).normal(size=(100, 1))
    X[:3] = [[50.0], [80.0], [-60.0]]
    farther = X.copy()
    farther[:3] *= 1e6
    scaled = [Scaling.of(each, np.ones(100)).forward(each)[3:] for each in (X, farther)]
    np.testing.assert_allclose(*scaled, atol=2e-3)


@given(seed=st.integers(0, 2**31))
def test_a_row_of_weight_two_is_two_rows(seed):
    X = _column(seed, 15)
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    repeated = np.repeat(X, weight, axis=0)
    one = Scaling.of(X, weight.astype(float))
    other = Scaling.of(repeated, np.ones(len(repeated)))
    np.testing.assert_allclose(one.forward(X), other.forward(X), rtol=1e-9, atol=1e-12)


def test_half_of_the_values_may_be_one():
    X = np.zeros((100, 1))
    X[:20, 0] = np.arange(20) + 1
    scaled = Scaling.of(X, np.ones(100)).forward(X)
    assert len(np.unique(scaled)) == 21
    assert np.all(np.isfinite(scaled))


def test_what_scaling_says_is_done():
    X = _column(0, 50) * np.ones((1, 3))
    plain = Scaling.of(X, np.ones(50), kind="standard")
    np.testing.assert_allclose(plain.forward(X), (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(Scaling.of(X, np.ones(50), kind=None).forward(X), X)
    levels = np.array([0, 3, 2])
    codes = np.column_stack([X[:, 0], np.arange(50) % 3, np.arange(50) % 2]).astype(float)
    kept = Scaling.of(codes, np.ones(50), levels, kind=None).forward(codes)
    np.testing.assert_array_equal(kept[:, 0], codes[:, 0])
    others = [
        Scaling.of(codes, np.ones(50), levels, kind).forward(codes)[:, 1:]
        for kind in ("robust", "standard", None)
    ]
    for other in others[1:]:
        np.testing.assert_array_equal(other, others[0])


def test_units_do_not_matter_and_errors_are_those_of_what_is_not_bent():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(40, 2)))
    y = np.log(X[:, 0]) + 0.3 * rng.normal(size=40) > 0
    quick = GPClassifier(n_inducing=10, max_epochs=4, random_state=0)
    first = quick.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(quick.fit(1000 * X + 7, y).predict_proba(1000 * X + 7), first, 1e-4)
    assert np.all(np.isfinite(quick._scaling.unit))
    np.testing.assert_allclose(quick._scaling.backward(quick._scaling.forward(X)), X, rtol=1e-9)
    quick.fit(X, y, X_std=0.1)
    assert not np.any(np.isfinite(quick._scaling.unit))
    np.testing.assert_allclose(quick._scaling.errors(np.full(2, 0.1), X), 0.1 / X.std(axis=0))


@given(seed=st.integers(0, 2**31))
def test_small_errors_of_what_is_bent_are_those_times_the_slope(seed):
    X = _column(seed) * np.ones((1, 2))
    X[4, 0] = np.nan
    scaling = Scaling.of(X, np.ones(len(X)))
    std = 1e-5 * scaling.unit
    above, below = scaling.forward(X + std), scaling.forward(X - std)
    found = scaling.errors(std, X)
    there = ~np.isnan(X)
    np.testing.assert_allclose(found[there], ((above - below) / 2)[there], rtol=1e-4)
    middle = scaling.errors(std[None], scaling.middle[None])
    np.testing.assert_array_equal(found[4, 0], middle[0, 0])
    assert np.all(scaling.errors(1e9 * scaling.unit, X) <= REACH / scaling.spread)


def test_a_fit_without_errors_can_be_told_of_some_when_it_predicts():
    rng = np.random.default_rng(0)
    X = 1000 * rng.normal(size=(80, 1))  # units that errors must not be mistaken for
    quick = GPClassifier("logit", "rbf", 10, max_epochs=6, random_state=0, inference="natural")
    quick.fit(X, X[:, 0] > 0)
    rows = np.array([[-300.0], [100.0], [900.0]])
    told = quick.predict_proba(rows, X_std=300.0)[:, 1]
    moved = rows + 300 * rng.normal(size=(1, 4000))
    drawn = quick.predict_proba(moved.reshape(-1, 1))[:, 1].reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose(told, drawn, atol=0.02)
    assert np.max(np.abs(told - quick.predict_proba(rows)[:, 1])) > 0.05
