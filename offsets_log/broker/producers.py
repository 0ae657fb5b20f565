"""Track what a broker knows of producers while it opens a log, and the snapshots in which it keeps that.

References: ``ProducerStateManager.java``, ``ProducerAppendInfo.java``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import google_crc32c

from offsets_log.broker.batches import FileBatch, PlainMarker
from offsets_log.broker.failures import BrokerError
from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.log_file import LogFile
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.control_record import decode_control_record
from offsets_log.log_format.record import iter_records
from offsets_log.log_format.segment import Buffer

_SNAPSHOT_HEADER = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1
_CRC_COVERS_FROM = 6


class ProducerEntry(NamedTuple):
    """What is known of one producer (``CL-57``).

    Attributes:
        last_offset: last offset of its last batch of data since its epoch changed, −1 without one.
        offset_delta: from that batch's first offset to its last.
        first_offset: first offset of its open transaction, −1 without one.
    """

    epoch: int = b.NO_PRODUCER_EPOCH
    last_sequence: int = b.NO_SEQUENCE
    last_offset: int = -1
    offset_delta: int = 0
    timestamp_ms: int = b.NO_TIMESTAMP
    coordinator_epoch: int = -1
    first_offset: int = -1

    def with_data(self, batch: FileBatch) -> ProducerEntry:
        """Return the entry after a batch of data (``CL-58``)."""
        is_begin = self.first_offset < 0 and batch.is_transactional
        return ProducerEntry(
            batch.producer_epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.last_offset - batch.offset,
            batch.max_timestamp_ms,
            self.coordinator_epoch,
            batch.offset if is_begin else self.first_offset,
        )

    def with_marker(self, epoch: int, marker: PlainMarker) -> ProducerEntry:
        """Return the entry after a transaction's end; a marker of a new epoch clears the last batch (``CL-58``)."""
        known = self if epoch == self.epoch else ProducerEntry()
        return known._replace(
            epoch=epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=marker.timestamp_ms,
            first_offset=-1,
        )


Producers = dict[int, ProducerEntry]
"""Producer id → what is known of the producer."""


@dataclass(slots=True)
class Snapshots:
    """The ``.snapshot`` files of a partition: offset → the producers known there."""

    by_offset: dict[int, Producers]

    @classmethod
    def read(cls, files: Mapping[int, Buffer]) -> Snapshots:
        """Read the snapshots that are whole; a broker deletes the others when it finds them."""
        read = {offset: decode_snapshot(data) for offset, data in files.items()}
        return cls({offset: found for offset, found in sorted(read.items()) if found is not None})

    def remove_stray(self, base_offsets: Iterable[int]) -> None:
        """Remove snapshots that belong to no segment, except one after all segments (``removeStraySnapshots``)."""
        kept = set(base_offsets)
        stray = [offset for offset in self.by_offset if offset not in kept]
        newest = max(stray, default=None)
        for offset in stray:
            if offset != newest or (kept and offset < max(kept)):
                del self.by_offset[offset]


def decode_snapshot(data: Buffer) -> Producers | None:
    """Return the producers of a ``.snapshot``; None if it is not whole."""
    view = memoryview(data)
    if len(view) < _SNAPSHOT_HEADER.size:
        return None
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(view)
    end = _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size
    if version != SNAPSHOT_VERSION or not _SNAPSHOT_HEADER.size <= end <= len(view):
        return None
    if google_crc32c.value(bytes(view[_CRC_COVERS_FROM:])) != crc:
        return None
    entries = _SNAPSHOT_ENTRY.iter_unpack(view[_SNAPSHOT_HEADER.size : end])
    return {producer_id: ProducerEntry(*facts) for producer_id, *facts in entries}


def encode_snapshot(producers: Producers) -> bytes:
    """Return the file's contents, by ascending producer ids; a broker writes them in no order (``CL-57``)."""
    entries = b"".join(_SNAPSHOT_ENTRY.pack(producer_id, *entry) for producer_id, entry in sorted(producers.items()))
    body = len(producers).to_bytes(4) + entries
    return _SNAPSHOT_HEADER.pack(SNAPSHOT_VERSION, google_crc32c.value(body), 0)[:_CRC_COVERS_FROM] + body


