"""Every mistake is one sentence that names its place, exit code 2, and nothing half-written."""

import csv
import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from command.conftest import QUICK, ROWS, lines, rows, run, write
from gpclf import storage
from gpclf.cli.errors import sentence

FIT = ("--label", "class", "-o", "out.gpclf", *QUICK)
PREDICT = ("-o", "out.csv")
NOISE = ("--errors-suffix", "_err")


def changed(path, row, column, value):
    """The table with one cell changed; rows count from 1."""
    table = rows()
    table[row - 1][column] = value
    write(path, table[0], [each.values() for each in table])


def renamed(path, **names):
    """The table with other names for columns."""
    header = [names.get(name, name) for name in rows()[0]]
    write(path, header, [each.values() for each in rows()])


def of_many_values(path, count):
    write(path, ("x", "class"), [(i % 7, i) for i in range(count)])


def text(content, path="bad.csv"):
    return lambda: Path(path).write_bytes(content.encode() if isinstance(content, str) else content)


def newer():
    header, arrays = storage.read("plain.gpclf")
    del header["format"]
    before, storage.FORMAT = storage.FORMAT, 99
    try:
        storage.write("newer.gpclf", header, arrays)
    finally:
        storage.FORMAT = before


def cut_off():
    content = Path("plain.gpclf").read_bytes()
    Path("cut.gpclf").write_bytes(content[: len(content) // 2])


def nothing():
    """The mistake is in the arguments."""


MISTAKES = {
    "no such file": (nothing, ("fit", "no.csv", *FIT), "There is no file no.csv."),
    "no such label": (
        nothing,
        ("fit", "sources.csv", "--label", "clas"),
        "sources.csv has no column 'clas' (--label): is it 'class'?",
    ),
    "a label of 5,000 values": (
        lambda: of_many_values("bad.csv", 5000),
        ("fit", "bad.csv", *FIT),
        "bad.csv: the label 'class' has 5,000 values in 5,000 rows, as an amount has: a classifier "
        "needs a few classes, so name another column or group its values.",
    ),
    "an amount as label": (
        lambda: write("bad.csv", ("x", "class"), [(i % 7, (i % 25) / 8) for i in range(200)]),
        ("fit", "bad.csv", *FIT),
        "bad.csv: the label 'class' has 25 numbers with a fraction",
    ),
    "an empty file": (text(""), ("fit", "bad.csv", *FIT), "bad.csv is empty."),
    "a header alone": (
        text("x,class\n"),
        ("fit", "bad.csv", *FIT),
        "bad.csv has a header but no rows.",
    ),
    "a ragged table": (
        text("x,class\n1,a\n\n2,b\n3,c,d\n"),
        ("fit", "bad.csv", *FIT),
        "bad.csv has 3 values in line 5, where its header has 2 columns.",
    ),
    "another encoding": (
        text("x,class\n1,a\n2,caf\xe9\n".encode("latin-1")),
        ("fit", "bad.csv", *FIT),
        "bad.csv has the byte 0xe9 in line 3, which is not UTF-8: give --encoding, for example "
        "latin-1.",
    ),
    "UTF-16": (
        text("x,class\n1,a\n".encode("utf-16")),
        ("fit", "bad.csv", *FIT),
        "bad.csv is in UTF-16: give --encoding utf-16.",
    ),
    "no header": (
        text("0.5,1.5,a\n2.5,0.25,b\n"),
        ("fit", "bad.csv", *FIT),
        "bad.csv begins with a line of numbers",
    ),
    "two columns of one name": (
        text("x,x,class\n1,2,a\n"),
        ("fit", "bad.csv", *FIT),
        "bad.csv has two columns named 'x'",
    ),
    "words where training had numbers": (
        lambda: changed("bad.csv", 17, "slope", "steep"),
        ("predict", "plain.gpclf", "bad.csv", *PREDICT),
        "bad.csv: column 'slope' has 'steep' in row 17, where numbers were expected.",
    ),
    "a word among numbers": (
        lambda: changed("bad.csv", 17, "slope", "steep"),
        ("fit", "bad.csv", *FIT),
        "bad.csv: column 'slope' has 'steep' in row 17, where nearly all values are numbers",
    ),
    "no date": (
        lambda: changed("bad.csv", 9, "first_seen", "spring"),
        ("predict", "plain.gpclf", "bad.csv", *PREDICT),
        "bad.csv: column 'first_seen' has 'spring' in row 9, where dates were expected.",
    ),
    "infinity": (
        lambda: changed("bad.csv", 2, "flux", "inf"),
        ("fit", "bad.csv", *FIT),
        "bad.csv: column 'flux' has infinity in row 2",
    ),
    "a column renamed": (
        lambda: renamed("bad.csv", slope="Slope"),
        ("predict", "plain.gpclf", "bad.csv", *PREDICT),
        "bad.csv has no column 'slope': is it 'Slope'?",
    ),
    "columns missing": (
        lambda: renamed("bad.csv", slope="a", radio="b"),
        ("evaluate", "plain.gpclf", "bad.csv"),
        "bad.csv has no columns 'slope', 'radio'; its columns are ",
    ),
    "errors missing": (
        lambda: renamed("bad.csv", flux_err="a"),
        ("predict", "sources.gpclf", "bad.csv", *PREDICT),
        "bad.csv has no column 'flux_err'",
    ),
    "a folder without files": (
        lambda: Path("folder").mkdir(),
        ("fit", "folder", *FIT),
        "The folder folder has no file of a table",
    ),
    "a format that nobody knows": (
        text("x", "bad.xyz"),
        ("fit", "bad.xyz", *FIT),
        "The format of bad.xyz is not known from its name: give --format",
    ),
    "a file that is not what its name says": (
        text("x,class\n1,a\n", "bad.parquet"),
        ("fit", "bad.parquet", *FIT),
        "bad.parquet cannot be read as parquet",
    ),
    "no JSON": (
        text('{"x": 1, "class": "a"}\n{"x": 2,\n', "bad.jsonl"),
        ("fit", "bad.jsonl", *FIT),
        "bad.jsonl has no JSON in line 2",
    ),
    "no place to write": (
        nothing,
        ("fit", "sources.csv", "--label", "class", "-o", "/proc/no/out.gpclf"),
        "There is no folder /proc/no: make it first.",
    ),
    "no permission to write": (
        nothing,
        ("predict", "plain.gpclf", "new.csv", "-o", "/proc/out.csv"),
        "/proc/out.csv cannot be written: ",
    ),
    "a full disk": (
        nothing,
        ("predict", "plain.gpclf", "new.csv", "-o", "/dev/full"),
        "No space is left on the disk of /dev/full: nothing was written.",
    ),
    "a model of a newer version": (
        newer,
        ("predict", "newer.gpclf", "new.csv", *PREDICT),
        "newer.gpclf has format 99, but this version of gpclf reads",
    ),
    "a model that is cut off": (
        cut_off,
        ("info", "cut.gpclf"),
        "cut.gpclf is damaged: its checksum is that of another content.",
    ),
    "no model": (nothing, ("info", "new.csv"), "new.csv is damaged or no model file of gpclf."),
    "a missing label": (
        lambda: changed("bad.csv", 5, "class", "NaN"),
        ("fit", "bad.csv", *FIT),
        "bad.csv: column 'class' has no label in row 5: label it, or drop such rows with "
        "--drop-unlabelled.",
    ),
    "a missing label to evaluate": (
        lambda: changed("bad.csv", 5, "class", ""),
        ("evaluate", "plain.gpclf", "bad.csv"),
        "bad.csv: column 'class' has no label in row 5",
    ),
    "a label that training did not have": (
        lambda: changed("bad.csv", 8, "class", "nova"),
        ("evaluate", "plain.gpclf", "bad.csv"),
        "bad.csv: the label 'nova' in row 8 is not among the classes of plain.gpclf (BL Lac, ",
    ),
    "one class": (
        lambda: write("bad.csv", ("x", "class"), [(i, "a") for i in range(30)]),
        ("fit", "bad.csv", *FIT),
        "bad.csv: the label 'class' has one value only",
    ),
    "a negative error": (
        lambda: changed("bad.csv", 12, "slope_err", "-0.1"),
        ("fit", "bad.csv", *FIT, *NOISE),
        "bad.csv: column 'slope_err' has -0.1 in row 12: the error of 'slope' is 0 or more",
    ),
    "no error of a value": (
        lambda: changed("bad.csv", 12, "slope_err", ""),
        ("fit", "bad.csv", *FIT, *NOISE),
        "bad.csv: column 'slope_err' has no value in row 12",
    ),
    "errors of no column": (
        nothing,
        ("fit", "sources.csv", *FIT, "--errors", "fluxx=flux_err"),
        "sources.csv has no column 'fluxx' (--errors): is it 'flux'?",
    ),
    "errors not understood": (
        nothing,
        ("fit", "sources.csv", *FIT, "--errors", "flux"),
        "--errors must be a list such as 'flux=flux_err,index=index_err', got 'flux'.",
    ),
    "errors of words": (
        nothing,
        ("fit", "sources.csv", *FIT, "--errors", "radio=flux_err"),
        "sources.csv: 'radio' holds words, which have no error",
    ),
    "a negative weight": (
        lambda: changed("bad.csv", 3, "flux_err", "-1"),
        ("fit", "bad.csv", *FIT, "--weight", "flux_err"),
        "bad.csv: column 'flux_err' has -1 in row 3: a weight is 0 or more.",
    ),
    "an unknown kernel": (
        nothing,
        ("fit", "sources.csv", *FIT, "--kernel", "rfb"),
        "There is no kernel named 'rfb': did you mean 'rbf'?",
    ),
    "an unknown likelihood": (
        nothing,
        ("fit", "sources.csv", *FIT, "--likelihood", "softmaxx"),
        "There is no likelihood named 'softmaxx': did you mean 'softmax'",
    ),
    "a likelihood for two classes": (
        nothing,
        ("fit", "sources.csv", *FIT, "--likelihood", "logit"),
        "",
    ),
    "an option that the file of options has wrong": (
        text('labell = "class"\n', "bad.toml"),
        ("fit", "sources.csv", "--config", "bad.toml"),
        "bad.toml: There is no option named 'labell': did you mean 'label'",
    ),
    "a value that the file of options has wrong": (
        text('label = "class"\ncv = "many"\n', "bad.toml"),
        ("fit", "sources.csv", "--config", "bad.toml"),
        "bad.toml: cv is 'many'",
    ),
    "no file of options": (
        text("label = \n", "bad.toml"),
        ("fit", "sources.csv", "--config", "bad.toml"),
        "bad.toml is no TOML file",
    ),
    "no label named": (
        nothing,
        ("fit", "sources.csv"),
        "Missing option '--label' / '-l' (see gpclf fit --help).",
    ),
    "no table named": (nothing, ("fit",), "Missing argument "),
    "an unknown option": (
        nothing,
        ("fit", "sources.csv", *FIT, "--no-such"),
        "No such option: --no-such",
    ),
    "an unknown command": (nothing, ("fitt",), "No such command 'fitt'"),
    "a word for a number": (
        nothing,
        ("fit", "sources.csv", *FIT, "--holdout", "some"),
        "Invalid value for '--holdout': ",
    ),
    "a seed that is none": (
        nothing,
        ("fit", "sources.csv", *FIT, "--seed", "-1"),
        "Invalid value for '--seed': -1 is not between 0 and 4294967295 (see gpclf fit --help).",
    ),
    "one fold": (
        nothing,
        ("compare", "sources.csv", "--label", "class", "--cv", "1"),
        "--cv must be at least 2, got 1.",
    ),
    "two ways to score": (
        nothing,
        ("fit", "sources.csv", *FIT, "--cv", "3", "--holdout", "0.2"),
        "--holdout and --cv are two ways to score: give one of them.",
    ),
    "a condition not understood": (
        nothing,
        ("evaluate", "plain.gpclf", "new.csv", "--fail-if", "loss>1"),
        "--fail-if must be a score, <, <=, > or >=, and a number, as 'nll>0.3', got 'loss>1'",
    ),
    "a class that is none": (
        nothing,
        ("predict", "plain.gpclf", "new.csv", *PREDICT, "--proba-columns", "nova"),
        "--proba-columns names 'nova', which is no class of plain.gpclf: they are BL Lac, ",
    ),
    "nothing to keep": (
        nothing,
        ("predict", "plain.gpclf", "new.csv", *PREDICT, "--keep", "id"),
        "new.csv has no column 'id'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_with_exit_code_2(name, here):
    prepare, arguments, words = MISTAKES[name]
    prepare()
    before = sorted(os.listdir())
    result = run(*arguments, "-q")
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {words}")
    assert line.endswith((".", "?"))
    assert result.stdout == ""
    assert sorted(os.listdir()) == before


def test_there_are_twenty_of_them():
    assert len(MISTAKES) >= 20


@contextmanager
def small_files(most):
    """No file may be larger, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("suffix", "most"), [("csv", 20_000), ("parquet", 2_000), ("jsonl", 20_000), ("arrow", 20_000)]
)
def test_a_disk_that_fills_up_leaves_the_old_file(suffix, most, here):
    table = rows()
    write("long.csv", table[0], [each.values() for each in table * 20])
    Path(f"out.{suffix}").write_text("precious")
    before = sorted(os.listdir())
    with small_files(most):
        result = run("predict", "plain.gpclf", "long.csv", "-o", f"out.{suffix}", "-q")
    assert result.exit_code == 2, result.output
    wanted = f"Error: out.{suffix} would be larger than is allowed: nothing was written.\n"
    assert result.stderr == wanted
    assert Path(f"out.{suffix}").read_text() == "precious"
    assert sorted(os.listdir()) == before


def test_a_model_that_does_not_fit_on_the_disk_leaves_nothing(here):
    before = sorted(os.listdir())
    with small_files(5_000):
        result = run("fit", "sources.csv", *FIT, "-q")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: out.gpclf would be larger than is allowed")
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "a.csv"),
            "no permission to open a.csv",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "a.csv"), "No space is left"),
        (OSError(errno.EROFS, "Read-only file system", "a.csv"), "a.csv is on a file system"),
        (OSError(errno.EIO, "Input/output error", "a.csv"), "Input/output error: a.csv."),
        (MemoryError(), "Memory does not suffice"),
    ],
)
def test_what_the_system_says_becomes_a_sentence(error, words):
    assert words in sentence(error)


def test_debug_shows_where(here):
    plain, debugged = run("info", "new.csv"), run("info", "new.csv", "--debug")
    assert plain.exit_code == debugged.exit_code == 2
    assert "Traceback" not in plain.output
    assert "Traceback" in debugged.output


def test_an_error_of_our_own_says_so_and_has_another_code(here, monkeypatch):
    def fail(path):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("gpclf.cli.info.open_model", fail)
    result = run("info", "plain.gpclf")
    assert result.exit_code == 3
    assert result.stderr == "Error: gpclf failed (ZeroDivisionError: oh): --debug shows where.\n"


def test_ctrl_c_leaves_nothing_behind(here, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpclf.cli.predict.predicted", stop)
    before = sorted(os.listdir())
    result = run("predict", "plain.gpclf", "new.csv", *PREDICT)
    assert result.exit_code == 130
    assert result.stderr == "Stopped: nothing was written.\n"
    assert sorted(os.listdir()) == before


def test_columns_in_another_order_and_more_of_them_are_no_mistake(here):
    table = rows()[:30]
    turned = [dict(reversed(each.items())) | {"more": "x"} for each in table]
    write("turned.csv", turned[0], [each.values() for each in turned])
    given = [run("predict", "plain.gpclf", name).stdout for name in ("new.csv", "turned.csv")]
    assert given[0] == given[1]
    assert len(list(csv.DictReader(given[0].splitlines()))) == 30


def test_the_table_of_the_tests_is_as_they_say():
    assert len(rows()) == ROWS == len(lines()) - 1
    assert np.unique([each["class"] for each in rows()]).tolist() == ["BL Lac", "pulsar", "quasar"]
