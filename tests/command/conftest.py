"""A small table with error bars, and a model that learned from it in a second."""

import csv
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpclf import GPClassifier
from gpclf.cli import app

QUICK = ("--max-epochs", "3", "--inference", "natural", "--n-inducing", "12")
SMALL = {"n_inducing": 12, "inference": "natural", "max_epochs": 3}
ROWS = 60


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def lines():
    """The first lines of the table that ships with the package."""
    return files("gpclf.cli").joinpath("sources.csv").read_text().splitlines()[: ROWS + 1]


def rows():
    return list(csv.DictReader(lines()))


def write(path, header, body):
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([header, *body])


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A folder with sources.csv, and the model of it with and without errors."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "sources.csv").write_text("\n".join(lines()) + "\n")
    label = ("--label", "class", "-q", "--debug", *QUICK)
    plain = run("fit", folder / "sources.csv", "-o", folder / "plain.gpclf", *label)
    assert plain.output == ""
    noisy = ("--errors-suffix", "_err", "-o", folder / "sources.gpclf")
    assert run("fit", folder / "sources.csv", *noisy, *label).exit_code == 0
    return folder


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    """The same files in a folder of the test's own, which is the working directory."""
    for each in fitted.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "new.csv").write_text("\n".join(lines()[:31]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quicker(monkeypatch):
    """Models that learn less than a reader's: here it is enough that it runs."""

    def quick(likelihood, kernel, *_, **options):
        return GPClassifier(likelihood, kernel, **(options | SMALL))

    monkeypatch.setattr("gpclf.cli.fit.GPClassifier", quick)
    monkeypatch.setattr("gpclf.cli.demo.GPClassifier", lambda **_: GPClassifier(**SMALL))
    monkeypatch.setattr("gpclf.cli.demo.shipped", lambda: "\n".join(lines()).encode())
