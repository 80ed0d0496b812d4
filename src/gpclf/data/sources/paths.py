"""Files as users name them: one, several, a folder or a pattern; and whether they have changed."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class Seen(NamedTuple):
    """A file as it was when a fit began."""

    path: str
    size: int
    changed: int  # nanoseconds

    @classmethod
    def now(cls, path: str) -> "Seen":
        """As it is, or one sentence."""
        try:
            told = os.stat(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no file {path} any more.") from None
        return cls(path, told.st_size, told.st_mtime_ns)

    def refuse_change(self) -> None:
        """One sentence where it is another file by now."""
        if Seen.now(self.path) != self:
            raise changed(self.path)


def changed(what: str) -> ValueError:
    """That a table is not the one that the first pass saw."""
    return ValueError(
        f"{what} has changed since the first pass over it: fit a table that stays as it is."
    )


def files_of(paths: Any, suffixes: tuple[str, ...]) -> list[str]:
    """The files, those of a folder or pattern in the order of their names; one sentence if none."""
    if not isinstance(paths, str | os.PathLike):
        found = [file for each in paths for file in files_of(each, suffixes)]
        if not found:
            raise ValueError("The list of files is empty: name at least one.")
        return found
    name, kinds = os.fspath(paths), " or ".join(suffixes)
    if os.path.isdir(name):
        inside = (path for path in Path(name).rglob("*") if _is_read(path, Path(name), suffixes))
        found = sorted(map(str, inside))
        if not found:
            raise FileNotFoundError(f"The folder {name} has no file that ends in {kinds}.")
        return found
    if os.path.exists(name):
        return [name]
    found = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    if not found:
        pattern = glob.has_magic(name)
        raise FileNotFoundError(
            f"No file matches {name}." if pattern else f"There is no file {name}."
        )
    return found


def _is_read(path: Path, folder: Path, suffixes: tuple[str, ...]) -> bool:
    """Whether a file of a folder is a table: not what is hidden, as marks of other programs are."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and path.suffix.lower() in suffixes
