"""Processes on one machine stand for a cluster: their number and their deaths change no bit."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from gpclf import GPClassifier
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
            n_workers=1, processes=True, threads_per_worker=1, dashboard_address=None
        ) as made,
        Client(made, set_as_default=False) as client,
    ):
        yield made, client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(ROWS) % 3)  # no partition has all classes
    return rng.normal(size=(ROWS, 2)) + 2 * np.eye(3)[y, :2], y


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


def _fitted(client, rows, **options):
    return DaskGPClassifier(client, **OPTIONS | options).fit(*rows)


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
        found.append(_fitted(client, _lazy(rows, 0.05), persist=False, callback=told))

    fit = threading.Thread(target=run, daemon=True)
    fit.start()
    assert began.wait(LIMIT)
    time.sleep(0.2)
    assert any(client.processing().values())  # in the middle of one
    for nanny in list(made.workers.values())[survivors:]:
        os.kill(nanny.pid, signal.SIGKILL)
    made.scale(survivors)  # they do not come back
    fit.join(LIMIT)
    assert not fit.is_alive(), "the fit hangs"
    assert found, "the fit failed"
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == survivors
    return found[0]


def test_one_worker_that_dies_in_a_pass_changes_no_bit_and_then_all_but_one(cluster, rows, of_one):
    _workers(*cluster, 3)
    assert _bits(_killed_in_a_pass(*cluster, rows, survivors=2), rows[0]) == of_one
    _workers(*cluster, 3)
    assert _bits(_killed_in_a_pass(*cluster, rows, survivors=1), rows[0]) == of_one
