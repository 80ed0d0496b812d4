"""Parquet files, row group by row group."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from gpclf.data.sources.base import OfFiles, Piece, Table
from gpclf.data.sources.kinds import agreed
from gpclf.data.sources.paths import Paths, Seen, files_of
from gpclf.data.sources.prefetch import prefetched

SUFFIXES = (".parquet", ".pq")


class ParquetTable(Table):
    """Labelled rows in Parquet files, which `fit` reads row group by row group.

    Memory does not grow with the number of rows: two row groups and a sample of the rows are held
    at once, so let a row group have some hundred thousand rows at most.

    Parameters
    ----------
    paths : str, path or list of these
        A file, a folder, a pattern as "flights/*.parquet", or several of them; files of a folder
        or pattern in the order of their names. All have the same columns.
    label : str or None, default=None
        The column of classes; `predict_to` needs none.
    weight : str or None, default=None
        The column that says how much each row counts; rows of weight 0 are left out.
    X_std : dict or None, default=None
        For features that have errors the column of their standard deviations:
        `{"flux": "flux_err"}`.
    columns : list of str or None, default=None
        The features, in this order; None: all columns that have no other role.
    """

    def __init__(
        self,
        paths: Paths,
        label: str | None = None,
        *,
        weight: str | None = None,
        X_std: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ):
        super().__init__(label, weight, X_std, columns)
        self.paths = paths

    def open(self) -> "ParquetPieces":
        """Look at the footers of all files."""
        groups: list[Group] = []
        schema: pa.Schema | None = None
        first = ""
        for path in files_of(self.paths, SUFFIXES):
            seen = Seen.now(path)
            with opened(path) as file:
                own, of_file = file.schema_arrow.remove_metadata(), file.metadata
                if schema is None:
                    schema, first = own, path
                schema = agreed(schema, own, (first, path), self.roles.named)
                for number in range(of_file.num_row_groups):
                    groups.append(Group(seen, number, of_file.row_group(number).num_rows))
        assert schema is not None
        return ParquetPieces(str(self.paths), schema, groups)


class Group(NamedTuple):
    """A row group of a file."""

    file: Seen
    number: int
    n_rows: int

    @property
    def where(self) -> str:
        """As sentences name it."""
        return f"row group {self.number} of {self.file.path}"


class ParquetPieces(OfFiles):
    """The row groups of all files."""

    @property
    def rows(self) -> list[int]:
        """As the footers say."""
        return [group.n_rows for group in self.items]

    def read(self, columns: Sequence[str], which: Sequence[int] | None = None) -> Iterator[Piece]:
        """One row group is read ahead."""
        numbers = range(len(self.items)) if which is None else which
        with _Reader(list(columns)) as reader:
            tasks = (self._task(reader, int(number)) for number in numbers)
            for number, rows in prefetched(tasks):
                yield Piece(number, self.items[number].where, rows)
                del rows

    def _task(self, reader: "_Reader", number: int) -> Callable[[], tuple[int, pa.Table]]:
        return partial(reader.read, number, self.items[number])


class _Reader:
    """Reads groups; the file of the last one stays open."""

    def __init__(self, columns: list[str]):
        self.columns = columns
        self.seen: Seen | None = None
        self.file: ParquetFile | None = None

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self.file is not None:
            self.file.close()

    def read(self, number: int, group: Group) -> tuple[int, pa.Table]:
        """The wanted columns, and the number that the group has among all."""
        if self.file is None or group.file != self.seen:
            self.__exit__()
            group.file.refuse_change()
            self.seen, self.file = group.file, opened(group.file.path)
        return number, read_group(self.file, group.number, self.columns, group.file.path)


def opened(path: str) -> ParquetFile:
    """A Parquet file, or one sentence."""
    try:
        return ParquetFile(path, memory_map=False, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the system, which has its own words
            raise
        raise ValueError(f"{path} cannot be read as Parquet: {_plain(error)}.") from None


def read_group(file: ParquetFile, number: int, columns: list[str] | None, name: str) -> pa.Table:
    """One row group; one sentence where the file is damaged there."""
    try:
        return file.read_row_group(number, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"Row group {number} of {name} cannot be read: {_plain(error)}.") from None


def _plain(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
