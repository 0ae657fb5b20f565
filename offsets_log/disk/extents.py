"""How far copies of one partition reach, and where they first differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.scan.batch_rows import BatchRow, batch_rows
from offsets_log.errors import Damage
from offsets_log.log_format.batch import NO_PARTITION_LEADER_EPOCH
from offsets_log.log_format.partition_log import PartitionLog, batches_of

CONTENT = BatchRow.base_offset, BatchRow.size_bytes, BatchRow.checksum
"""What is the same of a batch in all replicas."""
Contents = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a replica: offsets from ``begin`` to below ``end``, damaged pieces, size in bytes.

    Attributes:
        epoch: the leader epoch of its last batch; −1 before magic 2.
        content: a digest of what `first_difference` compares.
    """

    begin: int
    end: int
    damaged: int
    size_bytes: int
    epoch: int
    content: bytes

    def is_as(self, best: Extent) -> bool:
        """Return whether there is nothing to tell of a replica, or of the best one itself."""
        return not self.damaged and (self.begin, self.content) == (best.begin, best.content)


def extent_of(log: PartitionLog, advance: Callable[[int], None], *, in_bulk: bool) -> Extent:
    """Return how far a replica reaches; it is read whole.

    Args:
        advance: called with the size of whole batches read since the last call.
        in_bulk: what it is in `batch_rows`.
    """
    end, damaged, epoch, content = 0, 0, NO_PARTITION_LEADER_EPOCH, blake2b()
    for rows in batch_rows(log, in_bulk=in_bulk):
        if isinstance(rows, Damage):
            damaged += 1
        elif len(rows):
            advance(int(rows.column(BatchRow.size_bytes).sum()))
            content.update(rows.columns(*CONTENT).tobytes())
            end, epoch = int(rows[-1].last_offset) + 1, int(rows[-1].leader_epoch)
    return Extent(_begin(log), end, damaged, log.size_bytes, epoch, content.digest())


def first_difference(one: PartitionLog, other: PartitionLog, *, in_bulk: bool) -> int | None:
    """Return the first base offset where two replicas differ, between the later beginning and the earlier end of both.

    A difference is a batch only one of them has, or two of the same base offset with another size or checksum. The
    partition leader epoch is not compared: it is no part of what was appended, nor of the checksum.

    Args:
        in_bulk: what it is in `batch_rows`.
    """
    begin = max(_begin(one), _begin(other))
    sides = _contents(one, begin, in_bulk), _contents(other, begin, in_bulk)
    left, right = NO_BATCHES, NO_BATCHES
    while True:
        left = left if len(left) else next(sides[0], NO_BATCHES)
        right = right if len(right) else next(sides[1], NO_BATCHES)
        count = min(len(left), len(right))
        if not count:
            return None
        differs = (left[:count] != right[:count]).any(axis=1)
        if differs.any():
            first = int(differs.argmax())
            return int(min(left[first, 0], right[first, 0]))
        left, right = left[count:], right[count:]


NO_BATCHES = np.zeros((0, len(CONTENT)), np.int64)


def _contents(log: PartitionLog, begin: int, in_bulk: bool) -> Iterator[Contents]:
    """Yield the `CONTENT` of batches from an offset on, some at a time."""
    for rows in batch_rows(log, in_bulk=in_bulk):
        if not isinstance(rows, Damage):
            contents = rows.columns(*CONTENT)
            contents = contents[contents[:, 0] >= begin]
            if len(contents):
                yield contents


def _begin(log: PartitionLog) -> int:
    """Return the base offset in the first file's name: a compacted log begins there even without its first batches."""
    named = log.segments[0].base_offset
    return named if named is not None else next((batch.base_offset for batch in batches_of(log)), 0)
