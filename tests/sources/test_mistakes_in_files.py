"""What is wrong with a table on disk is said in one sentence that names the place."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpclf import ArrowTable, GPClassifier, ParquetTable
from gpclf.data.sources import first_pass

N = 60


def table(**changes):
    rng = np.random.default_rng(0)
    made = {
        "wind": rng.normal(size=N),
        "distance": rng.normal(size=N),
        "late": np.arange(N) % 2,
        **changes,
    }
    return pa.table({name: values for name, values in made.items() if values is not None})


def write(rows, path):
    pa.parquet.write_table(rows, path, row_group_size=20)
    return path


def placed(values, row, value):
    """The same, with one other value."""
    changed = list(values)
    changed[row] = value
    return changed


def refused(given, *words, kind=ValueError):
    with pytest.raises(kind) as found:
        GPClassifier().fit(given)
    text = str(found.value)
    assert all(word in text for word in words), text
    assert "\n" not in text
    assert text.endswith(".")


def test_no_file(tmp_path):
    refused(ParquetTable(tmp_path / "none.parquet", "late"), "no file", kind=FileNotFoundError)
    refused(ParquetTable(f"{tmp_path}/*.parquet", "late"), "No file matches", kind=OSError)
    refused(ParquetTable(tmp_path, "late"), str(tmp_path), ".parquet", kind=OSError)
    refused(ParquetTable([], "late"), "empty")


def test_columns_or_types_that_differ_between_files(tmp_path):
    one = write(table(), tmp_path / "a.parquet")
    other = write(table(distance=None), tmp_path / "b.parquet")
    refused(ParquetTable(tmp_path, "late"), str(other), "'distance'", str(one))
    write(table(gusts=np.ones(N)), other)
    refused(ParquetTable(tmp_path, "late"), str(one), "'gusts'")
    write(table(distance=["far"] * N), other)
    refused(ParquetTable(tmp_path, "late"), "'distance'", "words", str(other), "numbers", str(one))
    write(table(gusts=np.ones(N)), other)
    first_pass(ParquetTable(tmp_path, "late", columns=["wind", "distance"]), None, None)


def test_numbers_of_different_types_and_columns_without_values_are_alike(tmp_path):
    write(table(distance=pa.nulls(N)), tmp_path / "a.parquet")
    write(table(distance=np.arange(N)), tmp_path / "b.parquet")
    rows, _ = first_pass(ParquetTable(tmp_path, "late"), "from_dtype", None)
    assert rows.n_rows == 2 * N
    assert np.isnan(np.concatenate([block.X for block in rows.blocks()])[:N, 1]).all()


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"label": "delayed"}, ["'delayed'", "label", "'late'"]),
        ({"weight": "count"}, ["'count'", "weight"]),
        ({"X_std": {"wind": "wind_err"}}, ["'wind_err'", "'wind'"]),
        ({"columns": ["wind", "gusts"]}, ["'gusts'"]),
        ({"label": None}, ["label"]),
    ],
)
def test_columns_that_are_not_there(tmp_path, roles, words):
    path = write(table(), tmp_path / "a.parquet")
    refused(ParquetTable(path, **{"label": "late", **roles}), *words)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"label": 3}, TypeError),
        ({"X_std": "wind_err"}, TypeError),
        ({"columns": "wind"}, TypeError),
        ({"columns": ["wind", "late"]}, ValueError),
        ({"weight": "late"}, ValueError),
    ],
)
def test_roles_that_make_no_sense(given, kind):
    with pytest.raises(kind):
        ParquetTable("a.parquet", **{"label": "late", **given})


def test_a_bad_value_is_named_by_file_row_group_row_and_column(tmp_path):
    wind, late = table()["wind"].to_pylist(), table()["late"].to_pylist()
    place = "row 7 of row group 2 of", "b.parquet"
    cases = {
        "wind": (placed(wind, 47, np.inf), "infinity", "'wind'", {}),
        "late": (placed(late, 47, None), "label", "'late'", {}),
        "count": (placed([1.0] * N, 47, -1.0), "-1", "'count'", {"weight": "count"}),
        "err": (placed([0.1] * N, 47, None), "no value", "'err'", {"X_std": {"wind": "err"}}),
    }
    for name, (values, what, column, roles) in cases.items():
        good = [1.0] * N if name in ("count", "err") else table()[name]
        write(table(**{name: good}), tmp_path / "a.parquet")
        write(table(**{name: values}), tmp_path / "b.parquet")
        refused(ParquetTable(tmp_path, "late", **roles), what, column, *place)
    words = placed([str(w) for w in wind], 47, "gale")
    for name in "ab":
        write(table(wind=words), tmp_path / f"{name}.parquet")
    refused(ParquetTable(tmp_path, "late"), "'gale'", "'wind'", "row 7 of row group 2", "a.parquet")


def test_dates_lists_and_identifiers_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    write(table(day=pd.date_range("2020-01-01", periods=N)), path)
    refused(ParquetTable(path, "late"), "'day'", "dates")
    write(table(many=[[1, 2]] * N), path)
    refused(ParquetTable(path, "late"), "'many'", "list")
    rows = 1500
    write(pa.table({"name": [f"n{i}" for i in range(rows)], "late": np.arange(rows) % 2}), path)
    refused(ParquetTable(path, "late"), "'name'", "1,000 categories")
    write(pa.table({"x": np.ones(rows), "late": np.arange(rows) / 7}), path)
    refused(ParquetTable(path, "late"), "continuous")


def test_one_class_and_classes_without_weight(tmp_path):
    path = write(table(late=np.ones(N)), tmp_path / "a.parquet")
    refused(ParquetTable(path, "late"), "1 class only")
    write(table(count=np.arange(N) % 2.0), path)
    refused(ParquetTable(path, "late", weight="count"), "class 0", "weight 0")
    write(table(), path)
    with pytest.raises(ValueError, match="'no', which is no class"):
        GPClassifier(class_weight={"no": 2.0}).fit(ParquetTable(path, "late"))


def test_an_empty_table(tmp_path):
    path = write(table().slice(0, 0), tmp_path / "a.parquet")
    refused(ParquetTable(path, "late"), "no row", str(path))
    refused(ArrowTable([], "late"), "no batch")


def test_damaged_files(tmp_path):
    path = write(table(), tmp_path / "a.parquet")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(ParquetTable(path, "late"), str(path), "Parquet")
    path.write_bytes(b"")
    refused(ParquetTable(path, "late"), str(path), "Parquet")
    path.write_bytes(content[:50] + bytes(200) + content[250:])
    refused(ParquetTable(path, "late"), "ow group", str(path))
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read as an Arrow file"):
        GPClassifier().fit(ArrowTable(path, "late"))


def test_a_file_that_changes_between_two_passes(tmp_path):
    path = write(table(), tmp_path / "a.parquet")
    rows, _ = first_pass(ParquetTable(path, "late"), "from_dtype", None)
    write(table(late=np.arange(N) % 3), path)
    with pytest.raises(ValueError, match=r"a\.parquet has changed since the first pass"):
        list(rows.blocks())
    os.remove(path)
    with pytest.raises(FileNotFoundError, match="any more"):
        rows.take(np.arange(3))


def test_batches_that_change_or_come_only_once():
    batches = table().to_batches(20)
    rows, _ = first_pass(ArrowTable(batches, "late"), "from_dtype", None)
    batches.pop()
    with pytest.raises(ValueError, match="changed since the first pass"):
        list(rows.blocks())
    refused(ArrowTable(iter(batches), "late"), "only once", kind=TypeError)
    refused(ArrowTable(3, "late"), "int", kind=TypeError)
    refused(ArrowTable([3], "late"), "int", kind=TypeError)


def test_what_belongs_to_the_table_is_not_given_beside_it(tmp_path):
    given = ParquetTable(write(table(), tmp_path / "a.parquet"), "late")
    with pytest.raises(TypeError, match="label="):
        GPClassifier().fit(given, np.arange(N) % 2)
    with pytest.raises(TypeError, match="weight="):
        GPClassifier().fit(given, sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="early_stopping"):
        GPClassifier(early_stopping=True).fit(given)
    with pytest.raises(TypeError, match="predict_to"):
        GPClassifier().partial_fit(given, np.arange(N) % 2, classes=[0, 1])
