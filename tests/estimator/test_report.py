"""Laws of the scores, and that pictures are drawn without touching anyone else's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from gpclf import GPClassifier
from gpclf.report import (
    accuracy,
    brier,
    decision_surface,
    ece,
    nll,
    reliability_curve,
    reliability_diagram,
    scores,
)

PNG = b"\x89PNG"


@st.composite
def predictions(draw):
    """(log-probabilities, true classes), from sure to indifferent, for 1 to 40 rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_classes = draw(st.integers(1, 40)), draw(st.integers(2, 8))
    spread = draw(st.sampled_from([0.0, 1e-6, 1.0, 10.0, 1e4]))
    log_p = log_softmax(spread * rng.standard_normal((n_rows, n_classes)), axis=1)
    return log_p, rng.integers(n_classes, size=n_rows)


def certain(y, n_classes):
    """The log-probabilities of one who gives each row's class y probability 1."""
    return np.where(np.arange(n_classes) == np.asarray(y)[:, None], 0.0, -np.inf)


def of_confidence(p):
    """Two-class log-probabilities with class 0 on top, one row per confidence."""
    return np.log(np.stack([p, 1 - p], axis=1))


@given(predictions())
def test_scores_keep_to_their_ranges(prediction):
    log_p, y = prediction
    found = scores(log_p, y)
    assert 0 <= found.accuracy <= 1
    assert found.nll >= 0
    assert 0 <= found.brier <= 2 + 1e-12
    assert 0 <= found.ece <= 1


