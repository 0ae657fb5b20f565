"""The effects of a piece of a log on offsets and groups in arrays: `replay.partial.PartialState` in bulk.

The same methods take records that were read on the slow path, one by one, so that `pipeline.replay` folds into either;
`offsets` takes whole segments. `merge` joins neighbouring pieces, `materialize.partial` gives the plain state.

Over 400 lines: one class, with all arrays that kernels fill and join.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import merge, newer, newer_merge
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.folds.known import Release, new_state, newer_layouts
from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.jit.records import places
from offsets_log.columnar.ledger.columns import NO_LEDGER, LedgerArrays
from offsets_log.columnar.scan import interner
from offsets_log.columnar.wire.primitives import be16
from offsets_log.events import EVERYTHING, Event, Until
from offsets_log.log_format import primitives
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.java_text import plain
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    encode_coordinator_record,
)
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.replay.partial import EndTransactionMarker, GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import GroupEvent
from offsets_log.rows.activity import activity_of
from offsets_log.rows.survey import Survey

SUMS = places(a.ScanState.batches, a.ScanState.records, a.ScanState.missing, a.ScanState.gaps)
"""Places in the scan state that add up when pieces are joined."""

# ------------------------------------------------------------------------------- kernels for one record


@kernel
def _replay_one(
    arrays: a.Arrays,
    row: Number,
    is_value: Number,
    record_offset: Number,
    applied_offset: Number,
    index: Number,
    producer_id: Number,
    transactional: Number,
) -> Any:
    producer = np.int64(a.NOTHING)
    if transactional:
        producer = interner.intern_producer(arrays, producer_id)
        if producer < 0:
            return False
    place = a.Place(record_offset, np.int64(a.SLOW_PATH), index)
    return fold.replay_offset(arrays, row, is_value, place, applied_offset, producer, arrays.scan_state.rules)


@kernel
def _replay_newer_one(
    arrays: a.Arrays, data: Bytes, key_size: Number, is_value: Number, record_offset: Number, index: Number
) -> Any:
    number = be16(data, np.int64(0))
    member_type = newer.TYPES[number, newer.OF_MEMBER]
    row = interner.find_newer(arrays, data, np.int64(key_size), member_type)
    if row < 0:
        return False
    size = np.int64(len(data) - key_size)
    place = a.Place(record_offset, np.int64(a.SLOW_PATH), index)
    return newer.replay_newer(arrays, row, number, is_value, place, data, np.int64(key_size), size)


@kernel
def _newer_row(arrays: a.Arrays, key: Bytes) -> Any:
    member_type = newer.TYPES[be16(key, np.int64(0)), newer.OF_MEMBER]
    return interner.find_newer(arrays, key, np.int64(len(key)), member_type)


@kernel
def _mark_one(arrays: a.Arrays, producer_id: Number, commits: Number, marker_offset: Number) -> Any:
    producer = interner.intern_producer(arrays, producer_id)
    return producer >= 0 and fold.mark(arrays, producer, commits, marker_offset, arrays.scan_state.rules)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A record of a group that was not kept: where its batch begins in the log, its place among the batch's records."""

    record_offset: int
    batch: int
    index: int
    is_tombstone: bool
    is_newer: bool = False


