"""Count records for writers one at a time, as `top` defines it: what sums over ledgers are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from offsets_log.errors import ReplayError
from offsets_log.events import Event, LogEvent
from offsets_log.investigate.holders import NOBODY, Holder, Holders, TopicIds, holders_of
from offsets_log.investigate.writers import HELD, HOUR_MS, MINUTE_MS, Tally, Writer, begin_ms, name_of, nobody
from offsets_log.log_format.batch import RecordBatch, time_of
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.profile import MODERN
from offsets_log.replay.topic_names import topic_names_in
from offsets_log.rows.batch_bytes import counted
from offsets_log.rows.shown import ALL, Shown


class Clients:
    """Who holds what, from the records read so far."""

    def __init__(self, topic_ids: Mapping[bytes, str]) -> None:
        self._names = dict(topic_ids)
        self._ids = TopicIds(self._names)
        self._folds: dict[str, GroupFold] = {}
        self._held: dict[str, Holders] = {}

    def saw(self, record: CoordinatorRecord) -> None:
        """Note what a record says of groups and topic ids."""
        for topic_id, name in topic_names_in(record):
            if topic_id not in self._names:
                self._names[topic_id] = name
                self._ids = TopicIds(self._names)
        if not record.is_offset_commit:
            with suppress(ReplayError):
                self._folds.setdefault(record.group, GroupFold(record.group, MODERN)).replay(record)
            self._held[record.group] = holders_of(self._folds[record.group].group)

    def holder(self, record: CoordinatorRecord | None, batch: RecordBatch) -> Holder | None:
        """Return the member that sent a commit, as far as the group metadata in force shows."""
        if record is None or not record.is_offset_commit or record.value is None:
            return None
        own, topic = record.value.get("topic_id"), record.key["topic"]
        ids = [*([bytes(own)] if own and any(own) else []), *self._ids.of(topic)]
        held = self._held.get(record.group, NOBODY)
        return held.of(topic, record.key["partition"], ids, is_plain=not MODERN.is_transactional(batch))


NameOf = Callable[[Event, CoordinatorRecord | None, Clients], Writer]


def _topic(record: CoordinatorRecord | None) -> str | None:
    return plain(record.key["topic"]) if record is not None and record.is_offset_commit else None


def _by_partition(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    if record is None or not record.is_offset_commit:
        return None, None
    return plain(record.key["topic"]), record.key["partition"]


def _by_hour(event: Event, record: CoordinatorRecord | None, clients: Clients) -> Writer:
    time_ms = time_of(event.record.timestamp_ms)
    return (None if time_ms is None else begin_ms(time_ms // HOUR_MS, HOUR_MS),)


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


@dataclass(slots=True)
class _Latest:
    writer: Writer
    bytes: int
    committed_offset: int | None


class OneByOne:
    """The writers of some offsets partitions, as `writers.top_rows` takes them."""

    def __init__(self, per: str) -> None:
        self.per = per
        self.tallies: dict[Writer, Tally] = {}
        self._minutes: dict[tuple[Writer, int], int] = {}

    def add(
        self,
        events: Iterable[LogEvent],
        offsets_partition: int | None,
        topic_ids: Mapping[bytes, str],
        shown: Shown = ALL,
    ) -> None:
        """Count the records of one offsets partition."""
        clients, latest = Clients(topic_ids), dict[bytes, _Latest]()

        def count(event: Event | None, size_bytes: int) -> None:
            record = event.decoded if event is not None else None
            if record is not None and self.per in HELD:
                clients.saw(record)
            if not (shown.is_all if record is None else shown.shows_key(plain(record.group), _topic(record))):
                return
            if event is None:
                self._of(nobody(self.per, offsets_partition)).bytes += size_bytes
                return
            writer = NAMES[self.per](event, record, clients)
            tally, time_ms = self._of(writer), time_of(event.record.timestamp_ms)
            tally.records += 1
            tally.bytes += size_bytes
            if time_ms is not None:
                tally.first_ms = time_ms if tally.first_ms is None else min(tally.first_ms, time_ms)
                tally.last_ms = time_ms if tally.last_ms is None else max(tally.last_ms, time_ms)
            if record is not None:
                self._saw_key(event, record, writer, size_bytes, latest)

        for _ in counted(events, count):
            pass

    def _saw_key(
        self, event: Event, record: CoordinatorRecord, writer: Writer, size_bytes: int, latest: dict[bytes, _Latest]
    ) -> None:
        raw_key, time_ms, tally = event.record.key, time_of(event.record.timestamp_ms), self._of(writer)
        assert raw_key is not None
        committed = record.value["offset"] if record.is_offset_commit and record.value is not None else None
        before = latest.get(raw_key)
        if before is not None:
            self._of(before.writer).garbage_bytes += before.bytes
        tally.tombstones += record.is_tombstone
        if committed is not None:
            tally.commits += 1
            tally.noop_commits += before is not None and before.committed_offset == committed
            if time_ms is not None:
                minute = writer, time_ms // MINUTE_MS
                self._minutes[minute] = self._minutes.get(minute, 0) + 1
        latest[raw_key] = _Latest(writer, size_bytes, committed)

    def _of(self, writer: Writer) -> Tally:
        return self.tallies.setdefault(writer, Tally())

    def finish(self) -> OneByOne:
        """Find each writer's busiest minute: the first of several."""
        for (writer, minute), count in self._minutes.items():
            tally, since_ms = self._of(writer), begin_ms(minute, MINUTE_MS)
            if tally.peak is None or (count, -since_ms) > (tally.peak[0], -tally.peak[1]):
                tally.peak = count, since_ms
        return self
