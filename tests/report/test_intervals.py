"""Intervals: they hold the score, and agree with closed forms where there are any."""

import importlib
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, roc_auc_score

from gpclf.report import ranking
from gpclf.report.intervals import METRICS, ece_by_chance, intervals, wilson
from gpclf.report.metrics import accuracy, brier, ece, nll


def calibrated(n_rows: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    logs = np.log(rng.dirichlet(np.full(n_classes, 0.5), n_rows).clip(1e-9))
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    y = (rng.random(n_rows)[:, None] > np.exp(logs).cumsum(axis=1)).sum(axis=1)
    return logs, y.clip(max=n_classes - 1)


@pytest.mark.parametrize("n_rows", [5, 300, 9000])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_intervals_hold_the_score_and_keep_to_its_range(n_rows, n_classes):
    found = intervals(*calibrated(n_rows, n_classes), n=200)
    assert tuple(found) == METRICS
    for name, (value, low, high) in found.items():
        assert low <= value <= high, name
        assert low >= 0
        assert name == "nll" or high <= 2


def test_the_values_are_the_scores():
    logs, y = calibrated(400, 3)
    found = intervals(logs, y, n=50)
    own = {"nll": nll, "brier": brier, "accuracy": accuracy, "ece": ece, "auc": ranking.auc}
    assert {name: each.value for name, each in found.items()} == {
        name: function(logs, y) for name, function in own.items()
    }


@pytest.mark.parametrize("n_rows", [1000, 40000])
def test_the_interval_of_accuracy_is_that_of_a_share(n_rows):
    logs, y = calibrated(n_rows, 3)
    value, low, high = intervals(logs, y, ["accuracy"], n=4000)["accuracy"]
    error = np.sqrt(value * (1 - value) / n_rows)
    assert_allclose([low, high], [value - 1.96 * error, value + 1.96 * error], atol=0.15 * error)


def test_groups_give_the_interval_that_rows_give(monkeypatch):
    logs, y = calibrated(3000, 3)
    of_rows = intervals(logs, y, n=2500)
    monkeypatch.setattr(importlib.import_module("gpclf.report.intervals"), "MOST_UNITS", 800)
    of_groups = intervals(logs, y, n=2500)
    for name in METRICS:
        width = of_rows[name].high - of_rows[name].low
        assert_allclose(of_groups[name], of_rows[name], atol=0.15 * width)


def test_the_same_seed_gives_the_same_interval():
    logs, y = calibrated(300, 2)
    assert intervals(logs, y, n=100, seed=3) == intervals(logs, y, n=100, seed=3)
    assert intervals(logs, y, n=100, seed=3) != intervals(logs, y, n=100, seed=4)


def test_300_000_rows_take_seconds():
    logs, y = calibrated(300_000, 3)
    began = time.process_time()
    intervals(logs, y)
    assert time.process_time() - began < 10


def test_a_class_without_rows_has_no_area_and_is_left_out():
    logs, y = calibrated(60, 3)
    y[y == 2] = 0
    assert np.isnan(ranking.auc_by_class(logs, y)[2])
    assert np.isfinite(intervals(logs, y, ["auc"], n=50)["auc"]).all()
    assert np.isnan(intervals(logs, 0 * y, ["auc"], n=50)["auc"]).all()


def test_an_impossible_label_has_an_infinite_score_without_interval():
    with np.errstate(divide="ignore"):
        logs = np.log([[1.0, 0.0], [0.5, 0.5]])
    assert intervals(logs, [1, 0], ["nll"], n=20)["nll"].value == np.inf


def test_what_is_no_metric_is_named():
    with pytest.raises(ValueError, match=r"among nll, .* got 'f1'"):
        intervals(*calibrated(10, 2), ["f1"])
    with pytest.raises(ValueError, match="n must be"):
        intervals(*calibrated(10, 2), n=0)


def test_wilson_is_whole_without_rows_and_closes_on_the_share():
    low, high = wilson([0, 0, 5, 5000], [0, 10, 10, 10000])
    assert_allclose([low[0], high[0]], [0, 1], atol=1e-12)
    assert low[1] == 0
    assert 0.2 < high[1] < 0.35
    assert_allclose([low[3], high[3]], [0.4902, 0.5098], atol=1e-4)


@pytest.mark.parametrize("n_rows", [2000, 20000])
def test_a_calibrated_model_errs_as_by_chance(n_rows):
    errors = [ece(*calibrated(n_rows, 3, seed)) for seed in range(5)]
    mean, most = ece_by_chance(*calibrated(n_rows, 3), n=500)
    assert 0.6 * mean < np.mean(errors) < 1.5 * mean < 1.5 * most


def test_areas_are_those_of_scikit_learn():
    logs, y = calibrated(500, 3)
    logs = np.round(logs, 1)  # ties
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    p = np.exp(logs)
    ours = ranking.auc_by_class(logs, y)
    for c in range(3):
        assert_allclose(ours[c], roc_auc_score(y == c, p[:, c]))
        assert_allclose(ranking.roc_curve(p[:, c], y == c).area, ours[c])
        curve = ranking.precision_recall_curve(p[:, c], y == c)
        assert_allclose(curve.area, average_precision_score(y == c, p[:, c]))
    assert_allclose(ranking.auc(logs, y), roc_auc_score(y, p, multi_class="ovr"))


def test_curves_end_at_their_corners_also_when_thinned():
    logs, y = calibrated(5000, 2)
    for curve in (
        ranking.roc_curve(logs[:, 1], y == 1),
        ranking.precision_recall_curve(logs[:, 1], y == 1),
    ):
        few = ranking.thinned(curve, 100)
        assert len(few.x) <= 101
        assert few.area == curve.area
        for each in (curve, few):
            assert (each.x[0], each.x[-1]) == (0, 1)
        assert (few.y[0], few.y[-1]) == (curve.y[0], curve.y[-1])
    roc = ranking.roc_curve(logs[:, 1], y == 1)
    assert (roc.y[0], roc.y[-1]) == (0, 1)
