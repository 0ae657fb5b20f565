"""What an offsets partition holds, on one page: spans, gaps, kinds of records and groups, damage (`info`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from offsets_log.errors import Damage
from offsets_log.log_format.batch import NO_TIMESTAMP, RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import ControlRecord
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.pipeline import BatchStart, Event, LogEvent, TailFound

RELEASES_OF_VALUE: dict[tuple[int, int], str] = {
    (0, 0): "0.8.2",
    (1, 0): "0.9 or later",
    (1, 1): "0.9–2.0, later with an explicit retention",
    (1, 2): "2.1 (IV0)",
    (1, 3): "2.1–4.0",
    (1, 4): "4.1 or later",
    (2, 0): "0.9–0.10.0",
    (2, 1): "0.10.1–2.0",
    (2, 2): "2.1–2.2",
    (2, 3): "2.3 or later",
}
"""(record type, value version) → who writes it (``records.md`` §8.3)."""


def releases_of(record: CoordinatorRecord) -> str | None:
    """Which Kafka releases write this record, as far as its layout tells."""
    if record.value_version is None or record.layout is None:
        return None
    first, last = record.layout.releases
    if last is not None:
        return f"{last[0]}.{last[1]}" if first in (None, last) else f"{first[0]}.{first[1]}–{last[0]}.{last[1]}"
    if first is not None:
        return f"{first[0]}.{first[1]} or later"
    return RELEASES_OF_VALUE.get((record.record_type, record.value_version))


@dataclass(slots=True)
class Survey:
    """What was found in one offsets partition.

    Attributes:
        first_offset, end_offset: of the first record, and where the log goes on; None if it is empty.
        first_timestamp_ms, last_timestamp_ms: of data records that have one.
        gaps: places inside where offsets are missing; compaction makes them, or a lost file.
        missing: around the segments and between them, with what explains it.
        open_transactions: producer id → (first record offset, its timestamp, records) without a marker yet.
    """

    offsets_partition: int | None
    files: int
    size_bytes: int
    first_offset: int | None = None
    end_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    batches: int = 0
    records: int = 0
    tombstones: int = 0
    gaps: int = 0
    missing_offsets: int = 0
    corrupt: int = 0
    unsupported: int = 0
    record_names: Counter[str] = field(default_factory=Counter)
    magics: Counter[int] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    releases: Counter[str] = field(default_factory=Counter)
    open_transactions: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    tails: list[str] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    @classmethod
    def of(cls, log: PartitionLog) -> Survey:
        """Nothing seen yet of this log."""
        return cls(log.offsets_partition, len(log.segments), log.size_bytes)

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Count events on their way to whoever reads them."""
        for event in events:
            match event:
                case BatchStart(_, batch, base_offset):
                    self._saw_batch(batch, base_offset)
                case Event():
                    self._saw_record(event)
                case Damage():
                    self._saw_damage(event)
                case TailFound() | Missing():
                    self.saw(event)
            yield event

    def saw(self, found: TailFound | Missing) -> None:
        """Keep what stands behind the last whole batch, in words, and what is missing."""
        if isinstance(found, Missing):
            self.missing.append(found)
        else:
            self.tails.append(f"{found.segment.file}: {describe_tail(found)}")

    def _saw_batch(self, batch: RecordBatch, base_offset: int) -> None:
        self.batches += 1
        self.magics[batch.magic] += 1
        self.codecs[batch.compression] += 1
        if self.first_offset is None:
            self.first_offset = base_offset
        elif self.end_offset is not None and base_offset > self.end_offset:
            self.gaps += 1
            self.missing_offsets += base_offset - self.end_offset
        self.end_offset = batch.next_offset

    def _saw_record(self, event: Event) -> None:
        self.records += 1
        match event:
            case Event(control=ControlRecord() as control):
                self.record_names[f"control {control.type}"] += 1
                if control.ends_transaction:
                    self.open_transactions.pop(event.batch.producer_id, None)
                return
            case Event(decoded=CoordinatorRecord() as decoded):
                self.record_names[decoded.name] += 1
                self.tombstones += decoded.is_tombstone
                if releases := releases_of(decoded):
                    self.releases[releases] += 1
                self._saw_transactional(event, decoded)
            case Event(damage=Damage() as damage):
                self.record_names["not decoded"] += 1
                self._saw_damage(damage)
        timestamp = event.record.timestamp_ms
        if timestamp != NO_TIMESTAMP:
            self._saw_time(timestamp)

    def _saw_time(self, timestamp_ms: int) -> None:
        first, last = self.first_timestamp_ms, self.last_timestamp_ms
        self.first_timestamp_ms = timestamp_ms if first is None else min(timestamp_ms, first)
        self.last_timestamp_ms = timestamp_ms if last is None else max(timestamp_ms, last)

    def _saw_transactional(self, event: Event, decoded: CoordinatorRecord) -> None:
        if event.batch.is_transactional and decoded.is_offset_commit:
            first = (event.record.offset, event.record.timestamp_ms, 0)
            offset, timestamp, count = self.open_transactions.get(event.batch.producer_id, first)
            self.open_transactions[event.batch.producer_id] = (offset, timestamp, count + 1)

    def _saw_damage(self, damage: Damage) -> None:
        if damage.is_unsupported:
            self.unsupported += 1
        else:
            self.corrupt += 1


def describe_tail(found: TailFound) -> str:
    """A tail in words."""
    tail = found.tail
    if found.lost:
        what = {"torn": "a batch that was cut off", "zeros": "zeros"}[tail.kind]
        verdict = f"the log was cut, {found.lost} offsets of it were here or behind"
    else:
        what = {"torn": "a batch that was not written whole", "zeros": "preallocated zeros"}[tail.kind]
        verdict = "normal at the end of a log"
    return f"{tail.size_bytes} bytes from position {tail.position} on are {what}: {verdict}"
