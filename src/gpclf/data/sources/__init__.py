"""Tables that are read, not held: Parquet and Arrow files, and batches from anywhere."""

from gpclf.data.sources.arrow import ArrowTable
from gpclf.data.sources.base import Piece, Pieces, Roles, Table
from gpclf.data.sources.parquet import ParquetTable
from gpclf.data.sources.streamed import Streamed, first_pass

__all__ = [
    "ArrowTable",
    "ParquetTable",
    "Piece",
    "Pieces",
    "Roles",
    "Streamed",
    "Table",
    "first_pass",
]
