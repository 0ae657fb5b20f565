"""Count who writes the topic, and how much of it is superfluous (`top`).

Each record is counted for one *writer*: a group, a topic, a topic's partition, an offsets partition, a client, a member
or an hour. Records that belong to no writer (transaction markers, group metadata where topics are asked for, commits of
unknown senders) are counted for the writer without a name.

bytes      A record's share of its batch as stored in the file (`rows.batch_bytes`). Batches without records belong
           to the writer without a name. So the bytes of all writers are the bytes of all batches that were read.
garbage    Bytes of records that a later record of the same key supersedes: what cleaning would free now
           (``C-4``–``C-6``). Keys are compared as bytes, as the cleaner does: type 0 and type 1 keys differ. The newest
           tombstone of a key, markers and aborted transactions are not garbage here.
no-op      A commit of the offset that the key's record before it committed.
names      Names as the broker reads them (``B-7``): several malformed ones that read the same are one writer.
gone       Offsets of a log that no longer have a record (`Remains`) are counted for nobody.
rate       Commits in each whole minute of the clock; a record of magic 0 has no time and counts in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from offsets_log.events import BatchEnd, BatchStart, Event, LogEnd, LogEvent
from offsets_log.investigate.clients import Clients
from offsets_log.investigate.holders import Holder
from offsets_log.log_format.batch import time_of
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import INT64_MIN
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.rows.batch_bytes import counted
from offsets_log.rows.missing_columns import without_missing_columns
from offsets_log.rows.shown import ALL, Shown
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    TOPIC_PARTITION_COLUMNS,
    Column,
    Row,
)

MINUTE_MS, HOUR_MS = 60_000, 3_600_000

WRITER_COLUMNS: dict[str, tuple[Column, ...]] = {
    "group": (GROUP_COLUMN,),
    "topic": TOPIC_PARTITION_COLUMNS[:1],
    "partition": TOPIC_PARTITION_COLUMNS,
    "offsets_partition": (OFFSETS_PARTITION_COLUMN,),
    "client": (
        Column("client_id", "string", "client id of the member that held the partition"),
        Column("host", "string", "host of that member"),
    ),
    "member": (
        GROUP_COLUMN,
        Column("member_id", "string", "the member that held the partition"),
        Column("group_instance_id", "string", "instance id of a static member"),
        Column("client_id", "string", "client id of that member"),
        Column("host", "string", "host of that member"),
    ),
    "hour": (Column("hour_timestamp_ms", "bigint", "when the hour begins"),),
}
"""``--per`` → the columns that name a writer; all are null for the one without a name."""

COUNT_COLUMNS = (
    Column("records", "bigint", "records of any type"),
    Column("commits", "bigint", "offset commits with a value"),
    Column("tombstones", "bigint", "tombstones of any type"),
    Column("noop_commits", "bigint", "commits of the offset that was committed before"),
    Column("bytes", "bigint", "bytes of the records: their shares of the bytes of their batches"),
    Column("bytes_share", "double", "share of the bytes of all writers"),
    Column("garbage_bytes", "bigint", "bytes of records superseded by a later one of the same key"),
    Column("garbage_ratio", "double", "garbage_bytes / bytes"),
    Column(
        "commits_per_second",
        "double",
        "mean of the minutes from that of the first record to that of the last; null if no record has a time",
    ),
    Column("peak_commits_per_second", "double", "mean of the busiest minute"),
    Column("peak_minute_timestamp_ms", "bigint", "when that minute begins"),
    Column("first_timestamp_ms", "bigint", "time of the earliest record"),
    Column("last_timestamp_ms", "bigint", "time of the latest record"),
)

ORDERS = {
    "records": "records",
    "bytes": "bytes",
    "garbage": "garbage_bytes",
    "noop": "noop_commits",
    "rate": "peak_commits_per_second",
}
"""``--by`` → the column to sort by."""

Writer = tuple[object, ...]
"""The values of `WRITER_COLUMNS`."""


@dataclass(slots=True)
class Tally:
    """The amount that one writer wrote.

    Attributes:
        first_ms, last_ms: None as long as no record had a time.
        peak: commits of the busiest minute, and when it begins; None without a commit that has a time.
    """

    records: int = 0
    commits: int = 0
    tombstones: int = 0
    noop_commits: int = 0
    bytes: int = 0
    garbage_bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    peak: tuple[int, int] | None = None

    def saw_time(self, time_ms: int) -> None:
        """Note that a record was written at a time."""
        self.first_ms = time_ms if self.first_ms is None else min(self.first_ms, time_ms)
        self.last_ms = time_ms if self.last_ms is None else max(self.last_ms, time_ms)


# ------------------------------------------------------------------------------------------- of what writer

NameOf = Callable[[Event, CoordinatorRecord | None, "Clients"], Writer]


def _topic(record: CoordinatorRecord | None) -> str | None:
    return plain(record.key["topic"]) if record is not None and record.is_offset_commit else None


def _by_partition(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    if record is None or not record.is_offset_commit:
        return None, None
    return plain(record.key["topic"]), record.key["partition"]


def begin_ms(number: int, length_ms: int) -> int:
    """Return when the hour or minute of a number begins; the earliest one as early as a timestamp can be."""
    return max(number * length_ms, INT64_MIN)


def _by_hour(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    time_ms = time_of(event.record.timestamp_ms)
    return (None if time_ms is None else begin_ms(time_ms // HOUR_MS, HOUR_MS),)


def name_of(holder: Holder, per: str) -> Writer:
    """Return what names somebody who held a partition; a member's group comes before this."""
    client = holder.client_id, holder.host
    return client if per == "client" else (holder.member_id, holder.group_instance_id, *client)


