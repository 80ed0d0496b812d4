"""Labels, chunks, where they come from and how they are summed."""

from gpclf.data.chunk import Chunk
from gpclf.data.columns import Columns
from gpclf.data.labels import encode, refuse_missing
from gpclf.data.reduce import reduce
from gpclf.data.scaling import Scaling, blocks
from gpclf.data.streams import ArrayStream, Stream

__all__ = [
    "ArrayStream",
    "Chunk",
    "Columns",
    "Scaling",
    "Stream",
    "blocks",
    "encode",
    "reduce",
    "refuse_missing",
]
