"""Files that are there completely or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def check_place(path: Path, option: str) -> None:
    """Complain now rather than after minutes of work."""
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent}: make it first.")
    if path.exists() and not path.is_file():
        return  # a device or a pipe, which is written as it is
    trial = _beside(path)
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file beside, that takes the place of `path` if all goes well; else it is gone."""
    device = path.exists() and not path.is_file()
    temporary = path if device else _beside(path)
    try:
        yield temporary
        if not device:
            _moved(temporary, path)
    except BaseException as error:
        if not device:
            with suppress(FileNotFoundError):
                temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise _named(error, path) from None
        raise


def _moved(temporary: Path, path: Path) -> None:
    """Safe on the disk, then in its place, with the mode that was there."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    if path.exists():
        temporary.chmod(path.stat().st_mode & 0o7777)
    os.replace(temporary, path)


def _named(error: OSError, path: Path) -> OSError:
    """The same about the file that the user named; Arrow has the number in its text only."""
    if error.filename not in (None, str(path)) and not Path(
        os.fsdecode(error.filename)
    ).name.startswith(f".{path.name}."):
        return error  # of a file that is read
    number = errno.ENOSPC if "No space left" in str(error) else error.errno
    return OSError(number or errno.EIO, os.strerror(number or errno.EIO), str(path))
