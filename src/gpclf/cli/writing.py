"""Files that are there completely or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpclf.cli.errors import Mistake


def check_place(path: Path, option: str) -> None:
    """Complain now rather than after minutes of work."""
    if path.is_dir():
        raise Mistake(f"{option} {path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise Mistake(f"There is no folder {path.parent}: make it first.")
    if path.exists() and not path.is_file():
        return  # a device or a pipe, which is written as it is
    trial = _beside(path)
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror}.") from None


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file beside, that takes the place of `path` if all goes well; else it is gone."""
    if path.exists() and not path.is_file():
        yield path
        return
    temporary = _beside(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        # Arrow's errors have the number in their text only
        full = "No space left" in str(error)
        number = errno.ENOSPC if full else error.errno
        raise OSError(number, os.strerror(number or errno.EIO), str(path)) from None
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
