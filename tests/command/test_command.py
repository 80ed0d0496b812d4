"""The subcommands: what they print, write and keep, and that the examples of their help run."""

import csv
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from command.conftest import QUICK, rows, run
from gpclf import GPClassifier
from gpclf.cli import COMMANDS, sources
from gpclf.cli.evaluate import condition
from gpclf.cli.models import open_model, read_labelled
from gpclf.cli.options import Reading
from gpclf.cli.splits import folds, holdout
from gpclf.report import nll

LABEL = ("--label", "class", *QUICK)
EXAMPLES = [(command.__name__, text) for command in COMMANDS for text in command.examples]
EXAMPLES.remove(("demo", "gpclf demo --quick"))  # test_demo.py runs it
COMMANDS_BY_NAME = {command.__name__: command for command in COMMANDS}
CONFIG = """
label = "class"
errors = {flux = "flux_err", slope = "slope_err"}
drop = ["curvature_err", "first_seen"]
n-inducing = 10
max_epochs = 2
inference = "natural"
"""


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=[text for _, text in EXAMPLES])
def test_every_example_of_the_help_runs(command, example, here, quicker):
    (here / "fit.toml").write_text(CONFIG)
    words, stdin = shlex.split(example), None
    if words[0] == "cat":
        stdin, words = (here / words[1]).read_bytes(), words[3:]
    assert words[:2] == ["gpclf", command]
    result = run(*words[1:], stdin=stdin)
    assert result.exit_code == 0, result.output
    for option in ("-o", "--output"):
        if option in words:
            assert (here / words[words.index(option) + 1]).stat().st_size > 100


def test_every_command_has_an_example_in_its_help():
    for command in COMMANDS:
        shown = " ".join(run(command.__name__, "--help").output.split())
        assert "Examples:" in shown
        assert all(" ".join(text.split())[:60] in shown for text in command.examples)


@pytest.mark.parametrize("command", COMMANDS_BY_NAME)
def test_the_help_has_each_heading_once_and_leaves_lines_to_the_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(command, "--help").output.splitlines()
    headings = [line for line in shown if line.startswith("╭")]
    assert len(headings) == len(set(headings))
    assert not any(re.search(r"--(quiet|json|quick) .*<bool>", line) for line in shown)
    assert "range" not in " ".join(shown)
    about = [" ".join(part.split()) for part in COMMANDS_BY_NAME[command].__doc__.split("\n\n")]
    assert about == COMMANDS_BY_NAME[command].__doc__.split("\n\n")


def test_without_arguments_help_names_the_subcommands():
    shown = run().output
    assert all(command.__name__ in shown for command in COMMANDS)
    assert "--install-completion" in shown


def test_the_version_is_the_packages():
    project = Path(__file__).parents[2] / "pyproject.toml"
    version = tomllib.loads(project.read_text())["project"]["version"]
    assert run("--version").stdout == f"gpclf {version}\n"


