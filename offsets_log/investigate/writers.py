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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offsets_log.events import BatchEnd, BatchStart, Event, LogEnd, LogEvent
from offsets_log.investigate.holders import Holder
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import INT64_MIN
from offsets_log.rows.missing_columns import without_missing_columns
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    TOPIC_PARTITION_COLUMNS,
    Column,
    Row,
)

if TYPE_CHECKING:
    from offsets_log.investigate.writer_counts import Writers

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
HELD = frozenset({"client", "member"})
"""``--per`` for which somebody held a partition."""

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

    def add(self, other: Tally) -> None:
        """Add what the writer wrote elsewhere; of minutes nothing."""
        for name in ("records", "commits", "tombstones", "noop_commits", "bytes", "garbage_bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first_ms is not None and other.last_ms is not None:
            self.first_ms = other.first_ms if self.first_ms is None else min(self.first_ms, other.first_ms)
            self.last_ms = other.last_ms if self.last_ms is None else max(self.last_ms, other.last_ms)


def begin_ms(number: int, length_ms: int) -> int:
    """Return when the hour or minute of a number begins; the earliest one as early as a timestamp can be."""
    return max(number * length_ms, INT64_MIN)


def name_of(holder: Holder, per: str) -> Writer:
    """Return what names somebody who held a partition; a member's group comes before this."""
    client = holder.client_id, holder.host
    return client if per == "client" else (holder.member_id, holder.group_instance_id, *client)


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
