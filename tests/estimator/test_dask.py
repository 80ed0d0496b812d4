"""Laws of the classifier for rows on a cluster, here with Dask's scheduler of one thread."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from gpclf import GPClassifier, ParquetTable
from gpclf.dask import DaskGPClassifier
from gpclf.inference.engines import Natural, PowerEP

pytestmark = pytest.mark.usefixtures("sent_unchecked")

ROWS = 120
QUICK = {"n_inducing": 8, "random_state": 0, "inference": Natural(optimizer=None)}
TOLERANCE = 1e-6  # of probabilities: sums are taken in another order, and rounded otherwise


@pytest.fixture(autouse=True)
def one_thread_of_dask():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    """Three features, of which one has gaps, three classes that come one after the other."""
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(ROWS) % 3)
    X = rng.normal(size=(ROWS, 3)) + np.eye(3)[y]
    X[rng.random(ROWS) < 0.1, 2] = np.nan
    return X, np.array(["early", "on time", "late"])[y], rng.uniform(0.5, 2.0, ROWS)


@pytest.fixture(scope="module")
def frame(rows):
    X, y, weight = rows
    made = pd.DataFrame(X, columns=["distance", "hour", "wind"])
    made["carrier"] = np.array(["C", "A", "B", "A"])[np.arange(ROWS) // 31]  # partitions lack some
    return made.assign(status=y, weight=weight)


def _arrays(rows, cut):
    return [da.from_array(part, chunks=(cut, *part.shape[1:])) for part in rows]


def _same(clf, plain, X, tolerance):
    found, wanted = clf.to_local().predict_proba(X), plain.predict_proba(X)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(clf.classes_, plain.classes_)


def test_one_partition_gives_the_bits_of_an_array(rows):
    X, y, weight = _arrays(rows, ROWS)
    clf = DaskGPClassifier(**QUICK).fit(X, y, weight)
    plain = GPClassifier(**QUICK).fit(*rows)
    _same(clf, plain, rows[0], 0.0)
    assert clf.elbo_ == plain.elbo_
    assert clf.n_samples_seen_ == ROWS
    for there, here in zip(clf.training_summary_, plain.training_summary_, strict=True):
        for one, other in zip(np.atleast_1d(there), np.atleast_1d(here), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("cut", [(30, 30, 30, 30), (1, 0, 50, 69)])
def test_partitions_without_a_class_and_empty_ones_change_nothing_but_rounding(rows, cut):
    clf = DaskGPClassifier(**QUICK).fit(*_arrays(rows, cut))
    _same(clf, GPClassifier(**QUICK).fit(*rows), rows[0], TOLERANCE)


def test_kernel_and_points_are_learned_from_rows_that_come_here(rows):
    options = QUICK | {"inference": "natural", "max_epochs": 3}
    clf = DaskGPClassifier(**options).fit(*_arrays(rows[:2], 40))
    plain = GPClassifier(**options).fit(*rows[:2])
    np.testing.assert_allclose(clf.inducing_points_, plain.inducing_points_, rtol=1e-9)
    _same(clf, plain, rows[0], 1e-3)  # these few rows are all: each ends where little is gained
    assert clf.loo_score_ == pytest.approx(plain.loo_score_, abs=1e-3)


def test_frames_have_names_categories_and_a_column_of_labels(frame):
    features, lazy = frame.drop(columns=["status", "weight"]), dd.from_pandas(frame, npartitions=3)
    whole = DaskGPClassifier(**QUICK).fit(lazy.drop(columns="weight"), "status")
    plain = GPClassifier(**QUICK).fit(features, frame["status"])
    _same(whole, plain, features, TOLERANCE)
    assert list(whole.feature_names_in_) == list(features)
    assert list(whole.categories_[3]) == ["A", "B", "C"]
    apart = DaskGPClassifier(**QUICK).fit(lazy[list(features)], lazy["status"])
    assert apart.elbo_ == whole.elbo_


def test_parquet_files_are_read_by_who_works_on_them(frame, rows, tmp_path):
    table = pa.Table.from_pandas(frame.drop(columns="weight"), preserve_index=False)
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=50)
    path = str(tmp_path / "*.parquet")
    named = DaskGPClassifier(**QUICK, persist=False).fit(path, "status")
    plain = GPClassifier(**QUICK).fit(ParquetTable(path, label="status"))
    features = frame.drop(columns=["status", "weight"])
    _same(named, plain, features, TOLERANCE)
    assert DaskGPClassifier(**QUICK).fit(ParquetTable(path, label="status")).elbo_ == named.elbo_
    lazy = named.predict_proba(path)
    assert lazy.chunks == ((50, 50, 20), (3,))
    np.testing.assert_allclose(lazy.compute(), plain.predict_proba(features), atol=TOLERANCE)


def test_predictions_are_lazy_and_those_of_a_local_classifier(rows, frame):
    X, y, weight = _arrays(rows, (40, 0, 80))
    clf = DaskGPClassifier(**QUICK).fit(X, y, weight)
    local = clf.to_local()
    assert type(local) is GPClassifier
    for method in ("predict_proba", "predict_log_proba", "predict"):
        lazy, here = getattr(clf, method)(X), getattr(local, method)(rows[0])
        assert isinstance(lazy, da.Array)
        assert lazy.shape == here.shape
        assert lazy.dtype == here.dtype
        np.testing.assert_array_equal(lazy.compute(), here)
        np.testing.assert_array_equal(getattr(clf, method)(rows[0]), here)
    assert clf.score(X, y) == local.score(*rows[:2])
    unknown = dd.from_pandas(frame[["distance", "hour", "wind"]], npartitions=2)
    named = DaskGPClassifier(**QUICK).fit(unknown, dd.from_pandas(frame["status"], npartitions=2))
    assert np.isnan(named.predict_proba(unknown).shape[0])
    assert named.predict_proba(unknown).compute().shape == (ROWS, 3)


def test_it_becomes_a_file_a_copy_and_a_clone(rows, tmp_path):
    client = object()
    clf = DaskGPClassifier(**QUICK).fit(*_arrays(rows, 60))
    clf.to_local().save(tmp_path / "model.gpclf")
    clf.client = client
    wanted = clf.predict_proba(rows[0])
    for other in (GPClassifier.load(tmp_path / "model.gpclf"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(other.predict_proba(rows[0]), wanted)
    again = clone(clf)
    assert again.client is client
    assert again.get_params()["n_inducing"] == 8
    assert not hasattr(again, "posterior_")


def test_classes_are_balanced_over_all_partitions(rows):
    options = QUICK | {"class_weight": "balanced"}
    X, y, _ = rows
    few = np.r_[0:20, 40:ROWS]
    clf = DaskGPClassifier(**options).fit(*_arrays((X[few], y[few]), 30))
    _same(clf, GPClassifier(**options).fit(X[few], y[few]), X, TOLERANCE)


def _refused(X, y, weight, **options):
    return lambda: DaskGPClassifier(**QUICK | options).fit(X, y, weight)


X, y = da.ones((20, 2), chunks=(10, 2)), da.arange(20, chunks=10) % 2
LAZY = dd.from_pandas(pd.DataFrame({"a": np.arange(20.0), "b": ["u", "v"] * 10}), npartitions=2)
REFUSED = {
    "X has 20 rows and y has 19": _refused(X, y[:19], None),
    "X has 1 axis": _refused(y, y, None),
    "unknown number of columns": _refused(X[:, X[0] > 0], y, None),
    "y must be an array or a series of Dask's": _refused(X, np.arange(20), None),
    "X must be an array or a frame of Dask's": _refused(np.ones((20, 2)), y, None),
    "fit needs labels": _refused(X, None, None),
    "has no column 'c', the label": _refused(LAZY, "c", None),
    "X has 2 partitions and y has 1": _refused(LAZY, LAZY["b"].repartition(npartitions=1), None),
    "Partition 1 has 10 rows of X, and of y_* the shape": _refused(X, LAZY["b"].loc[:15], None),
    "keeps numbers of every row": _refused(X, y, None, inference=PowerEP()),
    "batches would wait": _refused(X, y, None, inference=Natural(batch_size=10)),
    "do not resample": _refused(X, y, None, input_noise="resample"),
    "parametric": _refused(X, y, None, input_noise="parametric"),
    "early_stopping keeps rows apart": _refused(X, y, None, early_stopping=True),
    "1 class only": _refused(X, y * 0, None),
    "infinity in column 'x0' of row 3 of partition 1": _refused(
        da.where(da.arange(20, chunks=10)[:, None] == 13, np.inf, X), y, None
    ),
    "a weight is 0 or more": _refused(X, y, y - 0.5),
}


@pytest.mark.parametrize("sentence", sorted(REFUSED))
def test_what_cannot_be_is_refused_in_one_sentence(sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        REFUSED[sentence]()
    assert "\n" not in str(caught.value)


def test_without_dask_the_extra_is_named(monkeypatch):
    import importlib

    import gpclf.dask

    monkeypatch.setitem(__import__("sys").modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"pip install 'gpclf\[dask\]'"):
        importlib.reload(gpclf.dask)
