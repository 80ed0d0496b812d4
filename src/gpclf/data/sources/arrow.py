"""Arrow: IPC files (Feather), and anything that gives batches again and again."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc

from gpclf.data.sources.base import OfFiles, Piece, Pieces, Table
from gpclf.data.sources.kinds import agreed
from gpclf.data.sources.paths import Seen, files_of
from gpclf.data.sources.prefetch import prefetched

SUFFIXES = (".arrow", ".feather", ".ipc")
MOST_ROWS = 2**17  # of a piece of a table that is in memory


class ArrowTable(Table):
    """Labelled rows in Arrow's own files, or as batches from anywhere, for `fit`.

    Parameters
    ----------
    data : path, list of paths, Arrow table, iterable of batches, or function
        Files in Arrow's IPC format (Feather, version 2), also a folder or a pattern; or anything
        that can be iterated over again and again and gives Arrow batches or tables (what has
        `__arrow_c_stream__`, as a frame of polars, will do); or a function without arguments that
        returns a new iterator. No length is asked for. Every pass must give the same rows.
    label, weight, X_std, columns
        As of `ParquetTable`.
    """

    def __init__(
        self,
        data: Any,
        label: str | None = None,
        *,
        weight: str | None = None,
        X_std: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ):
        super().__init__(label, weight, X_std, columns)
        self.data = data

    def open(self) -> Pieces:
        """Look at the files, or at the first batch."""
        if _are_paths(self.data):
            return _opened_files(self.data, self.roles.named)
        batches = Batches(self.data, self.roles.named)
        first = next(batches.tables(), None)
        if first is None:
            raise ValueError("The table has no batch: its columns are not known.")
        batches.schema = first.schema.remove_metadata()
        return batches


def _are_paths(data: Any) -> bool:
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def _opened_files(data: Any, only: list[str] | None) -> "ArrowPieces":
    found: list[RecordBatch] = []
    schema: pa.Schema | None = None
    first = ""
    for path in files_of(data, SUFFIXES):
        seen = Seen.now(path)
        with opened(path) as file:
            own = file.schema.remove_metadata()
            if schema is None:
                schema, first = own, path
            schema = agreed(schema, own, (first, path), only)
            found += [RecordBatch(seen, number) for number in range(file.num_record_batches)]
    assert schema is not None
    return ArrowPieces(str(data), schema, found)


def opened(path: str) -> Any:
    """An IPC file, or one sentence. Not mapped into memory, where it would count as ours."""
    try:
        return pyarrow.ipc.open_file(pa.OSFile(path))
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path} cannot be read as an Arrow file: {text}.") from None


class RecordBatch(NamedTuple):
    """A batch of an IPC file."""

    file: Seen
    number: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Its columns."""
        self.file.refuse_change()
        with opened(self.file.path) as file:
            try:
                rows = file.get_batch(self.number)
            except (pa.ArrowException, OSError) as error:
                text = " ".join(str(error).split()).rstrip(".")
                raise ValueError(f"{self.where} cannot be read: {text}.") from None
        return pa.Table.from_batches([rows]).select(list(columns))

    @property
    def where(self) -> str:
        """As sentences name it."""
        return f"batch {self.number} of {self.file.path}"


class ArrowPieces(OfFiles):
    """The batches of all files."""

    @property
    def rows(self) -> None:
        """A file does not say."""

    def read(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Piece]:
        """One batch is read ahead."""
        numbers = range(len(self.items)) if which is None else which

        def task(number: int) -> Piece:
            batch = self.items[number]
            return Piece(number, batch.where, batch.read(columns))

        yield from prefetched(partial(task, int(number)) for number in numbers)


class Batches(Pieces):
    """What an iterable gives, in its order and no other."""

    any_order = False
    name = "The table"

    def __init__(self, data: Any, only: list[str] | None = None):
        self.data, self.only = data, only
        self.schema = pa.schema([])

    @property
    def rows(self) -> None:
        """Nobody knows."""

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Nothing is known of it but that it is read again."""
        return ()

    def part(self, which: Sequence[int]) -> Pieces:
        """Its pieces cannot be had one by one."""
        raise ValueError("Batches that come one after the other cannot be divided: use files.")

    def tables(self) -> Iterator[pa.Table]:
        """Batch by batch, from the beginning."""
        for item in _iterated(self.data):
            yield _as_table(item)

    def read(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Piece]:
        """All that come, or those of `which`, which must rise."""
        wanted = None if which is None else [int(number) for number in which]
        if wanted is not None and wanted != sorted(wanted):
            raise ValueError("Batches come in their own order only.")
        for number, rows in enumerate(self.tables()):
            if wanted is not None and not wanted:
                return
            if wanted is not None and number != wanted[0]:
                continue
            where = f"batch {number}"
            agreed(self.schema, rows.schema, ("batch 0", where), self.only)
            yield Piece(number, where, rows.select(list(columns)))
            if wanted is not None:
                wanted.pop(0)
        if wanted:
            raise self.change()


def _iterated(data: Any) -> Iterable[Any]:
    """One more iteration; one sentence where there can be only one."""
    if isinstance(data, pa.Table):
        return data.to_batches(MOST_ROWS)
    whole = isinstance(data, pa.RecordBatch) or hasattr(data, "__arrow_c_stream__")
    if whole and not isinstance(data, Iterator | pa.RecordBatchReader):
        return _as_table(data).to_batches(MOST_ROWS)
    made: Any = data() if isinstance(data, Callable) else data  # type: ignore[arg-type]
    if made is data and isinstance(data, Iterator | pa.RecordBatchReader):
        raise TypeError(
            "The batches can be iterated over only once, and a fit needs several passes: give a "
            "list, a file, or a function that returns a new iterator."
        )
    if not isinstance(made, Iterable):
        raise TypeError(
            "ArrowTable takes files or batches that can be iterated over, got "
            f"{type(data).__name__}."
        )
    return made


def _as_table(item: Any) -> pa.Table:
    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if isinstance(item, pa.Table):
        return item
    if hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__"):
        return pa.table(item)
    raise TypeError(f"A batch must be of Arrow's, got {type(item).__name__}.")