def _by_client(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    holder = clients.holder(record, event.batch)
    return (None, None) if holder is None else name_of(holder, "client")


def _by_member(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    holder = clients.holder(record, event.batch)
    group = None if record is None else plain(record.group)
    return (group, None, None, None, None) if holder is None else (group, *name_of(holder, "member"))


NAMES: dict[str, NameOf] = {
    "group": lambda event, record, clients: (None if record is None else plain(record.group),),
    "topic": lambda event, record, clients: (_topic(record),),
    "partition": _by_partition,
    "offsets_partition": lambda event, record, clients: (event.offsets_partition,),
    "client": _by_client,
    "member": _by_member,
    "hour": _by_hour,
}


# ----------------------------------------------------------------------------------------------- counting


@dataclass(slots=True)
class Remains:
    """How much of some logs remains; once every offset had a record of its own.

    Attributes:
        offsets: number of offsets in the logs, from the beginning of the first segment to where the log continues.
        records: number of records among them that were read.
    """

    offsets: int = 0
    records: int = 0

    @property
    def gone(self) -> int:
        """The number of offsets without a record: cleaned away, missing or unreadable; their writers are unknown."""
        return max(self.offsets - self.records, 0)

    def add(self, log: PartitionLog, first_offset: int | None, end_offset: int, records: int) -> None:
        """Add one log as far as it was read; without a first offset nothing of it was.

        Args:
            first_offset: base offset of its first batch, used if no file's name has one.
        """
        begin = log.segments[0].base_offset if log.segments else None
        begin = first_offset if begin is None else begin
        if begin is not None:
            self.offsets += max(end_offset - begin, 0)
            self.records += records

    def watch(self, log: PartitionLog, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Add a log while passing its events on."""
        first_offset, end_offset, records = None, 0, 0
        for event in events:
            match event:
                case Event():
                    records += 1
                case BatchStart(base_offset=base_offset) if first_offset is None:
                    first_offset = base_offset
                case BatchEnd(read_until=offset) | LogEnd(offset):
                    end_offset = max(end_offset, offset)
            yield event
        self.add(log, first_offset, end_offset, records)


@dataclass(slots=True)
class _Latest:
    """The latest record of a key: its writer, its bytes, the offset it commits (None if it is no commit)."""

    writer: Writer
    bytes: int
    committed_offset: int | None


@dataclass(slots=True)
class Writers:
    """All writers of some offsets partitions.

    Attributes:
        per: a key of `WRITER_COLUMNS`.
        minutes: (writer, minute) → commits; `finish` finds the busiest minutes.
    """

    per: str
    tallies: dict[Writer, Tally] = field(default_factory=dict)
    minutes: dict[tuple[Writer, int], int] = field(default_factory=dict)

    def of(self, writer: Writer) -> Tally:
        """Return the tally of a writer."""
        tally = self.tallies.get(writer)
        if tally is None:
            tally = self.tallies[writer] = Tally()
        return tally

    def finish(self) -> None:
        """Find each writer's busiest minute: the first of several."""
        for (writer, minute), count in self.minutes.items():
            tally = self.of(writer)
            since_ms = begin_ms(minute, MINUTE_MS)
            if tally.peak is None or (count, -since_ms) > (tally.peak[0], -tally.peak[1]):
                tally.peak = count, since_ms


def count_writers(
    events: Iterable[LogEvent],
    writers: Writers,
    offsets_partition: int | None,
    topic_ids: Mapping[bytes, str],
    *,
    shown: Shown = ALL,
) -> Iterator[LogEvent]:
    """Count the records of one offsets partition while passing its events on.

    Args:
        topic_ids: topic id → name, known from elsewhere.
        shown: which records count; of some only, undecodable records, markers and empty batches do not.
    """
    return counted(events, _Counting(writers, offsets_partition, topic_ids, shown).count)


class _Counting:
    """Counts the records of one offsets partition into `Writers`."""

    def __init__(
        self,
        writers: Writers,
        offsets_partition: int | None,
        topic_ids: Mapping[bytes, str],
        shown: Shown,
    ) -> None:
        self.writers = writers
        self.nobody = nobody(writers.per, offsets_partition)
        self.name_of = NAMES[writers.per]
        self.clients = Clients(topic_ids)
        self.needs_clients = writers.per in ("client", "member")
        self.shown = shown
        self.latest: dict[bytes, _Latest] = {}

    def count(self, event: Event | None, size_bytes: int) -> None:
        """Count one record with its share of the bytes; None for a batch without records."""
        record = event.decoded if event is not None else None
        if record is not None and self.needs_clients:
            self.clients.saw(record)
        if not self.shown.shows_record(record):
            return
        if event is None:
            self.writers.of(self.nobody).bytes += size_bytes
            return
        writer = self.name_of(event, record, self.clients)
        tally = self.writers.of(writer)
        tally.records += 1
        tally.bytes += size_bytes
        time_ms = time_of(event.record.timestamp_ms)
        if time_ms is not None:
            tally.saw_time(time_ms)
        if record is not None:
            self._saw_key(event, record, writer, tally, size_bytes, time_ms)

    def _saw_key(
        self,
        event: Event,
        record: CoordinatorRecord,
        writer: Writer,
        tally: Tally,
        size_bytes: int,
        time_ms: int | None,
    ) -> None:
        raw_key = event.record.key
        assert raw_key is not None
        committed = record.value["offset"] if record.is_offset_commit and record.value is not None else None
        before = self.latest.get(raw_key)
        if before is not None:
            self.writers.of(before.writer).garbage_bytes += before.bytes
        tally.tombstones += record.is_tombstone
        if committed is not None:
            tally.commits += 1
            tally.noop_commits += before is not None and before.committed_offset == committed
            if time_ms is not None:
                minute = writer, time_ms // MINUTE_MS
                self.writers.minutes[minute] = self.writers.minutes.get(minute, 0) + 1
        self.latest[raw_key] = _Latest(writer, size_bytes, committed)


def nobody(per: str, offsets_partition: int | None) -> Writer:
    """Return the writer without a name; an offsets partition always has one."""
    return (offsets_partition,) if per == "offsets_partition" else (None,) * len(WRITER_COLUMNS[per])


# -------------------------------------------------------------------------------------------------- rows


OF_BYTES = frozenset({"bytes", "bytes_share", "garbage_bytes", "garbage_ratio"})
"""Columns that depend on the sizes of batches in the file, which not every dump has."""

NEEDS = {
    "bytes": {"bytes"},
    "garbage": {"bytes"},
    "noop": {"committed_offset"},
    "rate": {"timestamp_ms"},
    "hour": {"timestamp_ms"},
    "client": {"members", "assignment", "client_id", "host"},
    "member": {"members", "assignment"},
}
"""``--by`` and ``--per`` → columns of other commands without which the answer would be a guess."""


def top_rows(writers: Writers, by: str, missing_columns: frozenset[str] = frozenset()) -> list[Row]:
    """Return one row of `WRITER_COLUMNS` and `COUNT_COLUMNS` for each writer, the largest first.

    Args:
        missing_columns: columns that the source of a log does not have.
    """
    total = sum(tally.bytes for tally in writers.tallies.values())
    missing_columns |= OF_BYTES if "bytes" in missing_columns else frozenset()
    by_name = sorted(writers.tallies.items(), key=lambda item: [(value is None, str(value)) for value in item[0]])
    rows = [without_missing_columns(_row(writers.per, *item, total), missing_columns) for item in by_name]
    rows.sort(key=lambda row: row[ORDERS[by]] or 0, reverse=True)
    return rows


def _row(per: str, writer: Writer, tally: Tally, total: int) -> Row:
    row: Row = {column.name: value for column, value in zip(WRITER_COLUMNS[per], writer, strict=True)}
    first_ms, last_ms = tally.first_ms, tally.last_ms
    minutes = 0 if first_ms is None or last_ms is None else last_ms // MINUTE_MS - first_ms // MINUTE_MS + 1
    row |= {
        "records": tally.records,
        "commits": tally.commits,
        "tombstones": tally.tombstones,
        "noop_commits": tally.noop_commits,
        "bytes": tally.bytes,
        "bytes_share": _ratio(tally.bytes, total),
        "garbage_bytes": tally.garbage_bytes,
        "garbage_ratio": _ratio(tally.garbage_bytes, tally.bytes),
        "commits_per_second": round(tally.commits / (60 * minutes), 3) if minutes else None,
        "peak_commits_per_second": round(tally.peak[0] / 60, 3) if tally.peak else None,
        "peak_minute_timestamp_ms": tally.peak[1] if tally.peak else None,
        "first_timestamp_ms": tally.first_ms,
        "last_timestamp_ms": tally.last_ms,
    }
    return row


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
