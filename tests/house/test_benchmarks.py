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
