"""Tables in every format give the same rows, in blocks; what columns hold is guessed as stated."""

import gzip
import json
import sys
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from command.conftest import lines, rows, run
from gpclf.cli import sources
from gpclf.cli.errors import Mistake
from gpclf.cli.findings import finding, judged
from gpclf.cli.kinds import Place, kind_of, values_of
from gpclf.cli.leaks import explained
from gpclf.cli.options import Reading, _plain, names
from gpclf.cli.sources import source
from gpclf.cli.tables import Layout, concatenated, whole
from gpclf.cli.training import Roles, prepared

LAYOUT = Layout(
    (("flux", "number"), ("curvature", "number"), ("radio", "category"), ("first_seen", "date")),
    {"flux": "flux_err"},
    ("class", "word"),
)
PLACE = Place("table", "column")


def typed():
    """The table as formats with types have it."""
    numbers = ("flux", "flux_err", "slope", "slope_err", "curvature", "curvature_err")
    found = []
    for row in rows():
        new = {k: (None if v == "" else float(v) if k in numbers else v) for k, v in row.items()}
        found.append(new | {"first_seen": date.fromisoformat(row["first_seen"])})
    return pa.Table.from_pylist(found)


def write_arrow_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)


def write_lines(table, path):
    with open(path, "w") as file:
        for row in table.to_pylist():
            file.write(json.dumps(row, default=str) + "\n")


def write_excel(table, path):
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def write_folder(table, path):
    path.mkdir()
    (path / "_SUCCESS").touch()
    (path / ".hidden.parquet").write_text("x")
    pa.parquet.write_table(table.slice(0, 20), path / "part-0.parquet")
    pa.parquet.write_table(table.slice(20), path / "part-1.parquet")


TEXT = "\n".join(lines()) + "\n"
WRITERS = {
    "a.csv.gz": lambda table, path: path.write_bytes(gzip.compress(TEXT.encode())),
    "a.tsv": lambda table, path: path.write_text(TEXT.replace(",", "\t")),
    "semicolons.csv": lambda table, path: path.write_text(TEXT.replace(",", ";")),
    "mark.csv": lambda table, path: path.write_text(TEXT, encoding="utf-8-sig"),
    "lines.csv": lambda table, path: path.write_text(TEXT.replace("\n", "\r\n"), newline=""),
    "a.jsonl": write_lines,
    "a.parquet": pa.parquet.write_table,
    "a.feather": pa.feather.write_feather,
    "a.arrow": write_arrow_stream,
    "a.xlsx": write_excel,
    "folder": write_folder,
}


@pytest.fixture
def plain(here):
    return whole(source("sources.csv", Reading()), LAYOUT)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name, plain, here):
    WRITERS[name](typed(), here / name)
    found = whole(source(name, Reading()), LAYOUT)
    assert found.X.schema == plain.X.schema
    assert found.X.to_pylist() == plain.X.to_pylist()
    assert np.array_equal(found.y, plain.y)
    assert np.array_equal(found.X_std, plain.X_std)


def test_standard_input_is_csv_or_what_format_says(here):
    given = run("predict", "plain.gpclf", "-", stdin=TEXT.encode()).stdout
    assert given == run("predict", "plain.gpclf", "sources.csv").stdout
    pa.parquet.write_table(typed(), "a.parquet")
    content = (here / "a.parquet").read_bytes()
    other = run("predict", "plain.gpclf", "-", "--format", "parquet", stdin=content)
    assert other.stdout == given


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_read_when_named(encoding, here):
    (here / "other.csv").write_text(TEXT.replace("flat", "ébène"), encoding=encoding)
    found = whole(source("other.csv", Reading(encoding=encoding)), LAYOUT)
    assert "ébène" in found.X["radio"].to_pylist()


def test_blocks_do_not_change_what_is_read(plain, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 7)
    found = whole(source("sources.csv", Reading()), LAYOUT)
    assert found.X.to_pylist() == plain.X.to_pylist()


def test_rows_are_counted_across_blocks(here, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 7)
    name, _, rest = lines()[1].split(",", 2)
    (here / "bad.csv").write_text(f"{TEXT}{name},bright,{rest}\n")
    with pytest.raises(Mistake, match="in row 61, where numbers were expected"):
        whole(source("bad.csv", Reading()), LAYOUT)


def test_excel_without_openpyxl_says_how_to_get_it(here, monkeypatch):
    write_excel(typed(), "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(Mistake, match=r'^Excel needs openpyxl: pip install "gpclf\[excel\]"\.$'):
        whole(source("a.xlsx", Reading()), LAYOUT)


def test_decimal_commas_are_read_when_said(here):
    (here / "c.csv").write_text("x;class\n1,5;a\n-,25;b\n")
    layout = Layout((("x", "number"),), {}, ("class", "word"))
    found = whole(source("c.csv", Reading(decimal=",")), layout)
    assert found.X["x"].to_pylist() == [1.5, -0.25]
    with pytest.raises(Mistake, match="'1,5' in row 1: give --decimal , if these are numbers"):
        prepared(concatenated(list(source("c.csv", Reading()).blocks())), Roles("class"), "c.csv")


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("acid, fixed;sugar;class", ["acid, fixed", "sugar", "class"]),
        ('"acid; a; b",sugar,class', ["acid; a; b", "sugar", "class"]),
        ("a;b,class", ["a;b", "class"]),
    ],
)
def test_the_first_line_tells_what_stands_between_columns(header, names, here):
    between = ";" if names[0] == "acid, fixed" else ","
    (here / "h.csv").write_text(f"{header}\n{between.join('123'[: len(names)])}\n")
    assert source("h.csv", Reading()).columns == names


