"""The tour: what it prints, what it writes, how it refuses."""

import re
from importlib.resources import files

import pytest

from command.conftest import run

METHODS = ("gpclf", "logistic regression", "boosting, calibrated", "scikit-learn GP")


def test_the_tour_runs_what_it_prints_and_compares_on_rows_left_out(here, quicker):
    result = run("demo", "--quick")
    assert result.exit_code == 0, result.output
    told = [line.split()[2] for line in result.stderr.splitlines() if line.startswith("$ gpclf")]
    assert told == ["fit", "predict"]
    assert "60 rows in 3 folds: each scored by models that have not seen it" in result.stdout
    assert re.search(" +".join(METHODS), result.stdout)
    nll = re.search(r"log-loss((?: +\d\.\d+ \([^)]*\)){4})", result.stdout)
    assert nll is not None
    folder = here / "gpclf-demo"
    assert len((folder / "scores.csv").read_text().splitlines()) == 61
    assert (folder / "sources.gpclf").exists()
    for picture in ("decision-surface.png", "reliability.png"):
        assert f"gpclf-demo/{picture}" in result.stdout.splitlines()
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_the_table_that_ships_is_small_and_has_what_the_guide_shows():
    content = files("gpclf.cli").joinpath("sources.csv").read_text()
    assert len(content) < 60_000
    header, *body = content.splitlines()
    assert header.split(",")[-1] == "class"
    assert len(body) == 600
    assert {line.split(",")[-1] for line in body} == {"BL Lac", "quasar", "pulsar"}
    assert any(",," in line for line in body)


@pytest.mark.parametrize("below", ["", "folder"])
def test_an_output_that_is_a_file_is_refused_before_any_work(below, tmp_path):
    file = tmp_path / "file"
    file.write_text("precious")
    result = run("demo", "--output", file / below)
    assert result.exit_code == 2
    assert (
        result.stderr == f"Error: Cannot write into {file / below}: name a folder with --output.\n"
    )
    assert result.stdout == ""
    assert file.read_text() == "precious"


@pytest.mark.parametrize("arguments", [("--seed", "-1"), ("--seed", "one"), ("--no-such",)])
def test_bad_options_are_refused_before_any_work(arguments, tmp_path):
    result = run("demo", "--output", tmp_path / "folder", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
