"""Labels, columns, and the rows that inference sees."""

from gpclf.data.block import Block
from gpclf.data.chunk import Chunk
from gpclf.data.columns import Columns
from gpclf.data.fingerprint import fingerprint
from gpclf.data.labels import encode, refuse_missing
from gpclf.data.missing import Missing
from gpclf.data.rows import ArrayRows, ChunkRows, Kept, Rows
from gpclf.data.scaling import Scaling, blocks
from gpclf.data.summary import Summary
from gpclf.data.survey import Survey

__all__ = [
    "ArrayRows",
    "Block",
    "Chunk",
    "ChunkRows",
    "Columns",
    "Kept",
    "Missing",
    "Rows",
    "Scaling",
    "Summary",
    "Survey",
    "blocks",
    "encode",
    "fingerprint",
    "refuse_missing",
]
