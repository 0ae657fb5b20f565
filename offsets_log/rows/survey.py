"""Survey what an offsets partition holds: spans, gaps, kinds of records and groups, damage (`info`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from offsets_log.errors import Damage
from offsets_log.events import BatchStart, Event, LogEvent, TailFound
from offsets_log.kafka_releases import NEWEST, TABLE
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import Message
from offsets_log.messages.streams_group import DESCRIPTIONS, DESCRIPTIONS_SINCE
from offsets_log.replay.group import NO_EPOCH, Group
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column


def _writers(column: str, version: int) -> str:
    """Return the releases that write a value version, by the table of releases."""
    places = [n for n, row in enumerate(TABLE) if row.writes.get(column) == version]
    first, last = TABLE[places[0]], TABLE[places[-1]]
    if last is NEWEST:
        return f"{first.name} or later"
    ends_line = TABLE[places[-1] + 1].line != last.line
    end = ".".join(map(str, last.line)) if ends_line and last.line[0] else last.name
    return first.name if first is last else f"{first.name}–{end}"


_OFFSETS, _GROUPS = "offset_value_version", "group_value_version"
RELEASES_OF_VALUE: dict[tuple[int, int], str] = {
    (0, 0): _writers(_OFFSETS, 0),
    (1, 0): "0.9 or later",
    (1, 1): f"{_writers(_OFFSETS, 1)}, later with an explicit retention",
    (1, 2): "2.1 (IV0)",
    (1, 3): _writers(_OFFSETS, 3),
    (1, 4): _writers(_OFFSETS, 4),
    (2, 0): _writers(_GROUPS, 0),
    (2, 1): _writers(_GROUPS, 1),
    (2, 2): _writers(_GROUPS, 2),
    (2, 3): _writers(_GROUPS, 3),
}
"""(Record type, value version) → releases that write it (``OffsetCommitValue.json``, ``GroupMetadataValue.json``)."""

INFO_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("files", "int", "segment files"),
    Column("size_bytes", "bigint", "size of these files"),
    Column("batches", "bigint", "batches in them"),
    Column("records", "bigint", "records, control records too"),
    Column("tombstones", "bigint", "how many of them have no value"),
    Column("first_offset", "bigint", "offset of the first record; null if there is none"),
    Column("end_offset", "bigint", "where the log continues"),
    Column("gaps", "bigint", "places between batches where offsets are missing"),
    Column("missing_offsets", "bigint", "how many offsets are missing there"),
    Column("first_timestamp_ms", "bigint", "earliest time of a record"),
    Column("last_timestamp_ms", "bigint", "latest time of a record"),
    Column("cleaned_until", "bigint", "offset below which the cleaner has been, by its checkpoint; null without one"),
    Column("groups", "int", "groups after a load"),
    Column("offsets", "int", "committed offsets that are served after it"),
    Column("orphans", "int", "committed offsets whose group does not exist"),
    Column("corrupt", "int", "pieces that Kafka cannot have written"),
    Column("unsupported", "int", "pieces in a form that is not known here"),
    Column("record_names", "map<string,bigint>", "record type → how many records"),
    Column(
        "group_kinds", "map<string,bigint>", "kind of group → how many groups; simple ones have committed offsets only"
    ),
    Column("magics", "map<string,bigint>", "batch format → how many batches"),
    Column("compression", "map<string,bigint>", "codec → how many batches"),
    Column(
        "written_by",
        "map<string,bigint>",
        "releases that write such values → how many records; of what Kafka 4.4 adds to streams groups, how many groups",
    ),
    Column(
        "open_transactions",
        "array<struct<producer_id:bigint,first_record_offset:bigint,first_timestamp_ms:bigint,records:bigint,"
        "transactional_id:string,transaction_state:string,transaction_started_ms:bigint,transaction_timeout_ms:int,"
        "outcome:string,abort_command:string>>",
        "producer_id, first_record_offset, first_timestamp_ms, records; with __transaction_state what becomes of it, "
        "as in `state --table pending`",
    ),
    Column("tails", "array<string>", "what follows the last whole batch of a file, a sentence each"),
    Column(
        "missing",
        "array<struct<first_offset:bigint,last_offset:bigint,shown_by:string,explained_by:string>>",
        "parts of the log that are missing",
    ),
)


def releases_of(record_type: int, value_version: int | None, layout: Message | None) -> str | None:
    """Return the Kafka releases that write such a record, as far as its layout shows; None for a tombstone."""
    if value_version is None or layout is None:
        return None
    first, last = layout.releases
    if last is not None:
        return f"{last[0]}.{last[1]}" if first in (None, last) else f"{first[0]}.{first[1]}–{last[0]}.{last[1]}"
    if first is not None:
        return f"{first[0]}.{first[1]} or later"
    return RELEASES_OF_VALUE.get((record_type, value_version))


def written_by_later(groups: Iterable[Group]) -> Counter[str]:
    """Return how many groups have a record that only later releases write than its value version tells (``K44-1``).

    Of each group the record that counts after a load is looked at.
    """
    count = sum(any(getattr(group, name) != NO_EPOCH for name in DESCRIPTIONS) for group in groups)
    return Counter({f"{'.'.join(map(str, DESCRIPTIONS_SINCE))} or later": count} if count else {})


@dataclass(slots=True)
class Kinds:
    """Counts of batches and records by kind; the order of additions does not matter.

    Attributes:
        first_timestamp_ms, last_timestamp_ms: earliest and latest time of data records that have one.
    """

    record_names: Counter[str] = field(default_factory=Counter)
    releases: Counter[str] = field(default_factory=Counter)
    magics: Counter[int] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    tombstones: int = 0
    corrupt: int = 0
    unsupported: int = 0
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None

    def add_batches(self, magic: int, codec: str, count: int = 1) -> None:
        """Count batches of a magic and a codec."""
        self.magics[magic] += count
        self.codecs[codec] += count

    def add_records(self, record_type: int, value_version: int | None, layout: Message | None, count: int = 1) -> None:
        """Count data records of a type and a value version, None for tombstones."""
        self.record_names[RECORD_TYPES[record_type].name] += count
        if value_version is None:
            self.tombstones += count
        if releases := releases_of(record_type, value_version, layout):
            self.releases[releases] += count

    def add_control_records(self, name: str, count: int = 1) -> None:
        """Count control records of a type."""
        self.record_names[f"control {name}"] += count

    def add_not_decoded(self, count: int = 1) -> None:
        """Count records whose key or value cannot be read; each is damage too."""
        self.record_names["not decoded"] += count

    def add_damage(self, damage: Damage) -> None:
        """Count a piece that could not be read."""
        if damage.is_unsupported:
            self.unsupported += 1
        else:
            self.corrupt += 1

    def add_time(self, timestamp_ms: int | None) -> None:
        """Note when a data record was written; None is ignored."""
        if timestamp_ms is not None:
            first, last = self.first_timestamp_ms, self.last_timestamp_ms
            self.first_timestamp_ms = timestamp_ms if first is None else min(timestamp_ms, first)
            self.last_timestamp_ms = timestamp_ms if last is None else max(timestamp_ms, last)

    def add(self, other: Kinds) -> None:
        """Add the counts of other batches."""
        self.record_names.update(other.record_names)
        self.releases.update(other.releases)
        self.magics.update(other.magics)
        self.codecs.update(other.codecs)
        self.tombstones += other.tombstones
        self.corrupt += other.corrupt
        self.unsupported += other.unsupported
        self.add_time(other.first_timestamp_ms)
        self.add_time(other.last_timestamp_ms)


@dataclass(slots=True)
class Survey:
    """The contents of one offsets partition, counted.

    What its records are is counted by `investigate.survey_counts`, where it is asked for.

    Attributes:
        open_transactions: producer id → (first record offset, its timestamp, number of records) of transactions without
            a marker yet.
        first_offset, end_offset: offset of the first record, and where the log continues; None if it is empty.
        gaps: number of places inside where offsets are missing; compaction causes them, or a lost file.
        tails: what follows the last whole batch of a file, in words → whether it is blank (`TailFound.is_blank`).
        missing: what is missing around the segments and between them, with what explains it.
    """

    offsets_partition: int | None
    files: int
    size_bytes: int
    first_offset: int | None = None
    end_offset: int | None = None
    batches: int = 0
    records: int = 0
    gaps: int = 0
    missing_offsets: int = 0
    kinds: Kinds = field(default_factory=Kinds)
    open_transactions: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    tails: dict[str, bool] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    @classmethod
    def of(cls, log: PartitionLog) -> Survey:
        """Return a survey of this log in which nothing is counted yet."""
        return cls(log.offsets_partition, len(log.segments), log.size_bytes)

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Count events while passing them on."""
        for event in watched(events, self.kinds):
            match event:
                case BatchStart(_, batch, base_offset):
                    self._saw_batch(batch, base_offset)
                case Event():
                    self.records += 1
                case TailFound() | Missing():
                    self.saw(event)
            yield event

    def saw(self, found: TailFound | Missing) -> None:
        """Note what follows the last whole batch, in words, or what is missing."""
        if isinstance(found, Missing):
            self.missing.append(found)
        else:
            self.tails[f"{found.segment.file}: {describe_tail(found)}"] = found.is_blank

    def _saw_batch(self, batch: RecordBatch, base_offset: int) -> None:
        self.batches += 1
        if self.first_offset is None:
            self.first_offset = base_offset
        elif self.end_offset is not None and base_offset > self.end_offset:
            self.gaps += 1
            self.missing_offsets += base_offset - self.end_offset
        self.end_offset = batch.next_offset


def watched(events: Iterable[LogEvent], kinds: Kinds) -> Iterator[LogEvent]:
    """Count batches and damage while passing events on."""
    for event in events:
        match event:
            case BatchStart(batch=batch):
                kinds.add_batches(batch.magic, batch.compression)
            case Event(damage=Damage() as damage) | (Damage() as damage):
                kinds.add_damage(damage)
        yield event


def describe_tail(found: TailFound) -> str:
    """Describe a tail in words."""
    tail = found.tail
    if found.lost:
        what = {"torn": "a batch that was cut off", "zeros": "zeros"}[tail.kind]
        verdict = f"the log was cut, {found.lost} offsets of it were here or behind"
    else:
        what = {"torn": "a batch that was not written whole", "zeros": "preallocated zeros"}[tail.kind]
        is_normal = not found.segment.is_of_broken
        verdict = "normal at the end of a log" if is_normal else "its archive is broken, the log may have gone on here"
    return f"{tail.size_bytes} bytes from position {tail.position} on are {what}: {verdict}"
