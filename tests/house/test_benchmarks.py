"""The benchmarks are run by hand and seldom: at least each of them can begin."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
ELSEWHERE = {"rival_gpflow", "rival_gpytorch"}  # run in environments of their own
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ELSEWHERE)
NAMES += sorted(f"papers.{path.stem}" for path in FOLDER.glob("papers/[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert importlib.import_module(name).__doc__