def test_a_name_with_a_comma_in_it_stands_in_quotation_marks():
    assert names('"acid, fixed", sugar,,pH') == ["acid, fixed", "sugar", "pH"]
    assert names(_plain(["acid, fixed", "sugar"])) == ["acid, fixed", "sugar"]


def test_quoted_cells_may_have_commas_and_lines(here):
    (here / "q.csv").write_text('x,class\n"1","a, b"\n2,"c\nd"\n')
    found = whole(source("q.csv", Reading()), Layout((("x", "number"),), {}, ("class", "word")))
    assert found.y.tolist() == ["a, b", "c\nd"]


def test_json_may_change_the_type_of_a_column(here, monkeypatch):
    monkeypatch.setattr("gpclf.cli.formats.LINES", 2)
    values = [1, 2.5, "3", None, True, "x"]
    (here / "m.jsonl").write_text("\n".join(json.dumps({"x": v}) for v in values))
    found = concatenated(list(source("m.jsonl", Reading()).blocks()))
    assert found["x"].to_pylist() == ["1", "2.5", "3", None, "True", "x"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "number"),
        ([1.5, float("nan")], "number"),
        (["1", " 2.5 ", None, "-3e4"], "number"),
        (["01", "02"], "category"),
        (["True", "FALSE", None], "truth"),
        ([True, False], "truth"),
        (["2024-01-31", None], "date"),
        (["2024-01-31 10:00", "2024-02-01"], "date"),
        (["2024-01-31T10:00:00Z"], "date"),
        ([date(2024, 1, 1)], "date"),
        ([datetime(2024, 1, 1, 12)], "date"),
        ([timedelta(hours=1)], "date"),
        (["a", "b"], "category"),
        (["a", "1"], "category"),
        ([None, None], "nothing"),
        ([[1], [2]], "other"),
    ],
)
def test_what_a_column_holds(values, kind):
    assert kind_of(pa.chunked_array([pa.array(values)]), PLACE) == kind


def test_a_categorical_column_stays_one_though_its_words_are_numbers():
    column = pa.chunked_array([pa.array(["1", "2", "1"]).dictionary_encode()])
    assert kind_of(column, PLACE) == "category"


@pytest.mark.parametrize(
    "values",
    [
        ["1970-01-03", "1970-01-01 12:00", None],
        ["1970-01-03T00:00Z", "1970-01-01 13:00+01:00", None],
        [datetime(1970, 1, 3), datetime(1970, 1, 1, 12), None],
        [timedelta(days=2), timedelta(hours=12), None],
    ],
)
def test_dates_are_days(values):
    column = pa.chunked_array([pa.array(values)])
    assert values_of(column, "date", PLACE).to_pylist() == [2.0, 0.5, None]


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("c", ["a"] * 30, "constant"),
        ("c", [3.0] * 30, "constant"),
        ("c", [None] * 30, "no value at all"),
        ("c", [f"w{i}" for i in range(30)], "a word of its own"),
        ("c", [f"w{i % 20}" for i in range(30)], "nearly as many words as rows"),
        ("c", list(range(100, 130)), "a counter"),
        ("c", [float(i) for i in range(0, 60, 2)], "a counter"),
        ("user_id", [7919 * i for i in range(30)], "by its name"),
        ("c", [{"a": i} for i in range(30)], "no model takes"),
    ],
)
def test_what_is_left_out_and_why(name, values, why):
    column = pa.chunked_array([pa.array(values)])
    found = judged(finding(column, Place("t", name), False), column, False)
    assert found.out
    assert why in found.note


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("c", [i % 9 for i in range(30)]),
        ("c", [7919 * i for i in range(30)]),
        ("c", [i / 7 for i in range(30)]),
        ("c", ["a", None] * 15),
        ("user_id", [i % 5 for i in range(30)]),
    ],
)
def test_what_is_not(name, values):
    column = pa.chunked_array([pa.array(values)])
    assert not judged(finding(column, Place("t", name), False), column, False).out


def table_with(leak, n_rows=1000):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    columns = {"x": rng.normal(y, 1.5), "leak": leak(y, rng), "class": np.array(["no", "yes"])[y]}
    return pa.table(columns), y


LEAKS = {
    "the label itself": lambda y, rng: y.astype(float) + 0.25,
    "its words": lambda y, rng: np.array(["low", "high"])[y],
    "a threshold": lambda y, rng: np.where(y, 1, -1) * rng.uniform(0.001, 5, len(y)),
    "a code of three": lambda y, rng: np.array(["a", "b", "c"])[y * rng.integers(1, 3, len(y))],
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_column_that_gives_the_label_away_is_left_out_and_said_unless_named(name):
    table, _ = table_with(LEAKS[name])
    found = {each.name: each for each in prepared(table, Roles("class"), "t").findings}
    assert found["leak"].out
    assert "gives the label away" in found["leak"].note
    assert not found["x"].out
    named = prepared(table, Roles("class", features="x,leak"), "t").findings
    assert [each.out for each in named] == [False, False]
    assert "used, since named" in named[1].note


def test_a_row_number_in_a_sorted_file_is_left_out():
    table, y = table_with(lambda y, rng: y)
    table = table.take(np.argsort(y)).drop_columns(["leak"])
    table = table.append_column("n", pa.array(np.arange(len(y))))
    (_, found) = prepared(table, Roles("class"), "t").findings
    assert found.out


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.0])
def test_a_column_that_is_merely_good_is_kept(strength):
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=2000)
    share = explained(pa.array(rng.normal(strength * y)), y)
    assert -0.2 < share < 0.8


def test_patterns_name_features():
    table, _ = table_with(LEAKS["its words"])
    found = prepared(table, Roles("class", features="*"), "t")
    assert [name for name, _ in found.layout.features] == ["x", "leak"]
