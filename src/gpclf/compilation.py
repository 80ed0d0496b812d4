"""Compiled programs, kept on disk so that a second process need not compile, and not for ever.

JAX has a cache on disk, for the whole process. Here it is on for the length of our own calls only,
and left as it is where the user has one. The folder is named by the environment variable
`GPCLF_CACHE` ("off": none), or is `gpclf` in the user's cache folder. What it holds is machine
code, trusted when it is read: the folder is the user's alone, with a part for each kind of
processor. JAX writes a program bit by bit where it reads it, and another process that came upon
half of one would warn. So each process has a folder of its own inside, with links to what was
there, and passes on what is new at the end of a call, whole; or of a later one, or its own, where
a thread still compiles.

In the first call of a process the objects that were there before are set aside: tracing makes so
many new ones that Python would look through all of them for garbage, a tenth of a second with
scikit-learn and JAX loaded.

In memory JAX keeps every program for ever. Each takes some 35 memory maps, of which Linux grants a
process 65,530: after some 200 fits of different shapes none would be left, and XLA would crash. So
ours are given back when there are many.
"""

import atexit
import gc
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "GPCLF_CACHE"
FOLDER = "jax_compilation_cache_dir"
SHORTEST = "jax_persistent_cache_min_compile_time_secs"
OTHERS = "jax_persistent_cache_enable_xla_caches"  # of graphics cards; a program knows their path
WORTH_KEEPING = 0.02  # seconds of compilation
MOST_BYTES = 2**28
ABANDONED = 7 * 86400  # seconds after which a process's own folder is a crash's
MOST_PROGRAMS = 500  # in memory
# XLA's newer generator of code for fused loops takes half as long again. Steps are mostly products
# and hardly faster for it; predictions are, and rows of many places. Only where that is known: an
# option that a version does not have is an error.
QUICK: dict | None = None
PLAIN: dict | None = None  # not optimised: a quarter of the time; for work that hardly takes any
if jax.__version_info__[:2] == (0, 10):
    QUICK = {"xla_cpu_use_fusion_emitters": False}
    PLAIN = {**QUICK, "xla_backend_optimization_level": 0}

_lock = threading.Lock()
_calls = 0  # under way, in all threads
_set_aside = False  # the objects of before, by us
_before: dict[str, object] = {}
_ours = Path()  # where JAX keeps programs now
_passed_on = 0  # when our folder had last changed, then
_threads: list[threading.Thread] = []  # that compile beside other work
_jitted: list[Any] = []
_notes: list[dict] = []  # on which programs there are


def program(function: Callable[..., R], options: dict | None = QUICK) -> Callable[..., R]:
    """`jax.jit`, for a function of ours whose programs may be given back.

    One does not call another: JAX has options for whole programs only.
    """
    jitted: Any = jax.jit(function, compiler_options=options)
    _jitted.append(jitted)
    return jitted


def program_of_two(function: Callable[..., R]) -> Callable[..., R]:
    """A program that is there sooner, and one that is faster: by a first argument, `fast`."""
    sooner, faster = program(function), program(function, None)

    @wraps(function)
    def chosen(fast: bool, *args: Any) -> R:
        return (faster if fast else sooner)(*args)

    return chosen


def forgotten_with_programs(notes: dict) -> dict:
    """`notes`, which are emptied whenever programs are given back."""
    _notes.append(notes)
    return notes


def in_memory() -> int:
    """How many programs of ours there are."""
    return sum(jitted._cache_size() for jitted in _jitted)


def _give_back() -> None:
    """Drop all programs where there are too many; those still wanted come back from disk."""
    if in_memory() > MOST_PROGRAMS:
        for jitted in _jitted:
            jitted.clear_cache()
        for notes in _notes:
            notes.clear()