@given(predictions(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(prediction, random):
    log_p, y = prediction
    order = random.sample(range(len(y)), len(y))
    before, after = scores(log_p, y), scores(log_p[order], y[order])
    for name in ("accuracy", "nll", "brier", "ece"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-9, abs=1e-12)


@given(predictions(), st.randoms(use_true_random=False))
def test_renaming_the_classes_does_not_matter_to_proper_scores(prediction, random):
    log_p, y = prediction
    order = np.array(random.sample(range(log_p.shape[1]), log_p.shape[1]))
    renamed = np.argsort(order)[y]
    assert nll(log_p[:, order], renamed) == pytest.approx(nll(log_p, y))
    assert brier(log_p[:, order], renamed) == pytest.approx(brier(log_p, y))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_perfect_prediction_loses_nothing(n_classes):
    y = np.arange(20) % n_classes
    found = scores(certain(y, n_classes), y)
    assert (found.accuracy, found.nll, found.brier, found.ece) == (1, 0, 0, 0)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_certain_error_costs_everything(n_classes):
    y = np.arange(20) % n_classes
    found = scores(certain((y + 1) % n_classes, n_classes), y)
    assert (found.accuracy, found.nll, found.brier, found.ece) == (0, np.inf, 2, 1)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_uniform_prediction_has_closed_forms(n_classes):
    y = np.arange(7 * n_classes) % n_classes
    found = scores(np.full((len(y), n_classes), -np.log(n_classes)), y)
    assert found.nll == pytest.approx(np.log(n_classes))
    assert found.brier == pytest.approx(1 - 1 / n_classes)
    assert found.accuracy == pytest.approx(1 / n_classes)  # ties go to the first class
    assert found.ece == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("score", [nll, brier])
def test_the_truth_has_the_least_expected_loss(score):
    """Properness: where class 0 has probability 0.7, no other statement scores better."""
    y = np.repeat([0, 1], [70, 30])
    loss = {p: score(of_confidence(np.full(100, p)), y) for p in (0.5, 0.6, 0.7, 0.8, 0.95)}
    assert min(loss, key=lambda p: loss[p]) == 0.7


@given(predictions())
def test_the_negative_log_likelihood_is_an_average_over_rows(prediction):
    log_p, y = prediction
    one_by_one = [nll(log_p[n : n + 1], y[n : n + 1]) for n in range(len(y))]
    assert nll(log_p, y) == pytest.approx(np.mean(one_by_one))


def test_log_probabilities_too_small_for_a_float_still_count():
    assert nll([[0.0, -1e4]], [1]) == 1e4


def test_a_calibrated_predictor_has_no_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 200_000)
    y = (rng.uniform(size=p.size) > p).astype(int)
    # 8 filled bins of 25,000 rows: each gap is about 0.8·√(0.19/25000) = 0.002.
    assert ece(of_confidence(p), y) < 0.005


@pytest.mark.parametrize("bins", [1, 10, 15])
@pytest.mark.parametrize(("stated", "true"), [(0.99, 0.6), (0.8, 0.75), (0.6, 0.9)])
def test_the_calibration_error_of_a_constant_confidence_is_its_gap(stated, true, bins):
    y = (np.arange(1000) >= 1000 * true).astype(int)
    assert ece(of_confidence(np.full(1000, stated)), y, bins) == pytest.approx(abs(stated - true))


def test_opposite_gaps_cancel_within_a_bin_but_not_between_bins():
    # Confidence 0.6 is right 90 times in 100, confidence 0.9 only 70 times.
    p, y = np.repeat([0.6, 0.9], 100), np.repeat([0, 1, 0, 1], [90, 10, 70, 30])
    assert ece(of_confidence(p), y, bins=15) == pytest.approx((0.3 + 0.2) / 2)
    assert ece(of_confidence(p), y, bins=1) == pytest.approx(abs(0.8 - 0.75))


@given(predictions(), st.integers(1, 30))
def test_the_reliability_curve_accounts_for_every_row(prediction, bins):
    log_p, y = prediction
    curve = reliability_curve(log_p, y, bins)
    filled = curve.count > 0
    assert len(curve.count) == bins
    assert curve.count.sum() == len(y)
    assert np.array_equal(np.isnan(curve.confidence), ~filled)
    right = np.sum(curve.count[filled] * curve.accuracy[filled])
    assert right == pytest.approx(len(y) * accuracy(log_p, y))
    upper = np.arange(1, bins + 1)[filled] / bins
    assert np.all(curve.confidence[filled] <= upper + 1e-9)
    assert np.all(curve.confidence[filled] >= upper - 1 / bins - 1e-9)


@pytest.mark.parametrize(
    ("log_p", "y", "sentence"),
    [
        (np.zeros(3), [0, 0, 0], "two or more columns"),
        (np.zeros((2, 1)), [0, 0], "two or more columns"),
        (np.zeros((0, 2)), [], "one or more rows"),
        ([[0.5, 0.5]], [0], "sum to 1"),
        ([[np.nan, 0.0]], [0], "sum to 1"),
        (certain([0, 1], 2), [0], "one per row"),
        (certain([0, 1], 2), [0, 2], "from 0 to 1"),
        (certain([0, 1], 2), [-1, 0], "from 0 to 1"),
        (certain([0, 1], 2), ["a", "b"], "whole numbers"),
        (certain([0, 1], 2), [0.0, 1.0], "whole numbers"),
    ],
)
@pytest.mark.parametrize("score", [accuracy, nll, brier, ece, reliability_curve, scores])
def test_bad_input_gets_one_sentence(score, log_p, y, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        score(log_p, y)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_curve_needs_a_bin():
    with pytest.raises(ValueError, match="at least 1"):
        reliability_curve(certain([0, 1], 2), [0, 1], bins=0)


@pytest.fixture(scope="module")
def clouds():
    """Three clouds in the plane and a classifier of them."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 12)
    X = rng.standard_normal((36, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]]).repeat(12, axis=0)
    return GPClassifier(n_inducing=8, max_epochs=3, random_state=0).fit(X, y), X, y


def test_pictures_are_written_and_leave_pyplot_alone(clouds, tmp_path):
    import matplotlib.pyplot as plt

    decision_surface(*clouds, tmp_path / "surface.png")
    curves = {"sure": (certain([0, 1], 2), [0, 1]), "unsure": (np.log([[0.6, 0.4]]), [1])}
    reliability_diagram(curves, str(tmp_path / "reliability.png"))
    for name in ("surface.png", "reliability.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    assert plt.get_fignums() == []


def test_pictures_say_what_they_cannot_draw(clouds, tmp_path):
    classifier, X, y = clouds
    with pytest.raises(ValueError, match="two features"):
        decision_surface(classifier, np.c_[X, X], y, tmp_path / "surface.png")
    with pytest.raises(ValueError, match="1 to 7"):
        reliability_diagram({}, tmp_path / "reliability.png")
    assert list(tmp_path.iterdir()) == []
