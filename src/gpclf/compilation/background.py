"""Compilation in threads: XLA works outside Python's lock."""

import threading
from collections.abc import Callable

from gpclf.compilation.state import PROCESS


def in_background(work: Callable[[], None]) -> threading.Thread:
    """A thread that compiles, with its programs passed on when it is done."""
    thread = threading.Thread(target=work)
    with PROCESS.lock:
        PROCESS.threads[:] = [other for other in PROCESS.threads if other.is_alive()]
        PROCESS.threads.append(thread)
        thread.start()
    return thread


def compiling() -> bool:
    """Whether a thread may be compiling now."""
    return any(thread.is_alive() for thread in PROCESS.threads)
