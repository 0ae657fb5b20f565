"""Find why an offset is gone: what its tombstone shows, and what it does not.

A tombstone is a key without a value: expiry, OffsetDelete, DeleteGroups and the deletion of a topic all write the same
(``E-3``, ``E-19``–``E-21``). The difference is whether the offset could expire at the time of the tombstone, by the
rules of expiry (`replay.expiry`), the contents of the log just before it, and the broker's
``offsets.retention.minutes``:

retention known    due: *expired* (or deleted in the minutes until the next check, which comes to the same);
                   not due: *deleted*.
retention unknown  not even due with `LEAST_RETENTION_MS`, the least that a broker allows, or its group was using the
                   topic: *deleted*. Due by an expire timestamp of its own: *expired*, whatever the retention.
                   Else it is not known, and the removal is called *deleted*, with a reason that says so.

An offset can also go without a tombstone: its group was removed, after which nobody gets it (``J-15``), or the
tombstone itself was compacted away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from offsets_log.columnar.choose.selection import Selection
from offsets_log.errors import OffsetsLogError, ReplayError
from offsets_log.events import BareBatches, BareRecord, Event, LogEvent, Passed, Wants
from offsets_log.log_format.batch import NO_TIMESTAMP, RecordBatch
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record, decode_key
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import EXPIRE_TIMESTAMP, NEEDED_COLUMNS, Era, cycle_of
from offsets_log.replay.fold import replay_into, replay_record
from offsets_log.replay.group import Group, simple_group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState

BEFORE_ALL = -1
"""A record offset before all others."""

Read = Callable[[Selection, Wants], Iterable[LogEvent]]
"""Returns the events of a log that a selection asks for.

Of the data records at least those that the second argument wants are decoded.
"""

LEAST_RETENTION_MS = 60_000
"""The least retention: ``offsets.retention.minutes`` is at least 1."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The way in which an offset was removed: expired or deleted.

    Attributes:
        record_offset, time_ms: of its tombstone; None without a tombstone, or without a time (epoch ms).
        is_expiry: whether the log shows expiry.
        is_known: whether the log shows how the offset was removed.
    """

    record_offset: int | None
    time_ms: int | None
    is_expiry: bool
    is_known: bool
    rule: str | None
    reason: str

    @property
    def is_of_retention(self) -> bool:
        """Whether the broker's retention would tell: all else that decides is known."""
        return not self.is_known and self.rule is not None


def removals(
    read: Read,
    before: CoordinatorState,
    after: CoordinatorState,
    start: int | None,
    gone: Set[GroupTopicPartition],
    era: Era,
    retention_ms: int | None,
    release: tuple[int, int] | None = None,
) -> dict[GroupTopicPartition, Removal]:
    """Return how each of these offsets was removed.

    Args:
        read: reads the log up to where ``after`` ends; records below ``start`` are skipped.
        start: the record offset where ``before`` ends; None if ``before`` is not of this log, or its record offsets are
            unknown.
        gone: keys served before and not after.
        retention_ms: the broker's retention; None if unknown.
        release: that wrote the log; None if unknown.
    """
    search = _Search(before, before.missing_columns | after.missing_columns, start, gone, era, retention_ms, release)
    events = search.watch(read(search.selection, search.wants))
    replay_into(search.state, events, on_damage=lambda damage: None)
    for group, topic, partition in gone - search.found.keys():
        search.found[group, topic, partition] = (
            Removal(None, None, False, True, "J-15", "its group was removed without it: nobody is given it")
            if group not in after.groups
            else Removal(None, None, False, False, None, "not known: no tombstone of it is in the log")
        )
    return search.found


def of_damaged_log(removals: Mapping[GroupTopicPartition, Removal]) -> dict[GroupTopicPartition, Removal]:
    """Return what is known of removals if part of the log is missing or damaged: only what records there show."""
    unknown = Removal(None, None, False, False, None, "not known: part of the log is missing or damaged")
    return {key: unknown if removal.record_offset is None else removal for key, removal in removals.items()}


