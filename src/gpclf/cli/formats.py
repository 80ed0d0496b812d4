"""The readers: each yields Arrow tables, or raises one sentence with file and line."""

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from gpclf.cli.errors import Mistake
from gpclf.cli.options import Reading, names
from gpclf.cli.sources import BLOCK_ROWS, Meter, Part
from gpclf.data.sources.kinds import compute as pc

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT")
DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
DELIMITERS = (",", ";", "\t", "|")
BLOCK_BYTES = 1 << 22
LINES = 10_000  # of JSON, or rows of a sheet, that become a block
MOST_FIELD = 1 << 27  # characters of one cell of a header

Columns = list[str] | None


def missing_words(reading: Reading) -> list[str]:
    """The words that stand for no value."""
    return [*MISSING, *names(reading.missing)]


class _Recoded(io.RawIOBase):
    """A stream of another encoding as UTF-8."""

    def __init__(self, stream: Any, encoding: str):
        super().__init__()
        self._stream, self._left = stream, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            content = self._stream.read(1 << 20)
            self._left = self._decoder.decode(content, final=not content).encode()
            if not content:
                break
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def _text(part: Part, meter: Meter, reading: Reading) -> Iterator[Any]:
    """The bytes of a text file as UTF-8, without a mark at its beginning."""
    try:
        plain = codecs.lookup(reading.encoding).name
    except LookupError:
        raise Mistake(
            f"There is no encoding {reading.encoding!r}: utf-8 and latin-1 are."
        ) from None
    with part.open(meter) as stream:
        if plain not in ("utf-8", "ascii"):
            stream = io.BufferedReader(_Recoded(stream, plain), 1 << 20)
        mark = stream.peek(4)[:4]
        if mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise Mistake(f"{part.name} is in UTF-16: give --encoding utf-16.")
        if mark.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        yield stream


def read_csv(part: Part, meter: Meter, reading: Reading, columns: Columns) -> Iterator[pa.Table]:
    """Text with a header, all columns as words."""
    if reading.decimal not in (".", ","):
        raise Mistake(f"--decimal must be . or a comma, got {reading.decimal!r}.")
    with _text(part, meter, reading) as stream:
        header, delimiter = _header(part, stream, reading)
        wanted = None if columns is None else [name for name in columns if name in header]
        try:
            for block in _csv_blocks(stream, header, wanted, delimiter, missing_words(reading)):
                yield _with_points(block) if reading.decimal == "," else block
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise Mistake(_what_is_wrong(part, reading, header, delimiter, error)) from None


def _csv_blocks(
    stream: io.BufferedReader,
    header: list[str],
    wanted: Columns,
    delimiter: str,
    missing: list[str],
) -> Iterator[pa.Table]:
    schema = pa.schema([(name, pa.string()) for name in header])
    if not stream.peek(1):
        yield schema.empty_table()
        return
    found = pyarrow.csv.open_csv(
        stream,
        read_options=pyarrow.csv.ReadOptions(
            column_names=header, block_size=BLOCK_BYTES, use_threads=False
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=schema,
            strings_can_be_null=True,
            null_values=missing,
            include_columns=wanted,
        ),
    )
    for batch in found:
        yield pa.Table.from_batches([batch])


def _with_points(block: pa.Table) -> pa.Table:
    """1,5 becomes 1.5."""
    return pa.table(
        {
            name: pc.replace_substring_regex(block[name], DECIMAL_COMMA, r"\1.\2")
            for name in block.column_names
        }
    )


