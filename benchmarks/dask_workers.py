"""Seconds of a fit with two worker processes of Dask's on one machine, beside the plain fit."""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from datasets import find

MOST = 1.5  # times the seconds of the plain fit


def parsed() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--data", help="the folder of the sets")
    reader.add_argument("--set", default="airline-us")
    reader.add_argument("--rows", type=int, help="at most so many")
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("--partitions", type=int, default=16)
    reader.add_argument("--n-inducing", type=int, default=200)
    reader.add_argument("--repeat", type=int, default=1)
    return reader.parse_args()


def rows_of(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and 20,000 to test on."""
    path = find(options.set, options.data)
    assert path is not None
    with np.load(path, allow_pickle=False) as found:
        X, y = found["X"], found["y"]
    order = np.random.default_rng(0).permutation(len(y))[: options.rows]
    test, train = order[:20_000], np.sort(order[20_000:])
    return X[train], y[train], X[test], y[test]


class Clock:
    """Seconds, and those of processors: of this process, and of each worker."""

    def __init__(self, client=None):
        self.client = client
        self.began, self.worked = time.perf_counter(), self._work()

    def _work(self) -> list[float]:
        others = {} if self.client is None else self.client.run(time.process_time)
        return [time.process_time(), *others.values()]

    def read(self) -> dict:
        seconds = time.perf_counter() - self.began
        spent = [now - before for now, before in zip(self._work(), self.worked, strict=True)]
        return {"seconds": seconds, "of processors": spent}


def told(name: str, clf, X: np.ndarray, y: np.ndarray, clock: dict) -> dict:
    """What a fit took and gave."""
    logs = clf.predict_log_proba(X)
    nll = -float(np.mean(logs[np.arange(len(y)), np.searchsorted(clf.classes_, y)]))
    stages = dict(zip(clf.history_["stage"], clf.history_["seconds"], strict=True))
    return {"fit": name, **clock, "nll": nll, "elbo": clf.elbo_, "until": stages}


def plain(options: argparse.Namespace) -> dict:
    from gpclf import GPClassifier

    X, y, *test = rows_of(options)
    clock = Clock()
    clf = GPClassifier(n_inducing=options.n_inducing, random_state=0).fit(X, y)
    return told("plain", clf, *test, clock.read())


def with_workers(options: argparse.Namespace) -> dict:
    import dask.array as da
    from distributed import Client, LocalCluster

    from gpclf.dask import DaskGPClassifier

    X, y, *test = rows_of(options)
    size = -(-len(y) // options.partitions)
    with (
        LocalCluster(
            n_workers=options.workers,
            processes=True,
            threads_per_worker=1,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = client.persist(
            [da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size)]
        )
        client.compute([part.sum() for part in rows], sync=True)  # they are there
        clock = Clock(client)
        clf = DaskGPClassifier(client, n_inducing=options.n_inducing, random_state=0).fit(*rows)
        spent = clock.read()
    return told(f"{options.workers} workers", clf, *test, spent)


def main() -> int:
    options = parsed()
    found = []
    for _ in range(options.repeat):  # in turns, each in a process of its own
        for run in (plain, with_workers):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found.append(pool.submit(run, options).result())
            print(json.dumps(found[-1]), flush=True)
    ours, theirs = (
        np.median([one["seconds"] for one in found if (one["fit"] == "plain") == wanted])
        for wanted in (False, True)
    )
    print(f"\n{ours:.1f} s with workers, {theirs:.1f} s without: {ours / theirs:.2f} times")
    print(f"at most {MOST:g} times: {'met' if ours <= MOST * theirs else 'not met'}")
    return int(ours > MOST * theirs)


if __name__ == "__main__":
    sys.exit(main())