def _may_matter(keys: Set[GroupTopicPartition], groups: Set[str], raw: bytes) -> bool:
    """Return whether a raw key is that of one of some offsets, or of any offset of some groups."""
    try:
        record_type, fields, _ = decode_key(raw)
    except OffsetsLogError:
        return False
    key = CoordinatorRecord(record_type=record_type.number, key=fields)
    return key.is_offset_commit and (key.group in groups or key.group_topic_partition in keys)


MOST_HELD = 64
"""So many commits of an offset wait at most."""


class _Asked(NamedTuple):
    """What is asked of a record's key.

    Attributes:
        key: of an offset commit, where that is one of the offsets.
    """

    fold: GroupFold
    is_commit: bool
    key: GroupTopicPartition | None


class _Search:
    """The state of a few keys and their groups while a log is read, and the tombstones that end them.

    Of plain commits of a key only the last before a tombstone matters: they wait until there is one, and only the last
    that can be decoded is.
    """

    def __init__(
        self,
        before: CoordinatorState,
        missing_columns: Set[str],
        start: int | None,
        gone: Set[GroupTopicPartition],
        era: Era,
        retention_ms: int | None,
        release: tuple[int, int] | None,
    ) -> None:
        self.profile = before.profile
        self.missing_columns = missing_columns
        self.start = 0 if start is None else start
        self.gone = gone
        self.era = era
        self.retention_ms = retention_ms
        self.release = release
        self.state = PartialState(before.profile)
        self.found: dict[GroupTopicPartition, Removal] = {}
        self.groups: dict[str, GroupFold] = {}
        self._keys: dict[bytes | None, _Asked | None] = {}
        self._waiting: dict[GroupTopicPartition, list[Event]] = {}
        for group_id in {key[0] for key in gone}:
            self.groups[group_id] = fold = GroupFold(group_id, before.profile)
            fold.group = deepcopy(before.groups.get(group_id))
        for values, transactional in ((before.committed, False), (before.pending, True)):
            for value in values:
                if value.key in gone:
                    first = (
                        value
                        if start is not None
                        else value._replace(record_offset=BEFORE_ALL, applied_offset=BEFORE_ALL)
                    )
                    self.state.add_offset(first, transactional)

    @property
    def selection(self) -> Selection:
        """Selection of all records of the groups but offsets of other keys, and of what ends their transactions.

        Offsets of other keys may create a group that does not exist.
        """
        absent = frozenset(group_id for group_id, fold in self.groups.items() if fold.group is None)
        producers = frozenset(value.producer_id for value in self.state.iter_pending())
        return Selection(
            self.groups.__contains__,
            key=partial(_may_matter, self.gone, absent),
            with_markers=True,
            producers=producers,
            is_bare=True,
        )

    def wants(self, record: Record | BareRecord) -> bool:
        """Return whether a record matters at once: a commit does only if it creates a group."""
        asked = self._asked(record)
        if asked is None:
            return False
        if not asked.is_commit or (asked.key is not None and record.value is None):
            return True
        return not asked.fold.is_answered

    def _asked(self, record: Record | BareRecord) -> _Asked | None:
        """Return what is asked of a record's key; None if nothing is."""
        raw = record.key
        if raw not in self._keys:
            self._keys[raw] = self._asked_of(raw)
        return self._keys[raw]

    def _asked_of(self, raw: bytes | None) -> _Asked | None:
        try:
            record_type, fields, _ = decode_key(raw)
        except OffsetsLogError:
            return None
        record = CoordinatorRecord(record_type=record_type.number, key=fields)
        fold = self.groups.get(record.group)
        if fold is None:
            return None
        key = record.group_topic_partition if record.is_offset_commit else None
        return _Asked(fold, record.is_offset_commit, key if key in self.gone else None)

    def watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield markers and what matters of these keys; at a tombstone `state` is as it was before it."""
        for event in events:
            match event:
                case BareBatches():
                    yield from self._watch_bare(event)
                case Event() if event.record.offset < self.start or event.damage is not None:
                    continue
                case Event() if not event.batch.is_control:
                    if self._matters(event):
                        yield event
                case Event():
                    for key in self._open(event.batch.producer_id):
                        self._apply_waiting(key)
                    yield event
                case _:
                    yield event

    def _open(self, producer_id: int) -> tuple[GroupTopicPartition, ...]:
        producer = self.state.producers.get(producer_id)
        return () if producer is None else tuple(producer.open)

    def _watch_bare(self, bare: BareBatches) -> Iterator[LogEvent]:
        """Do as `watch` with the records of batches."""
        batch: RecordBatch | None = None
        for seen in bare.seen:
            if isinstance(seen, Passed) or seen.offset < self.start:
                continue
            decoded = bare.decoder.decode(seen.key, seen.value) if self.wants(seen) else None
            if decoded is None and ((asked := self._asked(seen)) is None or asked.key is None):
                continue
            if batch is None or batch.position != seen.batch_begin:
                batch = bare.read(seen)
            event = Event(
                segment=bare.segment,
                offsets_partition=bare.offsets_partition,
                batch=batch,
                batch_base_offset=batch.base_offset,
                record=Record(offset=seen.offset, timestamp_ms=seen.timestamp_ms, key=seen.key, value=seen.value),
                decoded=decoded,
            )
            if self._matters(event):
                yield event

    def _matters(self, event: Event) -> bool:
        """Note what a record of data says of these keys; return whether its event changes `state`."""
        if event.decoded is not None:
            return self._saw(event, event.decoded)
        asked = self._asked(event.record)
        if asked is None or asked.key is None:
            return False
        waiting = self._waiting.setdefault(asked.key, [])
        waiting.append(event)
        if len(waiting) > MOST_HELD or self.profile.is_transactional(event.batch):
            self._apply_waiting(asked.key)
        return False

    def _apply_waiting(self, key: GroupTopicPartition) -> None:
        """Add the last plain commit of a key that can be decoded, and one of a transaction if that is behind it."""
        for event in reversed(self._waiting.pop(key, ())):
            try:
                decoded = decode_coordinator_record(event.record.key, event.record.value, self.release)
            except OffsetsLogError:
                continue
            replay_record(self.state, event, decoded)
            if not self.profile.is_transactional(event.batch):
                return

    def _saw(self, event: Event, record: CoordinatorRecord) -> bool:
        """Note what a record says of these keys; return whether it is about an offset of theirs."""
        fold = self.groups.get(record.group)
        if fold is None:
            return False
        if not record.is_offset_commit:
            with suppress(ReplayError):  # as in a replay, the record is skipped
                fold.replay(record)
            return False
        if not record.is_tombstone:
            fold.saw_offset()
        key = record.group_topic_partition
        if key not in self.gone:
            return False
        self._apply_waiting(key)
        held = self.state.keys.get(key)
        if record.is_tombstone and held is not None and held.committed is not None:
            self.found[key] = self._removal(event, held.committed, fold.group)
        return True

    def _removal(self, event: Event, value: OffsetAndMetadata, group: Group | None) -> Removal:
        record_offset, time_ms = event.record.offset, event.record.timestamp_ms
        if time_ms == NO_TIMESTAMP:
            return Removal(record_offset, None, False, False, None, "not known: its tombstone has no time")
        if missing := sorted(NEEDED_COLUMNS & self.missing_columns):
            reason = f"not known: {', '.join(missing)} not told by what was read"
            return Removal(record_offset, time_ms, False, False, None, reason)
        state = CoordinatorState(
            profile=self.profile,
            groups={value.group: group or simple_group(value.group)},
            committed=(value,),
            pending=tuple(pending for pending in self.state.iter_pending() if pending.key == value.key),
            problems=(),
            topic_names={},
            end_offset=record_offset,
        )
        retention_ms = LEAST_RETENTION_MS if self.retention_ms is None else self.retention_ms
        ((expiry,),) = (found.offsets for found in cycle_of(state, time_ms, self.era.retention(retention_ms)))
        if not expiry.expired:
            return Removal(record_offset, time_ms, False, True, expiry.rule, f"it could not expire: {expiry.reason}")
        if self.retention_ms is not None or expiry.base == EXPIRE_TIMESTAMP:
            return Removal(record_offset, time_ms, True, True, expiry.rule, expiry.reason)
        assert expiry.expires_at_ms is not None
        age_ms = time_ms - expiry.expires_at_ms + LEAST_RETENTION_MS
        reason = f"not known: expired if the broker's retention was {age_ms} ms or less, else deleted"
        return Removal(record_offset, time_ms, False, False, expiry.rule, reason)
