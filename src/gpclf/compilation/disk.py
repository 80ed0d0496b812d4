"""The folder on disk with compiled programs, so that a second process need not compile.

It is named by the environment variable `GPCLF_CACHE` ("off": none), or is `gpclf` in the user's
cache folder. What it holds is machine code, trusted when it is read: the folder is the user's
alone, with a part for each kind of processor. JAX writes a program bit by bit where it reads it,
and another process that came upon half of one would warn. So each process has a folder of its own
inside, with links to what was there, and passes on what is new at the end of a call, whole; or of a
later one, or its own, where a thread still compiles.
"""

import atexit
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

from gpclf.compilation.background import compiling
from gpclf.compilation.state import PROCESS

VARIABLE = "GPCLF_CACHE"
MOST_BYTES = 2**28
ABANDONED = 7 * 86400  # seconds after which a process's own folder is a crash's


def _parent() -> Path:
    """The user's cache folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def processor() -> str:
    """What machine code depends on, in twelve letters."""
    text = platform.machine() + platform.processor()
    described = Path("/proc/cpuinfo")
    if described.is_file():
        lines = described.read_text().splitlines()
        text += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def make_room(folder: Path) -> None:
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


def folder(named: str | None) -> Path | None:
    """Where this process keeps programs, made if need be; None if nowhere."""
    if named not in PROCESS.folders:
        PROCESS.folders[named] = None if named == "off" else _made(named)
    return PROCESS.folders[named]


def _made(named: str | None) -> Path | None:
    """A folder of this process, with links to the programs of others."""
    try:
        path = (Path(named) if named else _parent() / "gpclf") / processor()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None  # another user's: not to be trusted
        make_room(path)
        own = Path(tempfile.mkdtemp(prefix="process-", dir=path))
        atexit.register(remove, own, os.getpid())
        for file in path.iterdir():
            if file.is_file():
                _link(file, own)
    except (OSError, RuntimeError) as error:  # no home or no links, or a disk full or read-only
        if named:
            warnings.warn(f"{VARIABLE}={named} cannot be used: {error}.", stacklevel=2)
        return None
    return own


def remove(own: Path, process: int) -> None:
    """At the end of a process: pass on what is new, and leave nothing behind."""
    if os.getpid() == process:  # and not a copy of it
        pass_on(own)
        shutil.rmtree(own, ignore_errors=True)


def pass_on(own: Path) -> None:
    """Give other processes what this one compiled, if there is anything new."""
    if compiling():
        return  # a program may be half written
    try:
        if own.is_dir() and (changed := own.stat().st_mtime_ns) != PROCESS.passed_on:
            PROCESS.passed_on = changed
            for file in own.iterdir():
                _link(file, own.parent)
    except OSError as error:  # a disk that is full, say: no reason to lose a fit
        warnings.warn(f"Compiled programs are not kept for later: {error}.", stacklevel=2)