def _header(part: Part, stream: io.BufferedReader, reading: Reading) -> tuple[list[str], str]:
    """The names of the columns, and what stands between them."""
    lines = iter(lambda: stream.readline(MOST_FIELD), b"")
    try:
        first = next((line for line in lines if line.strip()), b"").decode()
        delimiter = _delimiter(part, reading, first)
        rest = (line.decode() for line in lines)
        header = next(csv.reader(_chained(first, rest), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise Mistake(
            f"{part.name} has a first line that is not {reading.encoding}: "
            "give --encoding, for example latin-1."
        ) from None
    header = [name.strip() for name in header]
    if not header:
        raise Mistake(f"{part.name} is empty.")
    _check_header(part, header)
    return header, delimiter


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _delimiter(part: Part, reading: Reading, first: str) -> str:
    """As asked for, as the format has it, or the one that the first line has."""
    if reading.delimiter is not None:
        given = {"\\t": "\t", "tab": "\t"}.get(reading.delimiter, reading.delimiter)
        if len(given) != 1:
            raise Mistake(f"--delimiter must be one character or tab, got {reading.delimiter!r}.")
        return given
    usual = "\t" if part.kind == "tsv" else ","
    if usual in first:
        return usual
    return max((usual, *DELIMITERS), key=first.count)


def _check_header(part: Part, header: list[str]) -> None:
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice == "":
        raise Mistake(f"{part.name} has columns without a name in its first line.")
    figures = sum(_is_fraction(name) for name in header)
    if figures > len(header) / 2 or (twice is not None and figures):
        raise Mistake(
            f"{part.name} begins with a line of numbers: the first line must have the names of "
            "the columns."
        )
    if twice is not None:
        raise Mistake(f"{part.name} has two columns named {twice!r}: give each a name of its own.")


def _is_fraction(name: str) -> bool:
    """Whether a name is a number as data have it; whole numbers may number the columns."""
    try:
        return not float(name).is_integer()
    except (ValueError, OverflowError):
        return False


def _what_is_wrong(
    part: Part, reading: Reading, header: list[str], delimiter: str, error: Exception
) -> str:
    """The first line that cannot be read, found by reading the file again."""
    otherwise = f"{part.name} cannot be read as {part.kind}: {' '.join(str(error).split())}."
    if part.path is None:
        return otherwise
    with part.open(Meter(None)) as stream:
        if codecs.lookup(reading.encoding).name == "utf-8":
            for number, line in enumerate(stream, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as wrong:
                    return (
                        f"{part.name} has the byte 0x{line[wrong.start]:02x} in line {number}, "
                        "which is not UTF-8: give --encoding, for example latin-1."
                    )
    with io.TextIOWrapper(part.open(Meter(None)), reading.encoding, newline="") as lines:
        rows = csv.reader(lines, delimiter=delimiter)
        for row in rows:
            if row and len(row) != len(header):
                return (
                    f"{part.name} has {len(row)} values in line {rows.line_num}, where its header "
                    f"has {len(header)} columns."
                )
    return otherwise


def read_jsonl(part: Part, meter: Meter, reading: Reading, columns: Columns) -> Iterator[pa.Table]:
    """An object a line."""
    missing = set(missing_words(reading))
    rows: list[dict[str, Any]] = []
    with _text(part, meter, reading) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                rows.append(_object(line, number, part))
            if len(rows) == LINES:
                yield _from_rows(rows, columns, missing)
                rows = []
    if rows:
        yield _from_rows(rows, columns, missing)


def _object(line: bytes, number: int, part: Part) -> dict[str, Any]:
    """What a line holds, or one sentence on what it does not."""
    try:
        row = json.loads(line)
    except ValueError as error:
        problem = getattr(error, "msg", str(error))
        raise Mistake(f"{part.name} has no JSON in line {number}: {problem}.") from None
    if not isinstance(row, dict):
        raise Mistake(f"{part.name} has no JSON object in line {number}.")
    return row


def _from_rows(rows: list[dict[str, Any]], columns: Columns, missing: set[str]) -> pa.Table:
    found = dict.fromkeys(name for row in rows for name in row)
    kept = [name for name in found if columns is None or name in columns]
    return pa.table({name: _column([row.get(name) for row in rows], missing) for name in kept})


def _column(values: list[Any], missing: set[str]) -> pa.Array:
    """Values of one type as Arrow has it; of several as words."""
    values = [None if isinstance(v, str) and v.strip() in missing else v for v in values]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None else str(v) for v in values])


def read_parquet(
    part: Part, meter: Meter, reading: Reading, columns: Columns
) -> Iterator[pa.Table]:
    """Row group by row group."""
    if part.path is None:
        with part.open(meter) as stream:
            file = pyarrow.parquet.ParquetFile(pa.BufferReader(stream.read()))
    else:
        file = pyarrow.parquet.ParquetFile(part.path)
    size = 0 if part.path is None else part.path.stat().st_size
    present = file.schema_arrow.names
    kept = None if columns is None else [name for name in columns if name in present]
    done = 0
    with file:
        yield file.schema_arrow.empty_table().select(kept if kept is not None else present)
        for batch in file.iter_batches(BLOCK_ROWS, columns=kept):
            done += batch.num_rows
            meter.here = int(size * done / max(file.metadata.num_rows, 1))
            yield pa.Table.from_batches([batch])


def read_arrow(part: Part, meter: Meter, reading: Reading, columns: Columns) -> Iterator[pa.Table]:
    """A file or a stream of Arrow's."""
    with part.open(meter) as stream:
        if part.path is not None and stream.peek(6)[:6] == b"ARROW1":
            with pyarrow.ipc.open_file(pa.memory_map(str(part.path))) as file:
                size = part.path.stat().st_size
                yield file.schema.empty_table()
                for number in range(file.num_record_batches):
                    meter.here = size * number // file.num_record_batches
                    yield pa.Table.from_batches([file.get_batch(number)])
        elif stream.peek(6)[:6] == b"ARROW1":
            yield pyarrow.ipc.open_file(pa.BufferReader(stream.read())).read_all()
        else:
            with pyarrow.ipc.open_stream(stream) as batches:
                yield batches.schema.empty_table()
                for batch in batches:
                    yield pa.Table.from_batches([batch])


def read_excel(part: Part, meter: Meter, reading: Reading, columns: Columns) -> Iterator[pa.Table]:
    """The first sheet."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise Mistake('Excel needs openpyxl: pip install "gpclf[excel]".') from None
    with part.open(meter) as stream:
        content = io.BytesIO(stream.read())
    try:
        book = load_workbook(content, read_only=True, data_only=True)
    except Exception as error:
        raise Mistake(f"{part.name} is no workbook of Excel: {error}.") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    header = [str(name).strip() for name in next(rows, ()) if name is not None]
    if not header:
        raise Mistake(f"{part.name} has nothing in the first row of its first sheet.")
    _check_header(part, header)
    missing = set(missing_words(reading))
    some: list[dict[str, Any]] = []
    for row in rows:
        if any(value is not None for value in row):
            some.append(dict(zip(header, row, strict=False)))
        if len(some) == LINES:
            yield _from_rows(some, columns, missing)
            some = []
    if some:
        yield _from_rows(some, columns, missing)


Reader = Callable[[Part, Meter, Reading, Columns], Iterator[pa.Table]]
READERS: dict[str, Reader] = {
    "csv": read_csv,
    "tsv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "arrow": read_arrow,
    "excel": read_excel,
}