@dataclass(slots=True)
class ProducerState:
    """The producers up to ``map_end_offset``.

    Attributes:
        ongoing: first offset of an open transaction → producer; in a damaged log two producers may share an offset.
        completed: first offset of each transaction read to its end → its marker's offset, until the high watermark is
            beyond.
    """

    snapshots: Snapshots
    entries: Producers = field(default_factory=dict)
    ongoing: dict[int, int] = field(default_factory=dict)
    completed: dict[int, int] = field(default_factory=dict)
    map_end_offset: int = 0
    snapshot_offset: int = 0

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open, or completed but still kept."""
        return min((*self.completed, *self.ongoing), default=None)

    def open_since(self) -> dict[int, int]:
        """Return producer → first offset of its open transaction."""
        return {producer_id: first_offset for first_offset, producer_id in self.ongoing.items()}

    def reach(self, high_watermark: int) -> None:
        """Drop completed transactions that end below an offset, which followers have reached."""
        self.completed = {first: last for first, last in self.completed.items() if last >= high_watermark}

    def active(self, now_ms: int, expiration_ms: int) -> Producers:
        """Return the producers not expired at a moment; one with an open transaction never expires (``CL-27``)."""
        return {
            producer_id: entry
            for producer_id, entry in self.entries.items()
            if entry.first_offset >= 0 or now_ms - entry.timestamp_ms < expiration_ms
        }

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int) -> None:
        """Reload the state from the newest snapshot between the two offsets, and remove snapshots outside of them."""
        for offset in list(self.snapshots.by_offset):
            if offset > log_end_offset or offset <= log_start_offset:
                del self.snapshots.by_offset[offset]
        newest = max(self.snapshots.by_offset, default=None)
        if log_end_offset == self.map_end_offset:
            self.map_end_offset = max(self.map_end_offset, log_start_offset)
            self.snapshot_offset = log_start_offset if newest is None else newest
            return
        self.entries = dict(self.snapshots.by_offset[newest]) if newest is not None else {}
        self.ongoing = {
            entry.first_offset: producer_id for producer_id, entry in self.entries.items() if entry.first_offset >= 0
        }
        self.completed.clear()
        self.map_end_offset = self.snapshot_offset = log_start_offset if newest is None else newest

    def take_snapshot(self) -> None:
        """Take a snapshot unless there is one for this offset."""
        if self.map_end_offset > self.snapshot_offset:
            self.snapshots.by_offset[self.map_end_offset] = dict(self.entries)
            self.snapshot_offset = self.map_end_offset

    def append(self, batch: FileBatch) -> Completed | None:
        """Add a batch with a producer; return the transaction that it ends.

        Raises:
            BrokerError: it contradicts the batches before it, or is no valid control batch (``D-8``).
        """
        producer_id = batch.producer_id
        entry = self.entries.get(producer_id, ProducerEntry())
        if batch.is_control:
            marker = _marker(batch)
            if marker is None:
                return None
            self.entries[producer_id] = entry.with_marker(batch.producer_epoch, marker)
            if entry.first_offset < 0:
                return None
            return Completed(producer_id, entry.first_offset, batch.offset, is_aborted=marker.type == "ABORT")
        if entry.first_offset >= 0 and not batch.is_transactional:
            raise BrokerError(
                f"producer {producer_id} writes outside of its open transaction",
                rule="D-8",
                file=batch.file,
                position=batch.position,
            )
        self.entries[producer_id] = entry = entry.with_data(batch)
        if entry.first_offset == batch.offset:
            self.ongoing[batch.offset] = producer_id
        return None

    def aborted_entry(self, completed: Completed) -> AbortedTransaction:
        """Return the ``.txnindex`` entry of a transaction that has ended but is not completed yet (``CL-43``)."""
        others = (first for first, producer_id in self.ongoing.items() if producer_id != completed.producer_id)
        last_stable_offset = min(others, default=completed.last_offset + 1)
        return AbortedTransaction(
            0, completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
        )

    def complete(self, completed: Completed) -> None:
        """Complete a transaction. Raises BrokerError if it was not started."""
        if self.ongoing.pop(completed.first_offset, None) is None:
            raise BrokerError(f"a transaction from {completed.first_offset} on that was not started ends", rule="D-8")
        self.completed[completed.first_offset] = completed.last_offset

    def rebuild(
        self, files: Mapping[int, LogFile], log_start_offset: int, last_offset: int, *, trusts_snapshots: bool
    ) -> None:
        """Rebuild the state up to an offset from the newest snapshot and later records (``rebuildProducerState``).

        Args:
            files: by ascending base offset.
            trusts_snapshots: whether a log without any snapshot is left unread, as after a clean stop.

        Raises:
            BrokerError: the records cannot be read in this way.
        """
        if trusts_snapshots and not self.snapshots.by_offset:
            for offset in (*list(files)[-2:], last_offset):
                self.map_end_offset = offset
                self.take_snapshot()
            return
        is_empty = not self.entries and self.map_end_offset >= last_offset
        self.truncate_and_reload(log_start_offset, last_offset)
        if last_offset > self.map_end_offset and not is_empty:
            self._read(files, log_start_offset, last_offset)
        self.map_end_offset = last_offset
        self.take_snapshot()

    def _read(self, files: Mapping[int, LogFile], log_start_offset: int, last_offset: int) -> None:
        snapshot_at = list(files)[-2:]
        last = floor_file(files, last_offset)
        for file in files_between(files, self.map_end_offset, last_offset):
            start = max(file.base_offset, self.map_end_offset, log_start_offset)
            self.map_end_offset = start
            if file.base_offset in snapshot_at:
                self.take_snapshot()
            end = file.size_bytes
            if file is last and (batch := file.translate(last_offset)) is not None:
                end = batch.position
            if (first := file.translate(start)) is not None:
                self._read_file(file, first.position, end)

    def _read_file(self, file: LogFile, start: int, end: int) -> None:
        if end < start:
            raise BrokerError(
                f"{end - start} bytes to read: its offsets go back", rule="D-8", file=file.file, position=start
            )
        completed = [self.append(batch) for batch in file.batches(start, end) if batch.producer_id >= 0]
        for transaction in completed:
            if transaction is not None:
                self.complete(transaction)


@dataclass(frozen=True, slots=True)
class Completed:
    """A transaction with its marker: its first offset, and the marker's offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


