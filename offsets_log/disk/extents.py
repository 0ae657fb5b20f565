"""How far copies of one partition reach: offsets, damaged pieces, leader epochs, what follows the last batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from offsets_log.broker.leader_lines import EpochEntry, Line, line_of
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.batch_rows import BatchRow, batch_rows
from offsets_log.data_directory.checkpoints import decode_leader_epoch_checkpoint
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.file_names import LEADER_EPOCHS
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.log_format.segment import Tail

CONTENT = BatchRow.base_offset, BatchRow.size_bytes, BatchRow.checksum
"""What is the same of a batch in all replicas that hold the same records."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a log that cannot be read.

    Attributes:
        begin: the offset behind the batch before it.
        end: the first offset of the batch behind it; None if there is none.
        place: file and position, in words.
    """

    begin: int
    end: int | None
    place: str


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a replica: offsets from ``begin`` to below ``end``.

    Attributes:
        damages: its damaged pieces, in the order of the log.
        size_bytes: of its whole batches.
        epochs: its leader epochs.
        content: a digest of the `CONTENT` and the leader epochs of its batches.
        tail: what follows its last batch.
    """

    begin: int
    end: int
    damages: tuple[Piece, ...]
    size_bytes: int
    epochs: Line
    content: bytes
    tail: Tail | None = None


@dataclass(slots=True)
class Pieces:
    """Collects the damaged pieces of a log while its batches are read."""

    log: PartitionLog
    found: list[Piece] = field(default_factory=list)
    reached: int = 0
    _open: list[str] = field(default_factory=list)

    def lose(self, damage: Damage) -> None:
        """Take a damaged piece."""
        self._open.append(f"position {damage.error.position} of {damage.error.file}")

    def take(self, rows: Table[BatchRow]) -> None:
        """Take the batches that follow."""
        if len(rows):
            self.close(int(rows[0].base_offset))
            self.reached = int(rows[-1].last_offset) + 1

    def close(self, end: int | None) -> None:
        """Say where the batch behind the last pieces begins; None at the end of the log."""
        self.found += [Piece(self.reached, end, place) for place in self._open]
        self._open.clear()


def extent_of(log: PartitionLog, advance: Callable[[int], None], *, in_bulk: bool) -> Extent:
    """Return how far a replica reaches; it is read whole.

    Args:
        advance: called with the size of whole batches read since the last call.
        in_bulk: what it is in `batch_rows`.
    """
    begin, size_bytes, content, tail = begin_of(log), 0, blake2b(), None
    pieces, runs = Pieces(log, reached=begin), list[EpochEntry]()
    for rows in batch_rows(log, in_bulk=in_bulk):
        match rows:
            case Damage():
                pieces.lose(rows)
            case Tail():
                tail = rows
            case _ if len(rows):
                pieces.take(rows)
                advance(size := int(rows.column(BatchRow.size_bytes).sum()))
                size_bytes += size
                content.update(rows.columns(*CONTENT, BatchRow.leader_epoch).tobytes())
                runs += _runs(rows)
    pieces.close(None)
    epochs = line_of(runs, _noted(log), pieces.reached)
    return Extent(begin, pieces.reached, tuple(pieces.found), size_bytes, epochs, content.digest(), tail)


def _runs(rows: Table[BatchRow]) -> Iterator[EpochEntry]:
    """Yield the leader epochs of batches, one for all that follow each other."""
    epochs = rows.column(BatchRow.leader_epoch)
    begins = [0, *(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist(), len(epochs)]
    for first, behind in pairwise(begins):
        yield EpochEntry(int(epochs[first]), int(rows[first].base_offset), int(rows[behind - 1].last_offset))


def _noted(log: PartitionLog) -> dict[int, int]:
    """Return the leader epochs of the checkpoint beside a log; none of one that cannot be read, as a broker does."""
    if LEADER_EPOCHS not in log.beside:
        return {}
    try:
        return decode_leader_epoch_checkpoint(log.beside[LEADER_EPOCHS](), LEADER_EPOCHS)
    except OffsetsLogError:
        return {}


def begin_of(log: PartitionLog) -> int:
    """Return the base offset in the first file's name: a compacted log begins there even without its first batches."""
    named = log.segments[0].base_offset
    return named if named is not None else next((batch.base_offset for batch in batches_of(log)), 0)
