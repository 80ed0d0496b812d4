"""What a report finds: features that matter, columns that moved, rows that surprise."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpclf.report import words
from gpclf.report.dependence import dependence
from gpclf.report.drift import drift, index_of, reading
from gpclf.report.importance import importance
from gpclf.report.unsure import entropy, surprising, unsure
from report.stubs import subject_and_table


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("labels", [True, False])
def test_a_feature_that_says_nothing_does_not_matter(labels):
    subject, table = subject_and_table(800)
    found = importance(subject, table if labels else replace(table, y=None), rng())
    rise = dict(zip(found.features.tolist(), found.rise, strict=True))
    assert_allclose(rise[2], 0, atol=1e-12)
    assert min(rise[0], rise[1]) > 0.1
    assert np.all((found.low <= found.rise) & (found.rise <= found.high))
    assert np.all(np.diff(found.rise) <= 0)


def test_without_labels_the_rise_is_the_expected_one():
    subject, table = subject_and_table(2000)
    told = importance(subject, table, rng())
    guessed = importance(subject, replace(table, y=None), rng())
    assert_allclose(np.sort(told.rise), np.sort(guessed.rise), rtol=0.15, atol=0.02)


def test_errors_go_where_their_entries_go():
    subject, table = subject_and_table(60)
    seen = []

    def log_proba(X, std):
        seen.append((X, std))
        return subject.log_proba(X, None)

    noisy = replace(table, std=10 * table.X)
    importance(replace(subject, log_proba=log_proba), noisy, rng())
    assert len(seen) > 3
    for X, std in seen:
        assert_allclose(std, 10 * X)


def test_dependence_is_the_mean_over_rows():
    subject, table = subject_and_table(50)
    found = dependence(subject, table, 0, rng())
    X = table.X.copy()
    X[:, 0] = found.grid[3]
    assert_allclose(found.mean[3], np.exp(subject.log_proba(X, None)).mean(axis=0)[found.classes])
    X[:, 2] = 1.0
    assert dependence(subject, replace(table, X=X), 2, rng()) is None


def test_dependence_on_levels_asks_for_the_most_frequent():
    many = [f"{i:02}" for i in range(30)]
    subject, table = subject_and_table(levels=(None, many, None))
    found = dependence(subject, table, 1, rng())
    assert (len(found.grid), found.left_out) == (12, 18)


def test_drift_is_zero_for_the_same_rows_and_large_for_moved_ones():
    subject, table = subject_and_table(500, levels=(None, ["x", "y", "z"], None))
    own = type(subject.summary).of(table.X, table.y, np.ones(500), subject.columns.counts, 3)
    subject = replace(subject, summary=own)
    assert {each.psi for each in drift(subject, table.X)} == {0.0}
    moved = table.X.copy()
    moved[:, 0] += 2
    moved[:50, 1] = np.nan
    first, second, third = drift(subject, moved)
    assert (first.column, first.reading) == (0, "very different")
    assert (second.column, second.unseen) == (1, 0.1)
    assert third.psi == 0


def test_other_rows_of_the_same_kind_are_as_in_training():
    subject, table = subject_and_table(400)
    assert {each.reading for each in drift(subject, table.X)} == {"as in training"}


def test_the_index_is_symmetric_and_never_negative():
    p, q = np.array([0.2, 0.8, 0.0]), np.array([0.5, 0.4, 0.1])
    assert index_of(p, q) == pytest.approx(index_of(q, p))
    assert index_of(p, q) > 0
    assert index_of(p, p) == 0
    assert [reading(psi, 0.05) for psi in (0.0, 0.05, 0.07, 0.2, 0.3)] == [
        "as in training",
        "as in training",
        "slightly different",
        "different",
        "very different",
    ]


def test_uncertainty_has_two_parts_and_names_the_rows():
    subject, table = subject_and_table(300)
    logs = subject.log_proba(table.X, None)
    found = unsure(subject, table, logs, rng())
    total = entropy(logs)
    assert_allclose((found.data + found.model).mean(), total.mean(), rtol=1e-6)
    assert set(found.rows) == set(np.argsort(-total)[:10])
    assert np.all(found.model <= found.data + found.model)
    rows = surprising(logs, table.y)
    own = logs[np.arange(300), table.y]
    assert own[rows[0]] == own.min()


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.5, "50 %"), (0.9996, "above 99.9 %"), (1e-6, "below 0.1 %")],
)
def test_shares_are_told_as_people_read_them(share, text):
    assert words.percent(share) == text.replace(" ", "\u00a0")


def test_numbers_are_told_as_people_read_them():
    assert [words.number(x) for x in (-0.12345, 12345.6, -1e-9, np.nan, np.inf)] == [
        "−0.123",
        "12,346",
        "0.000",
        "—",
        "∞",
    ]
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.short("x" * 100, 26) == "x" * 17 + "…" + "x" * 8
