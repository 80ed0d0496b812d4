"""The length of one of our calls, in which JAX keeps programs in our folder on disk.

JAX has such a cache for the whole process. It is on for our own calls only, and left as it is
where the user has one.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from gpclf.compilation.disk import VARIABLE, folder, pass_on
from gpclf.compilation.programs import give_back
from gpclf.compilation.state import PROCESS

P = ParamSpec("P")
R = TypeVar("R")

FOLDER = "jax_compilation_cache_dir"
SHORTEST = "jax_persistent_cache_min_compile_time_secs"
OTHERS = "jax_persistent_cache_enable_xla_caches"  # of graphics cards; a program knows their path
WORTH_KEEPING = 0.02  # seconds of compilation


def _begin() -> None:
    """Let JAX keep programs in our folder, unless it has one of the user's."""
    ours = folder(os.environ.get(VARIABLE))
    if ours is None or not ours.is_dir() or getattr(jax.config, FOLDER) is not None:
        return
    for name, value in ((FOLDER, str(ours)), (SHORTEST, WORTH_KEEPING), (OTHERS, "none")):
        PROCESS.settings[name] = getattr(jax.config, name)
        jax.config.update(name, value)
    reset_cache()
    PROCESS.folder = ours


def _end() -> None:
    """Give JAX its settings back, and other processes what is new."""
    if not PROCESS.settings:
        return
    for name, value in PROCESS.settings.items():
        jax.config.update(name, value)
    PROCESS.settings.clear()
    reset_cache()
    pass_on(PROCESS.folder)


@contextmanager
def _kept() -> Iterator[None]:
    """A scope in which JAX keeps programs in our folder; threads may be in it together."""
    with PROCESS.lock:
        if PROCESS.calls == 0:
            give_back()
            _begin()
        PROCESS.calls += 1
    try:
        yield
    finally:
        with PROCESS.lock:
            PROCESS.calls -= 1
            if PROCESS.calls == 0:
                _end()


def compiled_once(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with its programs taken from disk, or kept there once compiled."""

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _kept():
            return function(*args, **kwargs)

    return scoped
