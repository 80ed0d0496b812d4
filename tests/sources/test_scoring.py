"""A table on disk scored into a file has the predictions of the rows in memory."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpclf import ArrowTable, GPClassifier, ParquetTable

N = 150
FEATURES = ["wind", "carrier", "night"]


def frame(seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(["UA", "B6", None], dtype=object)[rng.integers(0, 3, N)]
    made = pd.DataFrame({"id": np.arange(N), "wind": rng.normal(size=N)})
    made["carrier"] = pd.Series(words, dtype="str")
    made["night"] = rng.random(N) < 0.5
    made["wind_err"] = rng.uniform(0, 0.5, N)
    made.loc[::7, "wind"] = np.nan
    made["late"] = np.where(made["wind"].fillna(0) + made["night"] > 0.3, "yes", "no")
    return made


@pytest.fixture(scope="module")
def fitted():
    rows = frame()
    return GPClassifier("logit", n_inducing=10, max_epochs=4, random_state=0).fit(
        rows[FEATURES], rows["late"]
    )


@pytest.fixture
def flights(tmp_path):
    rows = frame(1)
    rows.loc[3, "carrier"] = "never seen"
    path = tmp_path / "flights.parquet"
    pa.parquet.write_table(
        pa.Table.from_pandas(rows, preserve_index=False), path, row_group_size=40
    )
    return rows, path


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_scores_are_predictions_in_the_order_of_the_rows(fitted, flights, tmp_path, suffix):
    rows, path = flights
    place = tmp_path / f"scores{suffix}"
    assert fitted.predict_to(path, place, keep=["id"]) == N
    read = {".parquet": pd.read_parquet, ".csv": pd.read_csv, ".arrow": pd.read_feather}
    found = read[suffix](place)
    assert list(found.columns) == ["id", "class", "p_no", "p_yes"]
    assert_array_equal(found["id"], rows["id"])
    assert_allclose(found[["p_no", "p_yes"]], fitted.predict_proba(rows[FEATURES]), atol=1e-6)
    assert_array_equal(found["class"], fitted.predict(rows[FEATURES]))


def test_with_what_is_not_known_from_any_kind_of_table(fitted, flights, tmp_path):
    rows, path = flights
    batches = pa.Table.from_pandas(rows, preserve_index=False).to_batches(35)
    pyarrow.feather.write_feather(pa.Table.from_batches(batches), tmp_path / "f.arrow")
    parts = fitted.uncertainty(rows[FEATURES])
    for table in (str(path), [path], ArrowTable(batches), tmp_path / "f.arrow"):
        fitted.predict_to(table, tmp_path / "scores.parquet", uncertainty=True)
        found = pd.read_parquet(tmp_path / "scores.parquet")
        for name in ("total", "data", "model"):
            assert_allclose(found[f"uncertainty_{name}"], getattr(parts, name), atol=1e-6)


def test_errors_of_the_rows_count(flights, tmp_path, few_places):
    rows, path = flights
    before = frame()
    quick = GPClassifier(n_inducing=8, max_epochs=2, inference="natural", random_state=0)
    quick.fit(before[["wind"]], before["late"], X_std=before[["wind_err"]].to_numpy())
    for std, own in ((None, None), ({"wind": "wind_err"}, rows[["wind_err"]].to_numpy())):
        quick.predict_to(ParquetTable(path, X_std=std), tmp_path / "s.parquet")
        found = pd.read_parquet(tmp_path / "s.parquet")[["p_no", "p_yes"]]
        assert_allclose(found, quick.predict_proba(rows[["wind"]], X_std=own), atol=1e-6)


def test_a_classifier_of_arrays_takes_as_many_columns(flights, tmp_path):
    rows, path = flights
    X = frame()[["id", "wind"]].to_numpy()
    clf = GPClassifier(n_inducing=8, max_epochs=2, inference="natural", random_state=0)
    clf.fit(X, frame()["late"])
    clf.predict_to(ParquetTable(path, columns=["id", "wind"]), tmp_path / "s.parquet")
    found = pd.read_parquet(tmp_path / "s.parquet")[["p_no", "p_yes"]]
    assert_allclose(found, clf.predict_proba(rows[["id", "wind"]].to_numpy()), atol=1e-6)
    with pytest.raises(ValueError, match="has 6 features, but 2 were learned from"):
        clf.predict_to(path, tmp_path / "s.parquet")


def test_what_is_wrong_leaves_nothing_behind(fitted, flights, tmp_path):
    rows, path = flights
    place = tmp_path / "scores.parquet"

    def refused(match, table=path, to=place, **options):
        with pytest.raises(ValueError, match=match):
            fitted.predict_to(table, to, **options)
        assert os.listdir(tmp_path) == ["flights.parquet"]

    refused(r"path must end in \.parquet", to=tmp_path / "scores.xls")
    refused("There is no folder", to=tmp_path / "no" / "scores.parquet")
    refused("is a file of the table that is read", to=path)
    refused("'class', which predictions have themselves", keep=["class"])
    refused("'name', which .* has not", keep=["name"])
    bad = rows.assign(wind=rows["wind"].where(rows["id"] != 90, np.inf))
    pa.parquet.write_table(pa.Table.from_pandas(bad, preserve_index=False), path, row_group_size=40)
    refused(r"infinity in column 'wind' of row 10 of row group 2 of .*flights\.parquet")
    less = pa.Table.from_pandas(rows.drop(columns="night"), preserve_index=False)
    pa.parquet.write_table(less, path)
    refused("no column 'night', from which was learned")
    number = rows.assign(carrier=1.5)
    pa.parquet.write_table(pa.Table.from_pandas(number, preserve_index=False), path)
    refused("'carrier' of .* holds numbers, where the training rows had words")
    pa.parquet.write_table(pa.Table.from_pandas(rows[:0], preserve_index=False), path)
    refused("has no rows|holds")


def test_a_file_that_was_there_stays_until_the_new_one_is_whole(fitted, flights, tmp_path):
    rows, path = flights
    place = tmp_path / "scores.parquet"
    place.write_bytes(b"before")
    bad = rows.assign(wind=np.inf)
    other = tmp_path / "bad.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(bad, preserve_index=False), other)
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict_to(other, place)
    assert place.read_bytes() == b"before"
    fitted.predict_to(path, place)
    assert len(pd.read_parquet(place)) == N
