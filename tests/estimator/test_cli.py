"""The command: what it prints, what it writes, how it refuses."""

import sys
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from typer.testing import CliRunner

from gpclf.cli import app, demo
from gpclf.report import scores

METHODS = ("gpclf", "logistic regression", "scikit-learn GP")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def row(output, name, method):
    """The figures that the table has for a data set and a method."""
    line = next(x for x in output.splitlines() if x.startswith(name) and method in x)
    return [float(figure) for figure in line.split(method)[1].split()]


def test_the_version_is_the_packages():
    project = Path(__file__).parents[2] / "pyproject.toml"
    version = tomllib.loads(project.read_text())["project"]["version"]
    assert run("--version").stdout == f"gpclf {version}\n"


def test_without_arguments_help_names_the_subcommands():
    assert "demo" in run().output
    assert run("demo", "--help").exit_code == 0


@pytest.mark.parametrize("digits", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_the_demo_prints_its_table_and_writes_its_pictures(digits, tmp_path, monkeypatch):
    sets = {"digits": partial(load_digits, n_class=digits), "breast cancer": load_breast_cancer}
    assert demo.DATA_SETS.keys() == sets.keys()
    monkeypatch.setattr(demo, "DATA_SETS", sets)
    folder = tmp_path / "new" / "folder"
    result = run("demo", "--quick", "--output", folder)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for name, load in sets.items():
        training_rows = len(load().target) * 3 // 4
        for method in METHODS:
            used, accuracy, nll, brier, ece, _ = row(result.stdout, name, method)
            assert used == (150 if method == "scikit-learn GP" else training_rows)
            assert accuracy > (0.93 if method == "gpclf" else 0.8)
            assert 0 < nll < (0.2 if method == "gpclf" else 1.5)
            assert 0 < brier <= 2
            assert 0 < ece <= 1
    for picture in ("decision-surface.png", "reliability.png"):
        assert str(folder / picture) in result.stdout.splitlines()
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def uniform(classifier, problem, rows):
    """Stands for a fit: each class has the same probability."""
    n_classes = problem.y_test.max() + 1
    log_p = np.full((len(problem.y_test), n_classes), -np.log(n_classes))
    return demo.Result(rows, 0.0, log_p, scores(log_p, problem.y_test))


def test_without_matplotlib_the_table_still_comes_in_80_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_run", uniform)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--quick", "--output", tmp_path)
    *table, sentence = result.stdout.splitlines()
    assert result.exit_code == 0
    assert row(result.stdout, "digits", "gpclf")[:3] == [1347, 0.1, 2.303]
    assert max(map(len, table)) <= 80
    assert "…" not in result.stdout
    assert sentence == 'Pictures need matplotlib: pip install "gpclf[plot]".'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("per_cube", "rows"), [(1e-3, 31), (1e-6, 310), (1e-12, 1347)])
def test_the_rival_gets_the_rows_that_half_a_minute_allows(per_cube, rows, monkeypatch):
    """Where a fit of n rows takes exactly `per_cube`·n³ seconds, n is cbrt(30 / `per_cube`)."""
    clock = [0.0]

    def fit(classifier, problem, n):
        clock[0] += per_cube * n**3

    monkeypatch.setattr(demo, "_fit", fit)
    monkeypatch.setattr(demo.time, "perf_counter", lambda: clock[0])
    X, y = np.zeros((1347, 1)), np.zeros(1347, int)
    assert demo._affordable(None, demo.Problem(X, X, y, y)) == rows


def refuse(*arguments):
    raise AssertionError("work was done")


@pytest.mark.parametrize("below", ["", "folder"])
def test_an_output_that_is_a_file_is_refused_before_any_work(below, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "train_test_split", refuse)
    file = tmp_path / "file"
    file.write_text("precious")
    result = run("demo", "--output", file / below)
    assert result.exit_code == 2
    assert result.stderr == f"Cannot write into {file / below}: name a folder with --output.\n"
    assert result.stdout == ""
    assert file.read_text() == "precious"


@pytest.mark.parametrize("arguments", [("--seed", "-1"), ("--seed", "one"), ("--no-such",)])
def test_bad_options_are_refused_before_any_work(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "train_test_split", refuse)
    result = run("demo", "--output", tmp_path / "folder", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
