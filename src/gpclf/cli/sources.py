"""Where a table comes from: a file, a folder of files, or standard input, as blocks of rows.

A block is an Arrow table of at most `BLOCK_ROWS` rows; only one is in memory at a time, and what a
reader of Arrow's keeps. Columns of text files are words: kinds.py says what they mean.
"""

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpclf.cli.errors import Mistake
from gpclf.cli.options import Reading

BLOCK_ROWS = 50_000
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
COMPRESSED = (".gz", ".bz2", ".zst")
STANDARD_INPUT = "-"


@dataclass
class Meter:
    """How much of all files has been read, in bytes."""

    total: int | None
    before: int = 0  # of the files that are done
    here: int = 0  # of the one being read

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if nobody knows."""
        return min((self.before + self.here) / self.total, 1.0) if self.total else None


class Counted(io.RawIOBase):
    """A binary stream that tells a meter how much of it was read."""

    def __init__(self, stream: Any, meter: Meter):
        super().__init__()
        self._stream, self._meter = stream, meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self._meter.here += len(content)
        return len(content)

    def close(self) -> None:
        if self._stream is not sys.stdin.buffer:
            self._stream.close()
        super().close()


@dataclass(frozen=True)
class Part:
    """One file of a table, or standard input."""

    path: Path | None
    kind: str

    @property
    def name(self) -> str:
        """As sentences name it."""
        return "standard input" if self.path is None else str(self.path)

    def open(self, meter: Meter) -> Any:
        """Its bytes, decompressed."""
        if self.path is None:
            return io.BufferedReader(Counted(sys.stdin.buffer, meter), 1 << 20)
        raw = io.BufferedReader(Counted(self.path.open("rb"), meter), 1 << 20)
        name = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(self.path.suffix.lower())
        if name is None:
            return raw
        plain: Any = pa.CompressedInputStream(pa.PythonFile(raw, "r"), name)
        return io.BufferedReader(_Readable(plain, raw), 1 << 20)


class _Readable(io.RawIOBase):
    """Arrow's stream as one of Python's."""

    def __init__(self, stream: Any, raw: Any):
        super().__init__()
        self._stream, self._raw = stream, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        super().close()


@dataclass
class Source:
    """A table that can be read once, block by block."""

    name: str
    parts: list[Part]
    reading: Reading
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        sizes = [None if part.path is None else part.path.stat().st_size for part in self.parts]
        self.meter = Meter(None if None in sizes else sum(size or 0 for size in sizes))

    def blocks(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Its rows; of formats that can, only the `columns` among those it has."""
        from gpclf.cli.formats import READERS  # slow to import

        for part in self.parts:
            try:
                for block in READERS[part.kind](part, self.meter, self.reading, columns):
                    for first in range(0, block.num_rows, BLOCK_ROWS):
                        yield block.slice(first, BLOCK_ROWS)
            except (pa.ArrowException, UnicodeDecodeError, EOFError) as error:
                text = " ".join(str(error).split())
                raise Mistake(f"{part.name} cannot be read as {part.kind}: {text}.") from error
            if part.path is not None:
                self.meter.before += part.path.stat().st_size
                self.meter.here = 0

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the first file; it must not be standard input."""
        from gpclf.cli.formats import READERS

        first = self.parts[0]
        block = next(iter(READERS[first.kind](first, Meter(None), self.reading, None)), None)
        return [] if block is None else block.column_names


def source(data: str, reading: Reading) -> Source:
    """The table of a name, or one sentence about why there is none."""
    if reading.format is not None and reading.format not in FORMATS:
        raise Mistake(f"--format must be one of {', '.join(FORMATS)}, got {reading.format!r}.")
    if data == STANDARD_INPUT:
        return Source("standard input", [Part(None, reading.format or "csv")], reading)
    path = Path(data)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if _is_table(each, path))
        if not found:
            raise Mistake(f"The folder {path} has no file of a table ({', '.join(SUFFIXES)}).")
        return Source(data, [Part(each, _kind(each, reading.format)) for each in found], reading)
    if not path.exists():
        raise Mistake(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise Mistake(f"{path} is empty.")
    return Source(data, [Part(path, _kind(path, reading.format))], reading)


def _is_table(path: Path, folder: Path) -> bool:
    """Whether a file of a folder is read: not what is hidden, as marks of other programs are."""
    within = path.relative_to(folder).parts
    hidden = any(part.startswith((".", "_")) for part in within)
    return path.is_file() and not hidden and _suffix(path) in SUFFIXES


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return name.suffix.lower()


def _kind(path: Path, given: str | None) -> str:
    if given is not None:
        return given
    suffix = _suffix(path)
    if suffix not in SUFFIXES:
        raise Mistake(
            f"The format of {path} is not known from its name: give --format, one of "
            f"{', '.join(FORMATS)}."
        )
    return SUFFIXES[suffix]
