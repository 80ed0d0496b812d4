"""A table on disk is the table in memory: the same rows in the same order give the same fit."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

from gpclf import ArrowTable, GPClassifier, ParquetTable
from gpclf.data import survey

N = 400
QUICK = {"n_inducing": 10, "max_epochs": 4, "inference": "natural", "random_state": 0}
NUMBERS = ["wind", "distance"]


@pytest.fixture(scope="module")
def frame():
    """Numbers with gaps, words with gaps, truth values, a label, a weight and errors."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"wind": rng.normal(size=N), "distance": np.exp(3 * rng.normal(size=N))})
    made["late"] = np.array(["no", "yes"])[
        (made["wind"] + 0.3 * rng.normal(size=N) > 0).to_numpy().astype(int)
    ]
    made.loc[rng.random(N) < 0.1, "distance"] = np.nan
    words = np.array(["UA", "B6", "AA", None], dtype=object)[rng.integers(0, 4, N)]
    made["carrier"] = pd.Series(words, dtype="str")
    made["night"] = rng.random(N) < 0.5
    made["count"] = rng.integers(0, 3, N).astype(float)
    made["wind_err"] = rng.uniform(0.0, 0.3, N)
    return made


def written(frame, path, size=90, files=1):
    """In row groups of some rows, in as many files."""
    path.mkdir(exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(frame)), files)):
        rows = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        pa.parquet.write_table(rows, path / f"part-{number}.parquet", row_group_size=size)
    return path


def same(one, other, X):
    assert other.elbo_ == pytest.approx(one.elbo_, rel=1e-6)
    assert_array_equal(other.classes_, one.classes_)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("files", [1, 3])
def test_parquet_gives_the_fit_of_the_frame(frame, tmp_path, files):
    features = [*NUMBERS, "carrier", "night"]
    X = frame[features]
    one = GPClassifier(**QUICK).fit(X, frame["late"])
    folder = written(frame, tmp_path / "flights", files=files)
    for paths in (folder, str(folder / "*.parquet"), sorted(folder.iterdir())):
        table = ParquetTable(paths, label="late", columns=features)
        other = GPClassifier(**QUICK).fit(table)
        same(one, other, X)
        assert other.elbo_ == one.elbo_  # to the last bit
        for mine, theirs in zip(other.categories_, one.categories_, strict=True):
            assert_array_equal(mine, theirs)
    for mine, theirs in zip(other.training_summary_, one.training_summary_, strict=True):
        for a, b in zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]:
            np.testing.assert_allclose(a, b)


def test_so_do_arrow_files_and_batches_from_anywhere(frame, tmp_path):
    rows = pa.Table.from_pandas(frame[[*NUMBERS, "night", "late"]], preserve_index=False)
    X = frame[[*NUMBERS, "night"]]
    one = GPClassifier(**QUICK).fit(X, frame["late"])
    pyarrow.feather.write_feather(rows, tmp_path / "rows.arrow", chunksize=70)
    sources = [
        tmp_path / "rows.arrow",
        rows,
        rows.to_batches(50),
        lambda: iter(rows.to_batches(110)),
    ]
    for source in sources:
        same(one, GPClassifier(**QUICK).fit(ArrowTable(source, label="late")), X)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 2.0}])
def test_weights_are_those_of_memory(frame, tmp_path, class_weight):
    folder, X = written(frame, tmp_path / "flights"), frame[NUMBERS]
    quick = GPClassifier(**QUICK, class_weight=class_weight)
    one = quick.fit(X, frame["late"], sample_weight=frame["count"])
    table = ParquetTable(folder, label="late", weight="count", columns=NUMBERS)
    other = GPClassifier(**QUICK, class_weight=class_weight).fit(table)
    assert other.n_samples_seen_ == np.count_nonzero(frame["count"]) < N
    same(one, other, X)


def test_so_are_errors(frame, tmp_path, few_places):
    folder, X = written(frame, tmp_path / "flights"), frame[NUMBERS]
    std = np.column_stack([frame["wind_err"], np.zeros(N)])
    one = GPClassifier(**QUICK).fit(X, frame["late"], X_std=std)
    table = ParquetTable(folder, label="late", X_std={"wind": "wind_err"}, columns=NUMBERS)
    other = GPClassifier(**QUICK).fit(table)
    same(one, other, X)
    assert_array_equal(other.input_noise_std_, one.input_noise_std_)


def test_numbers_named_as_categories_are(frame, tmp_path):
    folder, X = written(frame, tmp_path / "flights"), frame[["wind", "count"]]
    one = GPClassifier(**QUICK, categorical_features=["count"]).fit(X, frame["night"])
    table = ParquetTable(folder, label="night", columns=["wind", "count"])
    other = GPClassifier(**QUICK, categorical_features=["count"]).fit(table)
    assert_array_equal(other.categories_[1], [0, 1, 2])
    assert other.classes_.dtype == bool
    same(one, other, X)


def test_a_sample_stands_for_many_rows_alike(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(survey.drawn, "__defaults__", (60,))
    monkeypatch.setattr(survey.Drawing.__init__, "__defaults__", (60,))
    folder, X = written(frame, tmp_path / "flights"), frame[NUMBERS]
    one = GPClassifier(**QUICK).fit(X, frame["late"])
    same(one, GPClassifier(**QUICK).fit(ParquetTable(folder, "late", columns=NUMBERS)), X)


def test_rows_are_drawn_as_if_by_lot_whatever_the_blocks():
    whole = survey.drawn(10_000, 500)
    drawing = survey.Drawing(500)
    for part in np.split(np.arange(10_000), [1, 700, 701, 5000]):
        drawing.add(part)
    assert_array_equal(drawing.drawn()[0], whole)
    assert len(whole) == 500
    assert np.all(np.diff(whole) > 0)
    shares = np.bincount(whole % 2) / 500, np.bincount(whole // 2500) / 500
    np.testing.assert_allclose(np.concatenate(shares), [0.5] * 2 + [0.25] * 4, atol=0.08)


def test_a_description_and_its_pieces_can_be_sent_elsewhere(frame, tmp_path):
    table = ParquetTable(written(frame, tmp_path / "flights", files=2), label="late")
    pieces = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(table)).open()))
    assert sum(pieces.rows) == N
    some = list(pieces.part([1, 3]).read(["wind"]))
    assert [piece.rows.num_rows for piece in some] == [pieces.rows[1], pieces.rows[3]]
    assert pieces.fingerprint == table.open().fingerprint
