"""`clf.report`, `gpclf report` and the notebook's table, of classifiers that were fitted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from gpclf import GPClassifier
from gpclf.cli import app
from gpclf.estimators import notebook
from gpclf.report import nll

QUICK = {"n_inducing": 10, "max_epochs": 2, "inference": "natural", "random_state": 0}
SCRIPT = "<script>alert(1)</script>"


def rows_with_words(n_rows=90, seed=0):
    """Numbers with gaps, words with gaps, and three classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["size", SCRIPT])
    X["colour"] = np.array(["red", "green", SCRIPT, None], dtype=object)[rng.integers(0, 4, n_rows)]
    X.loc[::7, "size"] = np.nan
    y = np.where(X[SCRIPT] > 0.5, "big", np.where(X["colour"] == "red", "red", SCRIPT))
    return X, y


@pytest.fixture(scope="module")
def words():
    X, y = rows_with_words()
    return GPClassifier(**QUICK).fit(X, y), X, y


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    std = 0.2 * np.abs(X)
    y = X[:, 0] + 0.3 * rng.normal(size=60) > 0
    return GPClassifier(**QUICK).fit(X, y, X_std=std), X, y, std


def test_the_scores_are_those_of_its_predictions(words):
    clf, X, y = words
    index = np.searchsorted(clf.classes_, y)
    found = clf.report(X, y).figures
    assert found["judged"]["scores"]["nll"]["value"] == nll(clf.predict_log_proba(X), index)
    assert found["features"] == ["size", SCRIPT, "colour"]
    assert found["seen_before"]


def test_names_and_values_of_the_table_are_text(words):
    clf, X, y = words
    page = clf.report(X, y, title=SCRIPT).html
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_notes_of_a_model_are_on_its_card_whatever_they_are(words, tmp_path):
    clf, X, _ = words
    scores = {"held out": {"gpclf": {"nll": {"value": 0.25, "low": None, "high": None}}}}
    notes = {"label": {"name": "kind of star"}, "data": "stars.csv", "scores": scores}
    clf.save(tmp_path / "known.gpclf", notes | {"dropped": [{"name": "row number"}]})
    page = GPClassifier.load(tmp_path / "known.gpclf").report(X).html
    for told in ("kind of star", "stars.csv", "log-loss 0.250", "row number"):
        assert told in page
    clf.save(tmp_path / "odd.gpclf", {"label": [1], "scores": [SCRIPT], "dropped": {"a": 1}})
    assert "<script" not in GPClassifier.load(tmp_path / "odd.gpclf").report(X).html


def test_any_frame_gives_the_same_page(words):
    clf, X, _ = words
    assert clf.report(X).html == clf.report(pl.from_pandas(X)).html


def test_a_model_from_a_file_gives_the_same_page(words, tmp_path):
    clf, X, _ = words
    clf.save(tmp_path / "model.gpclf")
    loaded = GPClassifier.load(tmp_path / "model.gpclf")
    clf.report(X, path=tmp_path / "one.html")
    loaded.report(X, path=tmp_path / "two.html")
    one, two = ((tmp_path / f"{name}.html").read_bytes() for name in ("one", "two"))
    assert one == two
    assert len(list(tmp_path.iterdir())) == 3


def test_values_that_no_training_row_had_are_told(words):
    clf, X, y = words
    page = clf.report(X.assign(colour="blue"), y).html
    assert "has values that no training row had" in page


@pytest.mark.usefixtures("few_places")
def test_errors_of_the_rows_count(noisy):
    clf, X, y, std = noisy
    found, exact = clf.report(X, y, std), clf.report(X, y, 0)
    assert "errors of the rows are counted in" in found.html
    assert "errors of the rows are counted in" not in exact.html
    own = nll(clf.predict_log_proba(X, std), y.astype(int))
    assert found.figures["judged"]["scores"]["nll"]["value"] == pytest.approx(own)
    assert found.figures["judged"]["scores"] != exact.figures["judged"]["scores"]
    assert found.figures["features"] == ["feature 0", "feature 1"]


def test_a_bar_is_for_those_who_asked_for_one(words, capsys):
    clf, X, _ = words
    clf.report(X)
    assert capsys.readouterr().out == ""
    clf.set_params(verbose=2).report(X)
    clf.set_params(verbose=0)
    assert "done" in capsys.readouterr().out


