"""The log that a coordinator writes to and loads from: what it needs of one, and a log in memory."""

from __future__ import annotations

from typing import Protocol

from offsets_log.coordinator.errors import CoordinatorError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import rebuild_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import iter_batches
from offsets_log.messages.internal_topics import OFFSETS_TOPIC

OFFSET_SIZE = 8
LEADER_EPOCH_AT = slice(12, 16)


class OffsetsLog(Protocol):
    """The partitions of ``__consumer_offsets`` on this broker."""

    def read(self, partition: int) -> PartitionLog:
        """Return the partition from its log start offset to its end (``L-2``, ``L-3``)."""

    def append(self, partition: int, batch: bytes) -> int:
        """Write one batch at the end, and return its base offset once enough replicas have it.

        The batch has base offset 0: `at_offset` returns the bytes to store.

        Raises:
            CoordinatorError: it was not written, with Kafka's name for the reason (NOT_ENOUGH_REPLICAS …). Any other
                exception means the same, and reaches the caller.
        """


def at_offset(batch: bytes, base_offset: int) -> bytes:
    """Return a batch, or messages of magic 0 or 1, moved from offset 0 to another."""
    return b"".join(_moved(part, base_offset) for part in iter_batches(batch) if isinstance(part, RecordBatch))


def _moved(batch: RecordBatch, by: int) -> bytes:
    if batch.magic == 0 and batch.codec.id:  # its inner offsets are absolute (records:M5)
        records = [record for record in iter_records(batch) if isinstance(record, Record)]
        return rebuild_batch(batch, [_moved_record(record, by) for record in records])
    return (batch.base_offset + by).to_bytes(OFFSET_SIZE) + batch.raw[OFFSET_SIZE:]


def _moved_record(record: Record, by: int) -> Record:
    return Record(offset=record.offset + by, timestamp_ms=record.timestamp_ms, key=record.key, value=record.value)


def with_leader_epoch(batch: bytes, leader_epoch: int) -> bytes:
    """Return a batch of magic 2 with another partition leader epoch, which its checksum does not cover."""
    return batch[: LEADER_EPOCH_AT.start] + leader_epoch.to_bytes(4, signed=True) + batch[LEADER_EPOCH_AT.stop :]


class MemoryLog:
    """A log in memory, for tests and programs without a disk.

    Attributes:
        fail_with: while set, every append raises it and nothing is written.
    """

    def __init__(self) -> None:
        self.fail_with: CoordinatorError | None = None
        self._written: dict[int, bytearray] = {}
        self._end: dict[int, int] = {}

    def read(self, partition: int) -> PartitionLog:
        """Return all that was appended, as one segment."""
        segment = Segment(f"{OFFSETS_TOPIC}-{partition}/memory.log", 0, self.written(partition))
        return PartitionLog(partition, (segment,))

    def append(self, partition: int, batch: bytes) -> int:
        """Append a batch after the last one."""
        if self.fail_with is not None:
            raise self.fail_with
        base_offset = self._end.get(partition, 0)
        stored = at_offset(batch, base_offset)
        self._written.setdefault(partition, bytearray()).extend(stored)
        *_, last = iter_batches(stored)
        assert isinstance(last, RecordBatch)
        self._end[partition] = last.next_offset
        return base_offset

    def written(self, partition: int) -> bytes:
        """Return the bytes of a partition, as a segment file would hold them."""
        return bytes(self._written.get(partition, b""))

    def partitions(self) -> list[int]:
        """Return the partitions to which anything was appended."""
        return sorted(self._written)