def _parent() -> Path:
    """The user's cache folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _processor() -> str:
    """What machine code depends on, in twelve letters."""
    text = platform.machine() + platform.processor()
    described = Path("/proc/cpuinfo")
    if described.is_file():
        lines = described.read_text().splitlines()
        text += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _make_room(folder: Path) -> None:
    """Drop the oldest programs where there are too many bytes, and what crashes left behind."""
    paths = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process has just ended, or made room
            paths.append((path, path.stat()))
    for path, about in paths:
        if path.is_dir() and time.time() - about.st_mtime > ABANDONED:
            shutil.rmtree(path, ignore_errors=True)
    files = [(path, about) for path, about in paths if path.is_file()]
    excess = sum(about.st_size for _, about in files) - MOST_BYTES
    for path, about in sorted(files, key=lambda pair: pair[1].st_mtime):
        if excess <= 0:
            return
        excess -= about.st_size
        path.unlink(missing_ok=True)


def _link(path: Path, folder: Path) -> None:
    """Let a folder have a file, too; not one that it has, or that is gone by now."""
    with suppress(FileExistsError, FileNotFoundError):
        os.link(path, folder / path.name)


@cache
def folder(named: str | None) -> Path | None:
    """Where this process keeps programs, made if need be; None if nowhere."""
    if named == "off":
        return None
    try:
        path = (Path(named) if named else _parent() / "gpclf") / _processor()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None  # another user's: not to be trusted
        _make_room(path)
        own = Path(tempfile.mkdtemp(prefix="process-", dir=path))
        atexit.register(_remove, own, os.getpid())
        for file in path.iterdir():
            if file.is_file():
                _link(file, own)
    except (OSError, RuntimeError) as error:  # no home or no links, or a disk full or read-only
        if named:
            warnings.warn(f"{VARIABLE}={named} cannot be used: {error}.", stacklevel=2)
        return None
    return own


def _remove(own: Path, process: int) -> None:
    if os.getpid() == process:  # and not a copy of it
        _pass_on(own)
        shutil.rmtree(own, ignore_errors=True)


def beside(work: Callable[[], None]) -> threading.Thread:
    """A thread that compiles, with its programs passed on when it is done."""
    thread = threading.Thread(target=work)
    with _lock:
        _threads[:] = [other for other in _threads if other.is_alive()]
        _threads.append(thread)
        thread.start()
    return thread


def _pass_on(own: Path) -> None:
    """Give other processes what this one compiled, if there is anything new."""
    global _passed_on
    if any(thread.is_alive() for thread in _threads):
        return  # one of its programs may be half written
    try:
        if own.is_dir() and (changed := own.stat().st_mtime_ns) != _passed_on:
            _passed_on = changed
            for file in own.iterdir():
                _link(file, own.parent)
    except OSError as error:  # a disk that is full, say: no reason to lose a fit
        warnings.warn(f"Compiled programs are not kept for later: {error}.", stacklevel=2)


@contextmanager
def _kept() -> Iterator[None]:
    """A scope in which JAX keeps programs in our folder; threads may be in it together."""
    global _calls, _set_aside, _ours
    with _lock:
        if _calls == 0:
            _give_back()
            _set_aside = in_memory() == gc.get_freeze_count() == 0
            if _set_aside:
                gc.freeze()
            _before.clear()
            ours = folder(os.environ.get(VARIABLE))
            if ours is not None and ours.is_dir() and getattr(jax.config, FOLDER) is None:
                for name, value in (
                    (FOLDER, str(ours)),
                    (SHORTEST, WORTH_KEEPING),
                    (OTHERS, "none"),
                ):
                    _before[name] = getattr(jax.config, name)
                    jax.config.update(name, value)
                reset_cache()
                _ours = ours
        _calls += 1
    try:
        yield
    finally:
        with _lock:
            _calls -= 1
            if _calls == 0 and _set_aside:
                gc.unfreeze()
            if _calls == 0 and _before:
                for name, value in _before.items():
                    jax.config.update(name, value)
                reset_cache()
                _pass_on(_ours)


def compiled_once(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with its programs taken from disk, or kept there once compiled."""

    @wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _kept():
            return function(*args, **kwargs)

    return scoped
