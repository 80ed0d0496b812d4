"""Blocks of rows into a file, by the end of its name."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

Write = Callable[[pa.Table], None]


@contextmanager
def writer(path: Path | None, suffix: str) -> Iterator[Write]:
    """A function that writes a block to the file, or to standard output."""
    with ExitStack() as stack:
        plain: Any = sys.stdout.buffer if path is None else stack.enter_context(path.open("wb"))
        open_ones: list[Any] = []
        schemas: list[pa.Schema] = []

        def write(block: pa.Table) -> None:
            if not open_ones:
                schemas.append(block.schema)
                open_ones.append(stack.enter_context(OPEN[suffix](plain, block.schema)))
            try:
                block = block.cast(schemas[0])
            except (pa.ArrowInvalid, ValueError) as error:
                raise ValueError(f"A column that is kept changes its type: {error}.") from None
            open_ones[0].write_table(block)

        yield write
    if path is None:
        sys.stdout.flush()


def _parquet(file: Any, schema: pa.Schema) -> Any:
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(file, schema)


def _arrow(file: Any, schema: pa.Schema) -> Any:
    from pyarrow.ipc import new_file

    return new_file(file, schema)


def _csv(file: Any, schema: pa.Schema, delimiter: str = ",") -> Any:
    from pyarrow.csv import CSVWriter, WriteOptions

    options = WriteOptions(quoting_style="needed", delimiter=delimiter)
    return CSVWriter(file, schema, write_options=options)


def _tsv(file: Any, schema: pa.Schema) -> Any:
    return _csv(file, schema, "\t")


class _Lines:
    """JSON, an object a line."""

    def __init__(self, file: Any, schema: pa.Schema):
        self._file = file

    def write_table(self, block: pa.Table) -> None:
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in block.to_pylist())
        self._file.write("".join(line + "\n" for line in lines).encode())

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        """The file is closed by who opened it."""


OPEN: dict[str, Callable[[Any, pa.Schema], Any]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _Lines,
    ".arrow": _arrow,
    ".feather": _arrow,
}
SUFFIXES = tuple(OPEN)
