"""Distributed: labelled rows that stay on the workers of a cluster, and a first look at them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from gpclf.data.block import Block
from gpclf.data.fingerprint import fingerprint
from gpclf.data.rows import Rows
from gpclf.data.scaling import Scaling
from gpclf.data.sources import work
from gpclf.data.sources.base import Pieces, Table
from gpclf.data.sources.coding import Coder
from gpclf.data.sources.collections import CollectionPieces
from gpclf.data.sources.dask_rows import Cluster, DaskBlocks, DaskRows, sent
from gpclf.data.sources.merging import taken_in
from gpclf.data.sources.parcels import Order, opened
from gpclf.data.sources.streamed import Streamed, begun, check_labels, settled
from gpclf.data.survey import Sample, Survey, drawn


class Distributed(Streamed):
    """Rows that come here only where some are asked for by their numbers."""

    def __init__(self, pieces: Pieces, coder: Coder, found: Survey, blocks: DaskBlocks):
        super().__init__(pieces, coder, found, blocks.sizes.tolist())
        self._blocks = blocks

    def rows(self, scaling: Scaling, dtype: Any, redraw: bool) -> Rows:  # type: ignore[override]
        """As inference sees them."""
        return DaskRows(self._blocks, self.found, scaling, dtype)

    def fingerprints(self) -> dict[str, str]:
        """Those of the numbers in each partition, wherever these come from."""
        found, tell = super().fingerprints(), delayed(work.told)
        del found["the files"]
        own = self._blocks.cluster([tell(block) for block in self._blocks.blocks])
        return found | {"the partitions": fingerprint(own)}

    def _of_pieces(self, which: np.ndarray | None) -> Iterator[tuple[int, Block]]:
        for number in range(len(self.sizes)) if which is None else which:
            yield int(number), *self._blocks.cluster([self._blocks.blocks[number]])

    def take(self, rows: np.ndarray) -> Block:
        """Some rows by their numbers, in this order."""
        return self._blocks.take(rows)


def distributed(
    table: Table, categorical: Any, class_weight: Any, cluster: Cluster, persist: bool
) -> Distributed:
    """Look at every row once, where it is; numbers of all rows stay there if `persist` says so."""

    def counts(pieces: Pieces, label: str) -> Counter:
        count, total = delayed(work.counted), Counter()
        for own in cluster([count(part, label) for part in parts_of(pieces, [label])]):
            total.update(own)
        return total

    pieces, coder = begun(table, categorical, class_weight, counts)
    parts = parts_of(pieces, coder.columns)
    look, order = delayed(work.looked), sent(Order.of(coder))
    found, sizes = Survey(coder.is_level), []
    for one in map(opened, cluster([look(part, order) for part in parts])):
        sizes.append(one.found.n_rows)
        taken_in(coder, found, one.coder, one.found)
    settled(coder, found, pieces.name)
    check_labels(coder, found, pieces.name)
    encode, order = delayed(work.encoded), sent(Order.of(coder))
    encoded = [encode(part, order, size) for part, size in zip(parts, sizes, strict=True)]
    blocks = DaskBlocks(cluster.holds(encoded) if persist else encoded, sizes, cluster)
    rows = drawn(found.n_rows)
    some = blocks.take(np.arange(found.n_rows) if rows is None else rows)
    found.sample = Sample(some.X, some.weight)
    found.typical = None if some.std is None else np.median(some.std, axis=0)
    return Distributed(pieces, coder, found, blocks)


def parts_of(pieces: Pieces, columns: list[str]) -> list[Delayed]:
    """Each piece as a task."""
    if isinstance(pieces, CollectionPieces):
        cut = delayed(work.cut)
        return [cut(piece, columns) for piece in pieces.pieces]
    if pieces.rows is None:
        raise TypeError(
            f"{pieces.name} is read batch after batch by one process: give Parquet files, or a "
            "frame of Dask's."
        )
    read = delayed(work.read)
    return [read(pieces.part([number]), columns, number) for number in range(len(pieces.rows))]