def files_between(files: Mapping[int, LogFile], start: int, end: int) -> list[LogFile]:
    """Return the files that may hold offsets from ``start`` to below ``end`` (``LogSegments.values``).

    Raises:
        BrokerError: the end is before the start.
    """
    if start == end:
        return []
    if end < start:
        raise BrokerError(f"segments from offset {start} to {end} are asked for", rule="D-8")
    floor = max((base for base in files if base <= start), default=None)
    return [file for base, file in files.items() if base < end and (floor is None or base >= floor)]


def floor_file(files: Mapping[int, LogFile], offset: int) -> LogFile | None:
    """Return the file with the largest base offset that is not beyond an offset; None without one."""
    base = max((base for base in files if base <= offset), default=None)
    return None if base is None else files[base]


def _marker(batch: FileBatch) -> PlainMarker | None:
    """Return the marker in the first record of a control batch; None if the batch has no record.

    Raises:
        InvalidBatchError: its records, or the key of the first, cannot be read.
        BrokerError: it is not the end of a transaction, or of an unknown type.
    """
    if (plain := batch.plain_marker()) is not None:
        return plain
    record = next(iter_records(batch.whole(), as_loaded=True), None)
    if record is None:
        return None
    if isinstance(record, Damage):
        raise batch.invalid(record.error.problem)
    try:
        control = decode_control_record(record)
    except OffsetsLogError as error:
        raise batch.invalid(error.problem) from None
    if not control.ends_transaction:
        raise BrokerError(
            f"a control record of type {control.type} where only the end of a transaction is expected",
            rule="D-8",
            file=batch.file,
            position=batch.position,
        )
    return PlainMarker(control.type, control.coordinator_epoch or 0, record.timestamp_ms)
