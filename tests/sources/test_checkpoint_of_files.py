"""A fit of a table on disk that was killed goes on with the same bits; other files are refused."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import make_moons

from gpclf import GPClassifier, ParquetTable
from gpclf.data.sources import rows
from gpclf.estimators import checkpoints
from gpclf.inference import journal
from gpclf.inference.engines import Natural

X, Y = make_moons(240, noise=0.3, random_state=0)
QUICK = {"n_inducing": 10, "random_state": 0, "max_epochs": 6}
WAYS = {"rounds": {"inference": "natural"}, "batches": {"inference": Natural(batch_size=30)}}


class Killed(BaseException):
    """As by a signal."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BUFFER_ROWS", 90)  # filled several times an epoch
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(3):
        part = slice(80 * number, 80 * (number + 1))
        table = pa.table({"a": X[part, 0], "b": X[part, 1], "y": Y[part]})
        pq.write_table(table, parts / f"{number}.parquet", row_group_size=30)
    return parts


def fitted(folder, way, **kept):
    return GPClassifier(**QUICK | WAYS[way]).fit(ParquetTable(folder, label="y"), **kept)


def killed(folder, way, place, monkeypatch):
    """After twelve units, all of which were written."""
    with monkeypatch.context() as patch:
        patch.setattr(journal, "STAGE", 0.0)
        patch.setattr(journal, "STEP", 0.0)
        patch.setattr(journal, "SHARE", np.inf)
        patch.setattr(os, "fsync", lambda file: None)
        saved, real = [], checkpoints.Kept._save

        def save(self, theta, past):
            real(self, theta, past)
            saved.append(0)
            if len(saved) > 12:
                raise Killed

        patch.setattr(checkpoints.Kept, "_save", save)
        with pytest.raises(Killed):
            fitted(folder, way, checkpoint=place)


@pytest.mark.parametrize("way", WAYS)
def test_a_fit_of_files_that_was_killed_ends_with_the_same_bits(way, folder, tmp_path, monkeypatch):
    place = tmp_path / "run.ckpt"
    killed(folder, way, place, monkeypatch)
    again, whole = fitted(folder, way, checkpoint=place, resume=True), fitted(folder, way)
    frame = pa.table({"a": X[:, 0], "b": X[:, 1]})
    np.testing.assert_array_equal(again.predict_proba(frame), whole.predict_proba(frame))
    assert again.elbo_ == whole.elbo_


def test_other_files_are_refused(folder, tmp_path, monkeypatch):
    place = tmp_path / "run.ckpt"
    killed(folder, "rounds", place, monkeypatch)
    before = place.read_bytes()
    table = pq.read_table(folder / "2.parquet")
    pq.write_table(table.slice(1), folder / "2.parquet", row_group_size=30)
    with pytest.raises(ValueError, match="other data: the files differ"):
        fitted(folder, "rounds", checkpoint=place, resume=True)
    assert place.read_bytes() == before