def test_what_cannot_be_reported_on_is_told_in_a_sentence(words, tmp_path):
    clf, X, y = words
    for wrong, sentence in (
        ((X, np.where(y == "big", "huge", y)), "label huge, which is not among the classes"),
        ((X.iloc[:0], y[:0]), "X has no rows"),
        ((X, y[:5]), "inconsistent numbers of samples"),
        ((X, [None, *y[1:]]), "missing label in row 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            clf.report(*wrong)
    with pytest.raises(FileNotFoundError, match="make it first"):
        clf.report(X, path=tmp_path / "none" / "page.html")


def test_a_notebook_shows_a_table_after_the_fit(words):
    clf = words[0]
    before, after = GPClassifier()._repr_html_(), clf._repr_html_()
    assert "Relevance" not in before
    for words_of_it in ("As fitted", "Classes", "Kernel", "Relevance", "Score of rows left out"):
        assert words_of_it in after
    assert "&lt;script&gt;" in after
    assert SCRIPT not in after
    bundle = clf._repr_mimebundle_()
    assert "As fitted" in bundle["text/html"]
    assert bundle["text/plain"] == repr(clf)


def test_where_no_row_can_be_left_out_the_bound_is_shown(noisy):
    assert noisy[0].loo_score_ is None
    assert "Bound per row" in noisy[0]._repr_html_()


def test_display_as_text_and_pipelines_work_as_they_do_in_scikit_learn(words):
    clf = words[0]
    with config_context(display="text"):
        assert "text/html" not in clf._repr_mimebundle_()
        assert not hasattr(clf, "_repr_html_")
    assert "GPClassifier" in make_pipeline(StandardScaler(), clf)._repr_html_()


def test_parameters_are_linked_to_the_documentation_of_the_package(monkeypatch):
    monkeypatch.setattr(notebook, "documentation", lambda: "https://docs.example/reference/")
    shown = GPClassifier()._repr_html_()
    assert 'href="https://docs.example/reference/' in shown


def test_the_documentation_is_where_the_package_says(monkeypatch):
    class Metadata:
        def get_all(self, name):
            return ["Source, https://code.example", "Documentation, https://docs.example/"]

    monkeypatch.setattr(notebook, "metadata", lambda name: Metadata())
    notebook.documentation.cache_clear()
    assert notebook.documentation() == "https://docs.example/reference/"
    notebook.documentation.cache_clear()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A model and tables, in the folder of the command."""
    monkeypatch.chdir(tmp_path)
    X, y = rows_with_words()
    X = X.rename(columns={SCRIPT: "weight"}).fillna({"colour": "none"})
    clf = GPClassifier(**QUICK).fit(X, y)
    clf.save("model.gpclf")
    X.assign(kind=y).to_csv("rows.csv", index=False)
    X.drop(columns="size").to_csv("narrow.csv", index=False)
    return tmp_path


def command(*words):
    return CliRunner().invoke(app, ["report", *words])


def test_the_command_writes_a_page(files):
    done = command("model.gpclf", "rows.csv", "--label", "kind", "-o", "page.html", "--seed", "3")
    assert done.exit_code == 0, done.output
    page = (files / "page.html").read_text()
    assert 'id="confusion"' in page
    done = command("model.gpclf", "rows.csv", "--date", "2030-01-31", "--title", "What is red?")
    assert done.exit_code == 0, done.output
    page = (files / "report.html").read_text()
    assert 'id="confusion"' not in page  # the model has no notes of the label's name
    assert "What is red?" in page
    assert "2030-01-31" in page


@pytest.mark.parametrize(
    ("words_given", "sentence"),
    [
        (("model.gpclf", "narrow.csv"), "narrow.csv has no column 'size'"),
        (("model.gpclf", "rows.csv", "-o", "page.txt"), "must end in .html"),
        (("model.gpclf", "rows.csv", "-o", "none/page.html"), "make it first"),
        (("model.gpclf", "rows.csv", "--label", "colour"), "not among the classes"),
        (("model.gpclf", "nothing.csv"), "There is no file nothing.csv"),
    ],
)
def test_mistakes_of_the_command_are_sentences_and_leave_nothing(files, words_given, sentence):
    before = sorted(files.iterdir())
    done = command(*words_given)
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())
    assert sorted(files.iterdir()) == before
