"""One piece ahead: the next one is read in a thread while this one is worked on."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def prefetched(tasks: Iterable[Callable[[], Any]]) -> Iterator[Any]:
    """What the tasks give, in their order; never more than two of them are in memory."""
    with ThreadPoolExecutor(1, thread_name_prefix="gpclf-read") as pool:
        coming: list[Future] = []
        for task in tasks:
            coming.append(pool.submit(task))
            if len(coming) == 2:
                yield coming.pop(0).result()
        while coming:
            yield coming.pop(0).result()