def test_the_module_is_the_command_and_colours_are_for_terminals_only(here):
    done = subprocess.run(
        [sys.executable, "-m", "gpclf", "info", "plain.gpclf"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Softmax()" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_fit_says_what_it_takes_each_column_for(here):
    result = run("fit", "sources.csv", *LABEL, "--errors-suffix", "_err", "-o", "m.gpclf")
    assert result.exit_code == 0
    assert result.stdout == ""
    said = result.stderr
    assert re.search(r"name +left out +60 +identifier", said)
    assert re.search(r"slope +number .* ± slope_err", said)
    assert re.search(r"radio +category .* missing: a category", said)
    assert re.search(r"first_seen +date → number .* days since 1970-01-01", said)
    assert "m.gpclf: learned from 60 rows in " in said


def test_columns_that_look_like_errors_are_pointed_out(here):
    said = run("fit", "sources.csv", *LABEL).stderr
    assert "Columns that end in _err may be measurement errors: --errors-suffix _err" in said


def test_a_quiet_fit_says_nothing(here):
    result = run("fit", "sources.csv", *LABEL, "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert (here / "model.gpclf").exists()


def test_the_model_keeps_notes_of_its_making(here):
    (here / "fit.toml").write_text(CONFIG)
    run("fit", "sources.csv", "--config", "fit.toml", "--max-epochs", "3", "--seed", "4", "-q")
    notes = GPClassifier.load("model.gpclf").notes_
    assert notes["label"]["name"] == "class"
    assert sum(notes["label"]["classes"].values()) == notes["rows"] == 60
    assert [each["name"] for each in notes["features"]] == ["flux", "slope", "curvature", "radio"]
    assert notes["dropped"][0]["name"] == "name"
    assert notes["errors"] == {"flux": "flux_err", "slope": "slope_err"}
    assert notes["settings"]["max_epochs"] == "3"  # the command line wins
    assert notes["settings"]["n_inducing"] == "10"
    assert notes["settings"]["seed"] == 4
    assert GPClassifier.load("model.gpclf").get_params()["n_inducing"] == 10


def test_the_same_fit_in_python_gives_the_same_probabilities(here):
    opened = open_model("sources.gpclf")
    found = read_labelled(opened, "sources.csv", Reading())
    clf = GPClassifier(n_inducing=12, inference="natural", max_epochs=3, random_state=0)
    clf.fit(found.X, found.y, X_std=found.X_std)
    given = opened.clf.predict_proba(found.X, X_std=found.X_std)
    np.testing.assert_array_equal(given, clf.predict_proba(found.X, X_std=found.X_std))


@pytest.mark.parametrize("how", [("--holdout", "0.3"), ("--cv", "3")])
def test_a_fit_scores_itself_beside_two_rivals(how, here):
    result = run("fit", "sources.csv", *LABEL, *how, "--json", "-q")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    ((name, scores),) = found["scores"].items()
    assert name == ("19 rows held out" if "--holdout" in how else "60 rows in 3 folds")
    assert list(scores) == ["gpclf", "logistic regression", "boosting, calibrated"]
    for each in scores.values():
        assert 0 < each["nll"]["low"] <= each["nll"]["value"] <= each["nll"]["high"] < 2
    assert found["rows"] == (41 if "--holdout" in how else 60)
    shown = run("info", "model.gpclf")
    assert f"Scores on {name}" in shown.stdout, shown.output


def test_scores_of_rows_held_out_are_those_of_the_model_itself(here):
    run("fit", "sources.csv", *LABEL, "--holdout", "0.3", "--no-rivals", "-q")
    opened = open_model("model.gpclf")
    y = np.array([row["class"] for row in rows()])
    _, index = np.unique(y, return_inverse=True)
    split = holdout(0.3, index, 0, None, None)
    found = read_labelled(opened, "sources.csv", Reading())
    logs = opened.clf.predict_log_proba(found.X.take(pa.array(split.test)))
    (scores,) = opened.notes["scores"].values()
    assert scores["gpclf"]["nll"]["value"] == pytest.approx(nll(logs, index[split.test]))


def test_splits_keep_groups_whole_and_time_in_order():
    rng = np.random.default_rng(0)
    y, group, time = rng.integers(3, size=200), rng.integers(20, size=200), rng.normal(size=200)
    for train, test in [holdout(0.25, y, 0, group, None), *folds(4, y, 0, group, None)]:
        assert not set(group[train]) & set(group[test])
    for train, test in [holdout(0.25, y, 0, None, time), *folds(4, y, 0, None, time)]:
        assert time[train].max() < time[test].min()
    for train, test in [holdout(0.25, y, 0, None, None), *folds(4, y, 0, None, None)]:
        assert np.abs(np.bincount(y[test]) / len(test) - np.bincount(y) / 200).max() < 0.03
        assert len(np.intersect1d(train, test)) == 0
    assert sorted(np.concatenate([test for _, test in folds(4, y, 0, None, None)])) == [*range(200)]


def test_evaluate_gives_the_librarys_scores_and_exit_codes_for_pipelines(here):
    given = ("evaluate", "plain.gpclf", "new.csv", "--json")
    passed = run(*given, "--fail-if", "nll>99")
    assert passed.exit_code == 0
    found = json.loads(passed.stdout)
    opened = open_model("plain.gpclf")
    read = read_labelled(opened, "new.csv", Reading())
    _, index = np.unique(read.y, return_inverse=True)
    wanted = nll(opened.clf.predict_log_proba(read.X), index)
    assert found["scores"]["gpclf"]["nll"]["value"] == pytest.approx(wanted)
    assert (found["rows"], found["failed"]) == (30, [])
    failed = run(*given, "--fail-if", "nll>0.001", "--fail-if", "accuracy < 0")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["failed"] == ["nll>0.001"]
    assert failed.stderr == f"Failed: nll>0.001, nll is {wanted:.4g}.\n"


def test_evaluate_shows_rivals_where_it_has_training_rows(here):
    alone = run("evaluate", "sources.gpclf", "new.csv")
    assert "--train" in alone.stderr
    beside = run("evaluate", "sources.gpclf", "new.csv", "--train", "sources.csv")
    assert re.search(r"gpclf +logistic regression +boosting, calibrated", beside.stdout)
    for score in ("log-loss", "Brier", "accuracy", "AUC", "ECE"):
        assert re.search(rf"{score} +\d\.\d+ \(\d\.\d+–\d\.\d+\)", beside.stdout)


@pytest.mark.parametrize(
    ("text", "metric", "value", "holds"),
    [
        ("nll>0.3", "nll", 0.31, True),
        ("log-loss >= 0.3", "nll", 0.3, True),
        ("accuracy<0.9", "accuracy", 0.9, False),
        ("ece <= 1e-2", "ece", 0.005, True),
    ],
)
def test_conditions(text, metric, value, holds):
    from gpclf.report import Interval

    assert condition(text).holds({metric: Interval(value, 0, 1)}) is holds


@pytest.mark.parametrize(
    ("suffix", "model"),
    [
        ("csv", "plain.gpclf"),
        ("tsv", "plain.gpclf"),
        ("jsonl", "plain.gpclf"),
        ("parquet", "sources.gpclf"),
        ("arrow", "plain.gpclf"),
    ],
)
def test_predictions_are_the_librarys_in_every_format(suffix, model, here, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 31)
    out = here / f"out.{suffix}"
    result = run("predict", model, "sources.csv", "-o", out, "--keep", "name,flux")
    assert result.exit_code == 0, result.output
    opened = open_model(model)
    read = read_labelled(opened, "sources.csv", Reading())
    p = opened.clf.predict_proba(read.X, X_std=read.X_std)
    (found,) = [pa.concat_tables(sources.source(str(out), Reading()).blocks())]
    names = ["name", "flux", "class", "p_BL Lac", "p_pulsar", "p_quasar"]
    parts = ["uncertainty_total", "uncertainty_data", "uncertainty_model"]
    assert found.column_names == names + parts
    assert found["name"].to_pylist() == [row["name"] for row in rows()]
    for c, name in enumerate(opened.clf.classes_):
        numbers = found[f"p_{name}"].cast(pa.float64()).to_numpy()
        np.testing.assert_allclose(numbers, p[:, c], rtol=1e-12)
    assert found["class"].to_pylist() == opened.clf.predict(read.X, X_std=read.X_std).tolist()
    model = opened.clf.uncertainty(read.X, X_std=read.X_std).model
    np.testing.assert_allclose(found[parts[2]].cast(pa.float64()).to_numpy(), model, atol=1e-12)


def test_what_is_written_can_be_chosen(here):
    def header(*options):
        printed = run("predict", "plain.gpclf", "new.csv", *options).stdout
        return next(csv.reader(printed.splitlines()))

    assert header("--proba-columns", "none", "--no-uncertainty") == ["class"]
    assert header("--proba-columns", "quasar", "--no-uncertainty") == ["class", "p_quasar"]
    assert header("--keep", "name", "--no-uncertainty", "--proba-columns", "none")[0] == "name"


def test_errors_may_be_the_usual_ones(here):
    table = [{k: v for k, v in row.items() if not k.endswith("_err")} for row in rows()[:30]]
    pa.parquet.write_table(pa.Table.from_pylist(table), "bare.parquet")
    result = run("predict", "sources.gpclf", "bare.parquet", "--typical-errors")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 31


def test_a_model_from_python_is_read_by_its_names_or_by_the_number_of_its_columns(here):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    quick = {"n_inducing": 8, "max_epochs": 2, "inference": "natural", "random_state": 0}
    table = pa.table({"b": X[:, 1], "y": y, "a": X[:, 0]})
    pa.parquet.write_table(table, "t.parquet")
    clf = GPClassifier(**quick).fit(table.select(["a", "b"]), y)
    clf.save("named.gpclf")
    printed = run("predict", "named.gpclf", "t.parquet", "--no-uncertainty").stdout
    p = np.loadtxt(printed.splitlines()[1:], delimiter=",")[:, 1:]
    np.testing.assert_allclose(p, clf.predict_proba(table.select(["a", "b"])))
    GPClassifier(**quick).fit(X, y).save("plain.gpclf")
    refused = run("predict", "plain.gpclf", "t.parquet")
    assert "was trained on 2 columns without names, but t.parquet has 3" in refused.stderr
    scored = run("evaluate", "plain.gpclf", "t.parquet", "--label", "y", "--json")
    assert scored.exit_code == 0, scored.output
    assert "saved without notes" in run("info", "named.gpclf").stdout


def test_info_for_machines_has_what_people_see(here):
    found = json.loads(run("info", "sources.gpclf", "--json").stdout)
    assert found["classes"] == ["BL Lac", "pulsar", "quasar"]
    assert sum(each["relevance"] for each in found["features"]) == pytest.approx(1)
    assert found["notes"]["data"] == "sources.csv"


def test_a_method_that_cannot_learn_from_the_table_is_left_out_of_a_comparison(here, quicker):
    quick = ("--n-inducing", "10", "--max-epochs", "2", "--cv", "2", "--rivals", "none")
    given = ("compare", "sources.csv", "--label", "class", "--likelihoods", "logit")
    result = run(*given, *quick, "--json")
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)["scores"]) == ["gpclf"]
    assert "gpclf, logit is left out: " in result.stderr


def test_labels_of_other_kinds_come_back_as_they_were(here):
    table = [row | {"class": row["class"] == "pulsar"} for row in rows()]
    pa.parquet.write_table(pa.Table.from_pylist(table), "flags.parquet")
    assert run("fit", "flags.parquet", *LABEL, "-q").output == ""
    assert GPClassifier.load("model.gpclf").classes_.tolist() == ["false", "true"]
    assert run("evaluate", "model.gpclf", "flags.parquet").exit_code == 0
    table = [row | {"class": float(row["class"] == "pulsar")} for row in rows()]
    pa.parquet.write_table(pa.Table.from_pylist(table), "numbers.parquet")
    assert run("fit", "numbers.parquet", *LABEL, "-q").output == ""
    assert GPClassifier.load("model.gpclf").classes_.tolist() == [0, 1]


def test_rows_without_a_label_may_be_dropped(here):
    table = rows()
    table[3]["class"] = ""
    pa.parquet.write_table(pa.Table.from_pylist(table), "gap.parquet")
    (here / "gap.csv").write_text((here / "sources.csv").read_text().replace("BL Lac", "", 1))
    result = run("fit", "gap.csv", *LABEL, "--drop-unlabelled")
    assert result.exit_code == 0, result.output
    assert "1 rows without a label are left out" in result.stderr
    assert open_model("model.gpclf").notes["unlabelled"] == 1