class ColumnarState:
    """The effect of a run of records of one offsets partition.

    Attributes:
        arrays: see `arrays`; exchanged for larger ones when they are full.
        values: offsets read on the slow path, to which rows refer by index.
        events: group number → the group's timeline before what `arrays` knows of the group.
        is_out_of_place: whether an old message was read whose offset leaves its batch (``records:M5``). Then runs must
            be read one after the other, not joined.
        problems, names: what they are in `PartialState`; ``names`` are (record offset, topic id, name).
        newer: record type → layout of the newer kinds' records that `arrays` takes; all others are in ``events``.
        group_records: those of them that were read on the slow path, to which rows refer by index.

    Args:
        until, release: how the log is read, see `pipeline.iter_events`.
        with_newer: take records of newer kinds as `newer` does. Some groups may have to be read again then.
    """

    def __init__(
        self, profile: Profile, *, until: Until = EVERYTHING, release: Release | None = None, with_newer: bool = False
    ) -> None:
        self.profile = profile
        self.until = until
        self.release = release
        self.newer = newer_layouts(profile, release) if with_newer else {}
        self.arrays = new_state(profile, release, with_newer=with_newer)
        self.values: list[OffsetAndMetadata] = []
        self.group_records: list[GroupEvent] = []
        self.events: dict[int, list[GroupEvent | Pointer]] = {}
        self.is_out_of_place = False
        self.problems: list[Problem] = []
        self.names: list[tuple[int, bytes, str]] = []

    @property
    def ledger(self) -> LedgerArrays:
        """Where kernels write rows of what they replay; here nowhere."""
        return NO_LEDGER

    # ---------------------------------------------------------------------- records read on the slow path

    def add_offset(self, value: OffsetAndMetadata, transactional: bool, number: int | None = None) -> None:
        """Implement `PartialState.add_offset`."""
        self.values.append(value)
        index, number = len(self.values) - 1, value.record_offset if number is None else number
        self._replay(value.key, True, number, value.applied_offset, index, value.producer_id, transactional)

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Implement `PartialState.add_tombstone`."""
        self._replay(key, False, record_offset, record_offset, 0, producer_id, transactional)

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Implement `PartialState.add_marker`."""
        s = self.arrays
        while not _mark_one(s.all, producer_id, bool(marker.commit), marker.record_offset):
            self.grow()

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Implement `PartialState.add_group_record`."""
        group = self.group_number(record.group)
        if self.arrays.groups[group].newer_flags & newer.READ_AGAIN:
            self._keep(group, GroupEvent(record_offset, record))
        elif self.newer and record.record_type != GROUP_METADATA:
            self._add_newer(group, record, record_offset)
        elif self.arrays.groups[group].newer_kind:
            self._make_whole(group)
        else:
            self.carry(group)
            self.events[group].append(GroupEvent(record_offset, record))

    def read_again(self, name: str) -> int:
        """Keep all that records do to a group from now on; its number."""
        group = self.group_number(name)
        self.arrays.groups[group].newer_flags |= newer.READ_AGAIN
        return group

    def _keep(self, group: int, event: GroupEvent) -> None:
        self.group_records.append(event)
        s, index = self.arrays, len(self.group_records) - 1
        while not newer.keep_one(s.all, group, event.record_offset, index):
            self.grow()

    def _add_newer(self, group: int, record: CoordinatorRecord, record_offset: int) -> None:
        number = record.record_type
        if number not in self.newer or record.layout not in (None, self.newer[number]) or record_offset < 0:
            self._make_whole(group)
            return
        key = canonical_key(number, tuple(map(plain, record.key.values())))
        value = encode_coordinator_record(replace(record, value_trailing=b""))[1]
        self.group_records.append(GroupEvent(record_offset, record))
        data, index = np.frombuffer(key + (value or b""), np.uint8), len(self.group_records) - 1
        s = self.arrays
        while not _replay_newer_one(s.all, data, len(key), value is not None, record_offset, index):
            self.grow()

    def _make_whole(self, group: int) -> None:
        """Have the records of a group read again."""
        row = self.arrays.groups[group]
        row.newer_kind = newer.NO_KIND
        row.newer_flags |= newer.WHOLE

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Implement `PartialState.add_topic_name`."""
        self.names.append((record_offset, topic_id, name))

    @property
    def end_offset(self) -> int:
        """The offset at which the log goes on."""
        return int(self.arrays.scan_state.end_offset)

    @end_offset.setter
    def end_offset(self, offset: int) -> None:
        self.arrays.scan_state.end_offset = offset

    def saw_batch(self, base_offset: int) -> None:
        """Count a batch that was read on the slow path."""
        scan_state = self.arrays.scan_state
        if scan_state.first_offset == a.NOTHING:
            scan_state.first_offset = base_offset
        else:
            self._skipped(base_offset - int(scan_state.last_offset) - 1)
        scan_state.batches += 1

    def _skipped(self, count: int) -> None:
        """Return the offsets that are missing before a batch."""
        if count > 0:
            self.arrays.scan_state.missing += count
            self.arrays.scan_state.gaps += 1

    @property
    def first_offset(self) -> int | None:
        """The offset of the first batch; None without one."""
        first = int(self.arrays.scan_state.first_offset)
        return None if first == a.NOTHING else first

    @property
    def records(self) -> int:
        """How many were read."""
        return int(self.arrays.scan_state.records)

    def tell(self, found: Survey) -> None:
        """Pass on what was counted."""
        scan_state = self.arrays.scan_state
        found.batches, found.records = int(scan_state.batches), self.records
        found.missing_offsets, found.gaps = int(scan_state.missing), int(scan_state.gaps)
        if self.first_offset is not None:
            found.first_offset, found.end_offset = self.first_offset, int(scan_state.last_offset) + 1

    def register(self, raw_key: bytes, record_type: int, fields: dict[str, Any], record_offset: int) -> int:
        """Return the row of a raw key that was read on the slow path, from a record at an offset."""
        row = self._row(record_type, tuple(fields.values()), raw_key)
        group = self.arrays.groups[self.arrays.rows[row].group]
        if group.first_offset == a.NEVER:
            group.first_offset = record_offset
        return row

    def _row(self, record_type: int, fields: tuple[Any, ...], raw_key: bytes | None = None) -> int:
        canonical = canonical_key(record_type, tuple(map(plain, fields)))
        row = self.raw_row(canonical if raw_key is None else raw_key, canonical)
        return int(self.arrays.rows[row].target) if record_type != GROUP_METADATA else row

    def raw_row(self, raw_key: bytes, canonical: bytes) -> int:
        """Return the row, new or known, of a raw key of type 0, 1 or 2 that was read on the slow path."""
        data = np.frombuffer(raw_key + canonical, np.uint8)
        s = self.arrays
        while (row := interner.register(s.all, data, len(raw_key))) < 0:
            self.grow()
        return int(row)

    def newer_row(self, key: bytes) -> int:
        """Return the row, new or known, of a canonical key of a newer kind."""
        data = np.frombuffer(key, np.uint8)
        s = self.arrays
        while (row := _newer_row(s.all, data)) < 0:
            self.grow()
        return int(row)

    def _replay(
        self,
        key: GroupTopicPartition,
        is_value: bool,
        record_offset: int,
        applied_offset: int,
        index: int,
        producer_id: int,
        transactional: bool,
    ) -> None:
        row = self._row(1, key)
        s = self.arrays
        while not _replay_one(s.all, row, is_value, record_offset, applied_offset, index, producer_id, transactional):
            self.grow()

    def group_number(self, name: str) -> int:
        """Return the number of a group, new or known."""
        row = self._row(GROUP_METADATA, (name,))  # first: it may exchange the arrays
        return int(self.arrays.rows[row].group)

    def note_activity(self, event: Event) -> None:
        """Note when a group wrote a record that was read on the slow path."""
        if (found := activity_of(event)) is not None:
            number = self.group_number(plain(found[0]))  # first: it may exchange the arrays
            group = self.arrays.groups[number]
            group.active_ms = max(int(group.active_ms), found[1])

    def last_activity(self) -> dict[str, int]:
        """Group → when it last wrote, if that was to be noted (`rows.activity`)."""
        s = self.arrays
        active = s.groups.up_to(s.scan_state.group_count).columns(a.Group.name_at, a.Group.active_ms).tolist()
        return {s.text_at(name_at).decode(): time_ms for name_at, time_ms in active if time_ms > NO_TIMESTAMP}

    def carry(self, group: int) -> None:
        """Move what the arrays know of a group into its timeline, because other records follow."""
        events = self.events.setdefault(group, [])
        events += self.latest_events(group)
        row = self.arrays.groups[group]
        row.metadata_offset = row.value_offset = a.NEVER

    def latest_events(self, group: int) -> Iterator[GroupEvent | Pointer]:
        """Return what the arrays know of a group's timeline, except newer kinds, added to its other events."""
        row = self.arrays.groups[group]
        metadata_offset, value_offset, value_before = map(
            int, (row.metadata_offset, row.value_offset, row.value_before)
        )
        if metadata_offset != a.NEVER:
            batch, index = int(row.metadata_batch), int(row.metadata_index)
            yield Pointer(metadata_offset, batch, index, bool(row.is_tombstone))
        if row.newer_kind and value_before != a.NEVER:
            yield GroupEvent(value_before, None)
        if value_offset > metadata_offset:
            yield GroupEvent(value_offset, None)

    # -------------------------------------------------------------------------------------- growth

    def grow(self) -> None:
        """Make room: double what is half full, or everything if nothing is."""
        s = self.arrays
        scan_state = s.scan_state
        if scan_state.opened >= scan_state.opened_room and scan_state.free == a.NOTHING:
            merge.compact_open(s.all)
            if 2 * scan_state.open_count < scan_state.opened_room:
                return
        room = s.room()
        used = {
            "keys": (scan_state.row_count + 2, len(s.rows)),
            "arena": (scan_state.arena_used, len(s.arena)),
            "groups": (scan_state.group_count + 1, len(s.groups)),
            "producers": (scan_state.producer_count + 1, room["producers"]),
            "opened": (scan_state.open_count + 1, room["opened"]),
            "cancelled": (scan_state.cancelled + scan_state.open_count, room["cancelled"]),
            "named": (scan_state.named, room["named"]),
            "owned": (scan_state.owned + 1, room["owned"]),
            "told": (scan_state.told + 1, room["told"]),
            "kept": (scan_state.kept + 2, room["kept"]),
        }
        full = {name for name, (count, limit) in used.items() if 2 * count >= limit} or set(used)
        self._double(full)

    def _double(self, parts: set[str]) -> None:
        s = self.arrays
        if "keys" in parts:
            s.rows = a.new_rows(2 * len(s.rows), s.rows)
        if "groups" in parts:
            s.groups = s.groups.grown(2 * len(s.groups))
        if "arena" in parts:
            arena = a.new_arena(2 * len(s.arena))
            arena[: len(s.arena)] = s.arena
            s.arena = arena
        if parts <= {"arena"}:
            return
        also = {"keys": ("more",), "groups": ("group_slots",), "producers": ("producers", "producer_slots", "unended")}
        also["owned"] = ("owned", "owned_slots")
        doubled = {name for part in parts for name in also.get(part, (part,))}
        self._lay_out({name: room * (2 if name in doubled else 1) for name, room in s.room().items()})

    def find_slots(self) -> None:
        """Make the hash tables again, from all other arrays."""
        self._lay_out(self.arrays.room())

    def _lay_out(self, room: dict[str, int]) -> None:
        s = self.arrays
        s.lay_out(room)
        s.slots = np.zeros(2 * len(s.rows), np.int64)
        interner.fill_slots(s.all)

    # ------------------------------------------------------------------------------------- merging

    def merge(self, right: ColumnarState) -> ColumnarState:
        """Implement `PartialState.merge`."""
        self.join(right, self.number(right))
        return self

    def number(self, right: ColumnarState) -> a.Int64s:
        """Return the numbers here of rows, groups and producers of the run that follows, int64[3, n]."""
        s, r = self.arrays, right.arrays
        numbers = np.full(
            (3, max(r.scan_state.row_count, r.scan_state.group_count, r.scan_state.producer_count)),
            merge.NOT_YET,
            np.int64,
        )
        while not merge.number_all(s.all, r.all, numbers):
            self.grow()
        return numbers

    def join(self, right: ColumnarState, numbers: a.Int64s) -> None:
        """Join the effects of the run that follows, by `number`."""
        s, r = self.arrays, right.arrays
        self._make_room_for(right)
        for group, events in right.events.items():
            number = int(numbers[1, group])
            if self.arrays.groups[number].newer_kind:
                self._make_whole(number)
            else:
                self.carry(number)
                self.events[number] += events
        newer_merge.join_newer(s.all, r.all, numbers, len(self.group_records))
        self.group_records += right.group_records
        before = len(self.values)
        merge.join_rows(s.all, r.all, numbers, before)
        order = np.zeros(r.scan_state.opened, np.int64)
        merge.join_producers(s.all, r.all, numbers, before, order)
        self.join_activity(right, numbers[1])
        self.join_counts(r.scan_state)
        self.values += right.values
        self.problems += right.problems
        self.names += right.names

    def _make_room_for(self, right: ColumnarState) -> None:
        ours, theirs = self.arrays.scan_state, right.arrays.scan_state
        opened = int(ours.opened + theirs.opened + theirs.cancelled)
        needed = {
            "opened": opened,
            "cancelled": int(ours.cancelled) + opened,
            "named": int(ours.named + theirs.named + theirs.row_count),
            "owned": int(ours.owned + theirs.owned),
            "told": int(ours.told + theirs.told + theirs.row_count),
        }
        room = self.arrays.room()
        slots = room["owned_slots"]
        while slots < 2 * needed["owned"]:
            slots *= 2
        needed["owned_slots"] = slots
        if any(room[name] < size for name, size in needed.items()):
            self._lay_out({name: max(size, needed.get(name, 0)) for name, size in room.items()})

    def join_activity(self, right: ColumnarState, numbers: a.Int64s) -> None:
        """Join when groups last wrote in the run that follows; the numbers are those of its groups here."""
        theirs = right.arrays.groups.up_to(right.arrays.scan_state.group_count).column(a.Group.active_ms)
        numbers, ours = numbers[: len(theirs)], self.arrays.groups.column(a.Group.active_ms)
        ours[numbers] = np.maximum(ours[numbers], theirs)

    def join_counts(self, theirs: a.ScanState) -> None:
        """Join the counts of the run that follows."""
        ours = self.arrays.scan_state
        ours.end_offset = max(ours.end_offset, theirs.end_offset)
        ours.numbers[SUMS] += theirs.numbers[SUMS]
        if ours.first_offset == a.NOTHING:
            ours.first_offset = theirs.first_offset
        elif theirs.first_offset != a.NOTHING:
            self._skipped(int(theirs.first_offset - ours.last_offset) - 1)
        if theirs.batches:  # else it is where the piece supposed that it begins
            ours.last_offset = theirs.last_offset


@cache
def _key_struct(record_type: int) -> Any:
    return RECORD_TYPES[record_type].key.struct(0)


def canonical_key(record_type: int, fields: tuple[Any, ...]) -> bytes:
    names = [field.name for field in RECORD_TYPES[record_type].key.fields]
    body = primitives.build(_key_struct(record_type), dict(zip(names, fields, strict=True)), "key")
    return record_type.to_bytes(2) + body
