"""The bar of a notebook: one output that is written anew, and no widgets are asked for."""

import sys
from types import ModuleType

import pytest
from sklearn.datasets import load_iris

from gpclf import GPClassifier
from gpclf.estimators import notebook_bar, progress

QUICK = {"n_inducing": 10, "inference": "natural", "max_epochs": 2, "random_state": 0}


class Output:
    """What a cell shows, and all that it showed before."""

    def __init__(self):
        self.shown = []

    def update(self, bundle, raw):
        assert raw
        self.shown.append(bundle)


@pytest.fixture
def cell(monkeypatch):
    """A notebook that shows one output."""
    output = Output()

    def display(bundle, raw, display_id):
        assert raw
        assert display_id
        assert not output.shown
        output.update(bundle, raw)
        return output

    module = ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    parent = ModuleType("IPython")
    parent.version_info = (9, 0)  # type: ignore[attr-defined]  # matplotlib looks
    monkeypatch.setitem(sys.modules, "IPython", parent)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return output.shown


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_fit_and_a_report_draw_a_bar_in_a_cell(verbose, cell, capsys, monkeypatch):
    monkeypatch.setattr(notebook_bar, "EVERY", 0.0)
    X, y = load_iris(return_X_y=True)
    clf = GPClassifier(**QUICK, verbose=verbose).fit(X, y)
    during = cell[-2]
    assert "ELBO per row" in during["text/plain"]
    assert "posterior" in " ".join(each["text/plain"] for each in cell)
    assert during["text/html"].startswith("<pre")
    assert "━" in during["text/html"]
    assert ("ELBO" in cell[-1]["text/plain"]) == (verbose == 2)  # else it vanishes
    cell.clear()
    clf.report(X[:30])
    assert any("importance of features" in each["text/plain"] for each in cell)
    assert capsys.readouterr().out == ""


def test_pictures_are_not_drawn_more_often_than_eyes_see(cell, monkeypatch):
    monkeypatch.setattr(notebook_bar, "EVERY", 3600.0)
    with progress.stages(1, None) as tell:
        for done in range(100):
            tell("working", done / 100)
    assert len(cell) <= 3


def test_outside_a_notebook_there_is_none():
    assert not notebook_bar.in_notebook()
    assert type(progress.bar_of(transient=True)) is progress.Bar
