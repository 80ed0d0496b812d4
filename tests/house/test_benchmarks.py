"""The benchmarks are run by hand and seldom: at least each of them can begin."""

import importlib
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
ELSEWHERE = {"rival_gpflow", "rival_gpytorch"}  # run in environments of their own
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ELSEWHERE)
NAMES += sorted(f"papers.{path.stem}" for path in FOLDER.glob("papers/[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert importlib.import_module(name).__doc__


def test_a_failed_method_counts_as_last(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    summary = importlib.import_module("summary")
    found = {
        ("wine", 0, "a", None): {"nll": 0.2},
        ("wine", 0, "b", None): {"failed": "cut after 1 s"},
        ("wine", 0, "c", None): {"nll": 0.1},
        ("wine", 1, "a", None): {"nll": 0.1},
    }
    results = summary.Results.of(found, ["wine", "glass"], ["a", "b", "c"], None)
    assert results.seeds == {"wine": [0]}
    ranks = summary.ranks_of(results.table("nll"), results.methods)
    assert ranks.tolist() == [[2, 3, 1]]
    assert results.failures() == [("b", 0, "wine", "cut after 1 s")]


def test_bars_join_the_longest_runs_within_the_critical_difference(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    groups = importlib.import_module("pictures").groups
    assert groups(np.array([1.0, 2, 3, 4, 8, 9]), 2.0) == [(0, 2), (1, 3), (4, 5)]
    assert groups(np.array([1.0, 5, 9]), 2.0) == []


def test_nothing_that_is_chosen_depends_on_test_labels(monkeypatch):
    """Other labels of the test rows give other scores, of the very same probabilities."""
    monkeypatch.syspath_prepend(FOLDER)
    compare, sets = (importlib.import_module(name) for name in ("compare", "sets"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=70) > 0).astype(int)
    rows = sets.Rows(X[:50], y[:50], X[50:], y[50:], {})
    permuted = rows._replace(y_test=1 - rows.y_test)
    one, other = (compare.tell("gpclf", 0, each, 2).log_p for each in (rows, permuted))
    np.testing.assert_array_equal(one, other)
    nll = [compare.scores(one, each)["nll"] for each in (rows, permuted)]
    assert nll[0] < nll[1]
