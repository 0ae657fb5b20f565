"""One offsets partition as a row of segments, in memory or mapped: what the reading of files hands over.

`iter_log` walks all batches of a partition in offset order and tells what does not fit together: damage, tails, and
batches that an earlier segment already held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from offsets_log.errors import CorruptBatchError, Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import Buffer, Tail, iter_batches


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file.

    Attributes:
        file: name to show, such as ``backup.tar!__consumer_offsets-3/00000000000000000000.log``.
        base_offset: from the file's name; None where the name holds none.
        buffer: the whole file, read-only.
    """

    file: str
    base_offset: int | None
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The segments of one offsets partition, ordered by base offset.

    Attributes:
        offsets_partition: None where no directory name tells it and none was given.
        segments: in offset order.
        notes: what was found strange while the files were gathered, one sentence each.
        cleaned_until: records below were compacted (``cleaner-offset-checkpoint``): history before is incomplete.
    """

    offsets_partition: int | None
    segments: tuple[Segment, ...]
    notes: tuple[str, ...] = ()
    cleaned_until: int | None = None

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(len(segment.buffer) for segment in self.segments)


LogItem = RecordBatch | Damage | Tail


def iter_log(log: PartitionLog) -> Iterator[tuple[Segment, LogItem]]:
    """Every batch, damaged piece and tail of a partition with its segment, in file order.

    A batch that ends at or before the last offset already read is given as `Damage` and not twice: segments overlap
    when a copy was taken while the cleaner swapped them (``replay:C-24``).
    """
    last_offset = -1
    for i, segment in enumerate(log.segments):
        for item in iter_batches(segment.buffer, is_last=i == len(log.segments) - 1):
            match item:
                case RecordBatch() if item.last_offset <= last_offset:
                    yield segment, _overlap(segment, item, last_offset)
                case Damage(error):
                    error.at(file=segment.file)
                    yield segment, item
                case RecordBatch():
                    last_offset = item.last_offset
                    yield segment, item
                case _:
                    yield segment, item


def _overlap(segment: Segment, batch: RecordBatch, last_offset: int) -> Damage:
    error = CorruptBatchError(
        f"offsets up to {last_offset} were already read; this batch ends at {batch.last_offset}",
        file=segment.file,
        position=batch.position,
        record_offset=batch.base_offset,
        field="base_offset",
    )
    return Damage(error, batch.raw)
