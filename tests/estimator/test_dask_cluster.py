"""Processes on one machine stand for a cluster: their number and their deaths change no bit."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from gpclf import GPClassifier, storage
from gpclf.dask import DaskGPClassifier
from gpclf.inference.engines import Natural

pytestmark = pytest.mark.usefixtures("sent_unchecked")

ROWS, PIECES, LIMIT = 240, 12, 240  # the last: seconds, after which a fit counts as hung
OPTIONS = {"n_inducing": 8, "random_state": 0, "inference": Natural(optimizer=None)}
QUIET = {"distributed.worker.memory.terminate": False, "logging.distributed": "critical"}


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set(QUIET),
        LocalCluster(
            n_workers=1, processes=True, threads_per_worker=1, dashboard_address=":0"
        ) as made,
        Client(made, set_as_default=False) as client,
    ):
        yield made, client


def made_rows():
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(ROWS) % 3)  # no partition has all classes
    return rng.normal(size=(ROWS, 2)) + 2 * np.eye(3)[y, :2], y


rows = pytest.fixture(made_rows, scope="module")


def _lazy(rows, seconds=0.0):
    """Partitions that take so long to be there, in every pass."""

    def slowly(block):
        time.sleep(seconds)
        return block

    X, y = rows
    size = ROWS // PIECES
    X = da.from_array(X, chunks=(size, 2))
    return (X.map_blocks(slowly) if seconds else X), da.from_array(y, chunks=size)


def _workers(made, client, count):
    made.scale(count)
    deadline = time.monotonic() + LIMIT
    while len(client.scheduler_info(n_workers=-1)["workers"]) != count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _fitted(client, rows, told=None, **options):
    return DaskGPClassifier(client, **OPTIONS | options).fit(*rows, **told or {})


def _bits(clf, X):
    return clf.elbo_, clf.to_local().predict_proba(X).tobytes()


@pytest.fixture(scope="module")
def of_one(cluster, rows, sent_unchecked):
    """The bits of one worker."""
    _workers(*cluster, 1)
    return _bits(_fitted(cluster[1], _lazy(rows)), rows[0])


def test_one_worker_agrees_with_none(of_one, rows):
    plain = GPClassifier(**OPTIONS).fit(*rows)
    assert of_one[0] == pytest.approx(plain.elbo_, rel=1e-9)
    probabilities = np.frombuffer(of_one[1]).reshape(ROWS, 3)
    np.testing.assert_allclose(probabilities, plain.predict_proba(rows[0]), atol=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_further_workers_give_the_same_bits(cluster, rows, of_one, count):
    _workers(*cluster, count)
    assert _bits(_fitted(cluster[1], _lazy(rows)), rows[0]) == of_one


def test_predictions_are_made_where_rows_are(cluster, rows):
    X, y = _lazy(rows)
    clf = _fitted(cluster[1], (X, y))
    found = cluster[1].compute(clf.predict_proba(X)).result(timeout=LIMIT)
    np.testing.assert_allclose(found, clf.to_local().predict_proba(rows[0]), rtol=1e-12)


def _killed_in_a_pass(made, client, rows, survivors):
    """A fit in a thread, and a SIGKILL to all workers but some while they are at a pass."""
    found, began = [], threading.Event()

    def told(line):
        began.set()  # a pass over all rows is done, and the next one follows at once

    def run():
        found.append(_fitted(client, _lazy(rows, 0.1), persist=False, callback=told))

    fit = threading.Thread(target=run, daemon=True)
    fit.start()
    assert began.wait(LIMIT)
    while not any(client.processing().values()):  # in the middle of one
        assert fit.is_alive()
    for nanny in list(made.workers.values())[survivors:]:
        os.kill(nanny.pid, signal.SIGKILL)
    made.scale(survivors)  # they do not come back
    fit.join(LIMIT)
    assert not fit.is_alive(), "the fit hangs"
    assert found, "the fit failed"
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == survivors
    return found[0]


@pytest.mark.slow
def test_one_worker_that_dies_in_a_pass_changes_no_bit_and_then_all_but_one(cluster, rows, of_one):
    _workers(*cluster, 3)
    assert _bits(_killed_in_a_pass(*cluster, rows, survivors=2), rows[0]) == of_one
    _workers(*cluster, 3)
    assert _bits(_killed_in_a_pass(*cluster, rows, survivors=1), rows[0]) == of_one


CLIENT = """
import os, signal, sys
address, place, *folders = sys.argv[1:]
sys.path[:0] = folders
from distributed import Client
from gpclf.estimators import checkpoints
from gpclf.inference import journal
import test_dask_cluster as here

journal.STAGE = journal.STEP = 0.0
journal.SHARE = float("inf")
saved, real = [], checkpoints.Kept._save

def save(self, theta, past):
    real(self, theta, past)
    saved.append(0)
    if len(saved) == 4:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.Kept._save = save
with Client(address, set_as_default=False) as client:
    here._fitted(client, here._lazy(here.made_rows()), {"checkpoint": place})
"""


def test_another_client_goes_on_from_one_that_was_killed(cluster, rows, of_one, tmp_path):
    made, client = cluster
    place, folders = tmp_path / "run.ckpt", [Path(__file__).parents[1], Path(__file__).parent]
    command = [sys.executable, "-c", CLIENT, made.scheduler_address, place, *folders]
    ended = subprocess.run(list(map(str, command)), timeout=LIMIT)
    assert ended.returncode == -signal.SIGKILL
    assert storage.read(place, storage.CHECKPOINT)[0]["records"]
    again = {"checkpoint": place, "resume": True}
    assert _bits(_fitted(client, _lazy(rows), again), rows[0]) == of_one
    X, y = rows
    with pytest.raises(ValueError, match="differ from what it learned from"):
        _fitted(client, _lazy((X + 0.1 * (X[0] == X), y)), again)
