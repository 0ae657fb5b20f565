"""The end of a replay in bulk: winners, open offsets and groups found again in the log, as columns or as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState, Pointer, Release
from offsets_log.columnar.scan import winners as wn
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.scan.reading import Order, Place
from offsets_log.columnar.wire.programs import SIZES, compile_program, table_of
from offsets_log.log_format.primitives import Uuid, decode_string
from offsets_log.messages.offset_commit import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, decode_coordinator_record
from offsets_log.messages.schema import Message, Scalar
from offsets_log.replay.coordinator_state import CoordinatorState, Holdings, in_order, settle_groups
from offsets_log.replay.group import Group
from offsets_log.replay.groups import replay_timeline
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.timeline import GroupEvent, Timeline
from offsets_log.replay.topic_names import names_in

KEY_FIELDS = ("group", "topic", "partition")
VALUE_FIELDS = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")
OFFSET, LEADER_EPOCH, METADATA, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, TOPIC_ID = range(len(VALUE_FIELDS))
GROUP, TOPIC, PARTITION = range(len(KEY_FIELDS))


@dataclass(frozen=True, slots=True)
class Reader:
    """The programs that read all versions of a message, as `winners.read_columns` wants them."""

    desk: a.Int64s
    programs: a.Int64s
    flexible: a.Int64s
    sizes: a.Int64s

    def read(self, copied: a.Bytes, table: a.Int64s, at: int) -> tuple[a.Int64s, a.Int64s]:
        """Numbers, −1 where a field is not there, and sizes of texts: int64[n, fields] each."""
        numbers = np.full((len(table), len(self.sizes)), -1, np.int64)
        texts = np.zeros_like(numbers)
        wn.read_columns(self.desk.copy(), self.programs, self.flexible, self.sizes, copied, table, at, numbers, texts)
        return numbers, texts


@cache
def reader_of(message: Message, fields: tuple[str, ...], is_key: bool) -> Reader:
    """The reader of a message's fields. A key has one layout, whatever number it begins with."""
    versions = range(a.VERSIONS)
    layouts = [0 if is_key else version if message.has_version(version) else None for version in versions]
    programs = {
        version: compile_program(message, layout, noted=fields)
        for version, layout in zip(versions, layouts, strict=True)
        if layout is not None
    }
    code, begins = table_of(programs)
    desk = np.zeros(a.CODE + len(code), np.int64)
    desk[a.CODE :] = code
    types = {field.name: field.type for field in message.fields}
    sizes = [SIZES.get(types[name].name, 0) for name in fields if isinstance(types[name], Scalar)]  # type: ignore[union-attr]
    return Reader(
        desk,
        np.array([begins.get(version, 0) for version in versions], np.int64),
        np.array([message.is_flexible(0 if is_key else version) for version in versions], np.int64),
        np.array(sizes, np.int64),
    )


def offset_reader() -> Reader:
    """Of offset commits."""
    return reader_of(OFFSET_COMMIT_VALUE, VALUE_FIELDS, False)


def key_reader() -> Reader:
    """Of their keys."""
    return reader_of(OFFSET_COMMIT_KEY, KEY_FIELDS, True)


@dataclass(frozen=True, slots=True)
class Found:
    """What a finished replay refers to: rows with a committed offset, open offsets.

    Attributes:
        committed: row numbers.
        pending: (row, record offset, batch, index), int64[n, 4].
    """

    committed: a.Int64s
    pending: a.Int64s


def find(state: ColumnarState) -> Found:
    """The rows that have a committed offset, and what is open."""
    s = state.arrays
    rows = s.rows[: s.desk[a.ROWS]]
    is_live = (rows[:, a.RECORD_OFFSET] != a.NEVER) & (rows[:, a.TARGET] == np.arange(len(rows)))
    pending = np.array(list(_iter_open(state)), np.int64).reshape(-1, 4)
    return Found(np.flatnonzero(is_live), pending)


def _iter_open(state: ColumnarState) -> Iterator[tuple[int, int, int, int]]:
    """Of every producer and key the last open record, unless a tombstone cancelled it (``J-12``, ``L-18``)."""
    s = state.arrays
    opened = s.region("opened")
    ends_all = state.profile.cancels_pending == "all"
    for producer in s.region("producers")[: s.desk[a.PRODUCERS]].tolist():
        seen: set[int] = set()
        number = producer[a.NEWEST]
        while number != a.NOTHING:
            row, record_offset, batch, index, cancels, number = opened[number].tolist()
            if row in seen:
                continue
            seen.add(row)
            if not cancels and not (ends_all and record_offset < s.rows[row, a.TOMBSTONE_OFFSET]):
                yield row, record_offset, batch, index


def finish(layout: Layout, state: ColumnarState, scanner: Scanner, *, whole_groups: bool = True) -> CoordinatorState:
    """What a coordinator holds: as `replay.coordinator_state.finish`.

    Args:
        whole_groups: read the members of classic groups; else such a group is only known to be there.
    """
    found = find(state)
    rows = state.arrays.rows
    committed = rows[found.committed][:, [a.BATCH, a.INDEX, a.RECORD_OFFSET, a.APPLIED_OFFSET]]
    pending = found.pending[:, [2, 3, 1, 1]]
    values = list(offsets_at(layout, state, scanner, np.concatenate([committed, pending])))
    committed_values, pending_values = tuple(values[: len(committed)]), tuple(values[len(committed) :])
    groups, problems = settle_groups(
        state.profile,
        dict(_timelines(layout, state, scanner, whole_groups)),
        committed={value.group for value in committed_values},
        pending={value.group for value in pending_values},
        end_offset=state.end_offset,
    )
    return CoordinatorState(
        profile=state.profile,
        groups=groups,
        committed=committed_values,
        pending=pending_values,
        problems=in_order((*state.problems, *problems)),
        topic_names=topic_names(state, _names_told(layout, state, scanner)),
        end_offset=state.end_offset,
    )


def existing_groups(layout: Layout, state: ColumnarState, scanner: Scanner, found: Found) -> npt.NDArray[np.bool_]:
    """By group number, whether the group exists."""
    groups = _groups(layout, state, scanner, found, whole=False)
    return np.array([name in groups for name in group_names(state)], np.bool_)


def holdings(
    layout: Layout,
    state: ColumnarState,
    scanner: Scanner,
    *,
    shows_group: Callable[[str], bool],
    shows_topic: Callable[[str], bool] | None,
) -> Holdings:
    """How much of the groups and topics that are shown a coordinator holds; None shows all topics."""
    found = find(state)
    groups = _groups(layout, state, scanner, found, whole=True)
    names = group_names(state)
    rows = state.arrays.rows[found.committed]
    if shows_topic is not None:
        keys = (state.arrays.text_at(at) for at in rows[:, a.KEY_AT].tolist())
        rows = rows[[shows_topic(decode_coordinator_record(key, None).key["topic"]) for key in keys]]
    counts = np.bincount(rows[:, a.GROUP], minlength=len(names)).tolist()
    shown = [(name in groups, count) for name, count in zip(names, counts, strict=True) if shows_group(name)]
    return Holdings(
        tuple(group for name, group in groups.items() if shows_group(name)),
        offsets=sum(count for exists, count in shown if exists),
        orphans=sum(count for exists, count in shown if not exists),
    )


def _groups(layout: Layout, state: ColumnarState, scanner: Scanner, found: Found, *, whole: bool) -> dict[str, Group]:
    names = group_names(state)
    groups, _ = settle_groups(
        state.profile,
        dict(_timelines(layout, state, scanner, whole)),
        committed=_groups_of(state, names, found.committed),
        pending=_groups_of(state, names, found.pending[:, 0]),
        end_offset=state.end_offset,
    )
    return groups


def _groups_of(state: ColumnarState, names: list[str], rows: a.Int64s) -> set[str]:
    is_there = np.bincount(state.arrays.rows[rows, a.GROUP])
    return {names[number] for number in np.flatnonzero(is_there).tolist()}


def offsets_at(layout: Layout, state: ColumnarState, scanner: Scanner, places: a.Int64s) -> Iterator[OffsetAndMetadata]:
    """The offsets at places, int64[n, 4]: batch, index, record offset, applied offset."""
    by_hand = places[:, 0] == a.BY_HAND
    copied, table = scanner.gather(layout, places[~by_hand, :2])
    keys, key_sizes = key_reader().read(copied, table, wn.KEY)
    numbers, sizes = offset_reader().read(copied, table, wn.VALUE)
    raw = copied.tobytes()
    texts = _Texts()
    names = [(keys[:, field], keys[:, field] + key_sizes[:, field]) for field in (GROUP, TOPIC)]
    names.append((numbers[:, METADATA], numbers[:, METADATA] + sizes[:, METADATA]))
    fields = (OFFSET, LEADER_EPOCH, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, TOPIC_ID)
    columns = [column for bounds in names for column in bounds]
    columns += [keys[:, PARTITION], *(numbers[:, field] for field in fields)]
    columns += [table[:, wn.PRODUCER_ID], table[:, wn.PRODUCER_EPOCH]]
    found = zip(*(column.tolist() for column in columns), strict=True)
    for batch, index, record_offset, applied_offset in places.tolist():
        if batch == a.BY_HAND:
            yield replace(state.values[index], applied_offset=applied_offset)
            continue
        (
            group, group_end, topic, topic_end, metadata, metadata_end, partition, committed_offset, leader_epoch,
            commit_timestamp, expire_timestamp, topic_id, producer_id, producer_epoch,
        ) = next(found)  # fmt: skip
        raw_id = raw[topic_id : topic_id + 16] if topic_id >= 0 else b""
        yield OffsetAndMetadata(
            group=texts[raw[group:group_end]],
            topic=texts[raw[topic:topic_end]],
            partition=partition,
            committed_offset=committed_offset,
            leader_epoch=None if leader_epoch == -1 else leader_epoch,
            metadata=texts[raw[metadata:metadata_end]],
            commit_timestamp_ms=commit_timestamp,
            expire_timestamp_ms=None if expire_timestamp == -1 else expire_timestamp,
            topic_id=str(Uuid(raw_id)) if any(raw_id) else None,
            record_offset=record_offset,
            applied_offset=applied_offset,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )


class _Texts(dict[bytes, str]):
    """Raw bytes → text; names are many times the same."""

    def __missing__(self, raw: bytes) -> str:
        text = decode_string(raw)
        self[raw] = text
        return text


# ------------------------------------------------------------------------------------------------ groups


def group_names(state: ColumnarState) -> list[str]:
    """By group number."""
    s = state.arrays
    return [s.text_at(at).decode() for at in s.groups[: s.desk[a.GROUPS], a.NAME_AT].tolist()]


def _timelines(
    layout: Layout, state: ColumnarState, scanner: Scanner, whole_groups: bool
) -> Iterator[tuple[str, Timeline]]:
    names = group_names(state)
    newer = newer_events(state, names, only_existence=not whole_groups)
    events = [
        newer.get(group, [*state.events.get(group, ()), *state.latest_events(group)]) for group in range(len(names))
    ]
    pointers = [event for of_group in events if of_group for event in of_group if isinstance(event, Pointer)]
    records = records_at(layout, scanner, pointers, whole_groups, state.release)
    made: dict[str, Timeline] = {}
    again = []
    for group, (name, of_group) in enumerate(zip(names, events, strict=True)):
        timeline = Timeline([next(records) if isinstance(event, Pointer) else event for event in of_group or ()])
        if of_group is None or (whole_groups and group in newer and replay_timeline(name, timeline, state.profile)[1]):
            again.append(name)
        if timeline.events or of_group is None:
            made[name] = timeline
    yield from (made | read_again(layout, state, scanner, again)).items()


def newer_events(
    state: ColumnarState, names: Sequence[str], *, only_existence: bool
) -> dict[int, list[GroupEvent | Pointer] | None]:
    """The timelines of groups with records of newer kinds, by number: None for those that must be read again.

    Args:
        only_existence: it is enough that a timeline says whether its group is there at the end.
    """
    s = state.arrays
    groups, rows = s.groups[: len(names)], _newer_rows(state)
    groups[rows[_is_between(state), a.GROUP], a.NEWER_FLAGS] |= newer.WHOLE
    found: dict[int, list[GroupEvent | Pointer] | None] = {}
    unfinished: dict[int, list[GroupEvent | Pointer]] = {}
    for group in np.flatnonzero(groups[:, a.NEWER_KIND]).tolist():
        flags, anchor = groups[group, a.NEWER_FLAGS], int(groups[group, a.ANCHOR_OFFSET])
        if flags & newer.WHOLE:
            found[group] = None
        elif only_existence and anchor != a.NEVER and not flags & newer.ENDED:
            found[group] = [GroupEvent(anchor, None)]  # a value made it, and nothing removed it
        elif any(event.record_offset >= groups[group, a.NEWER_SINCE] for event in state.events.get(group, ())):
            found[group] = None  # offsets of magic 0 and 1 are in no order
        else:
            found[group] = unfinished[group] = [*state.events.get(group, ()), *state.latest_events(group)]
            if anchor != a.NEVER:
                batch, index = groups[group, [a.ANCHOR_BATCH, a.ANCHOR_INDEX]].tolist()
                unfinished[group].append(_event(state, anchor, batch, index, 0))
    if unfinished:
        last = rows[rows[:, a.LAST_OFFSET_OF] != a.NEVER]
        columns = [a.GROUP, a.LAST_OFFSET_OF, a.BATCH, a.INDEX, a.IS_REMOVED]
        for group, offset, batch, index, is_removed in last[:, columns].tolist():
            if group in unfinished and offset != groups[group, a.ANCHOR_OFFSET]:
                unfinished[group].append(_event(state, offset, batch, index, is_removed))
    for events in unfinished.values():
        events.sort(key=lambda event: event.record_offset)
    return found


def _newer_rows(state: ColumnarState) -> a.Int64s:
    """Rows of keys of newer kinds."""
    rows = state.arrays.rows[: state.arrays.desk[a.ROWS]]
    found: a.Int64s = rows[rows[:, a.TARGET] == a.IS_NEWER]
    return found


def _is_between(state: ColumnarState) -> npt.NDArray[np.bool_]:
    """Of the rows of newer kinds, which are of members that were on their way when the log ended."""
    s = state.arrays
    is_newer = s.rows[: s.desk[a.ROWS], a.TARGET] == a.IS_NEWER
    states = s.region("more")[: len(is_newer), newer.STATE_OF][is_newer]
    is_member = np.isin(_record_types(state, _newer_rows(state)), newer.MEMBER_TYPES)
    return is_member & np.isin(states & newer.PHASE, newer.BETWEEN)


def _record_types(state: ColumnarState, rows: a.Int64s) -> a.Int64s:
    arena, at = state.arrays.arena, rows[:, a.KEY_AT]
    numbers: a.Int64s = arena[at].astype(np.int64) << 8 | arena[at + 1]
    return numbers


def _event(state: ColumnarState, offset: int, batch: int, index: int, is_tombstone: int) -> GroupEvent | Pointer:
    if batch == a.BY_HAND:
        return state.group_records[index]
    return Pointer(offset, batch, index, bool(is_tombstone), is_newer=True)


def read_again(layout: Layout, state: ColumnarState, scanner: Scanner, names: Sequence[str]) -> dict[str, Timeline]:
    """All that the records of some groups do to these groups."""
    if not names:
        return {}
    read = ColumnarState(state.profile, until=state.until, release=state.release, with_newer=True)
    numbers = {read.read_again(name): name for name in names}
    order = Order(layout.log, state.until, state.release)
    begin = order.begin(Place(0, 0))
    assert begin is not None
    Piece(order, begin, scanner, lambda seen: None, read).run(order.end, lambda size_bytes: None)
    kept = read.arrays.region("kept")[: read.arrays.desk[a.KEPT]].tolist()
    events = [
        (group, GroupEvent(offset, None) if what == a.AN_OFFSET else _event(read, offset, batch, index, 0))
        for group, offset, batch, index, what in kept
    ]
    pointers = [event for _, event in events if isinstance(event, Pointer)]
    records = records_at(layout, scanner, pointers, True, state.release)
    timelines = {name: Timeline() for name in names}
    for group, event in events:
        timelines[numbers[group]].events.append(next(records) if isinstance(event, Pointer) else event)
    for group, name in numbers.items():
        timelines[name].events += [event for event in read.latest_events(group) if isinstance(event, GroupEvent)]
    return timelines


def records_at(
    layout: Layout, scanner: Scanner, pointers: Sequence[Pointer], whole: bool, release: Release | None = None
) -> Iterator[GroupEvent]:
    """The records that pointers stand for; those of type 2 with their members only if they are asked for."""
    row = RECORD_TYPES[2]
    empty = row.values[0].zeros(0)
    read = [pointer for pointer in pointers if whole or pointer.is_newer]
    places = np.array([(pointer.batch, pointer.index) for pointer in read], np.int64).reshape(-1, 2)
    copied, table = scanner.gather(layout, places)
    raw, found = copied.tobytes(), iter(table.tolist())
    for pointer in pointers:
        if whole or pointer.is_newer:
            place = next(found)
            key = raw[place[wn.KEY] : place[wn.KEY] + place[wn.KEY_SIZE]]
            data = raw[place[wn.VALUE] : place[wn.VALUE] + place[wn.VALUE_SIZE]] if place[wn.VALUE_SIZE] >= 0 else None
            yield GroupEvent(pointer.record_offset, decode_coordinator_record(key, data, release))
        else:
            value = None if pointer.is_tombstone else empty
            yield GroupEvent(pointer.record_offset, CoordinatorRecord(record_type=2, key=row.key.zeros(0), value=value))


def _names_told(layout: Layout, state: ColumnarState, scanner: Scanner) -> Iterator[tuple[int, bytes, str]]:
    """Topic ids and names in records of newer kinds, with the records' offsets; those read by hand are in ``names``."""
    rows = _newer_rows(state)
    names_topics = newer.TYPES[_record_types(state, rows), newer.NAMES] == 1
    last = rows[names_topics & (rows[:, a.LAST_OFFSET_OF] != a.NEVER) & (rows[:, a.IS_REMOVED] == 0)]
    told = state.arrays.region("told")[: state.arrays.desk[a.TOLD]]
    places = np.concatenate([told, last[:, [a.LAST_OFFSET_OF, a.BATCH, a.INDEX]]])
    pointers = [
        Pointer(offset, batch, index, False, is_newer=True)
        for offset, batch, index in places.tolist()
        if batch != a.BY_HAND
    ]
    for event in records_at(layout, scanner, pointers, True, state.release):
        if event.record is not None:
            for topic_id, name in names_in(event.record):
                yield event.record_offset, topic_id, name


def topic_names(state: ColumnarState, told: Iterable[tuple[int, bytes, str]] = ()) -> dict[bytes, str]:
    """Topic id → name, as the last record with both says.

    Args:
        told: more of `ColumnarState.names`.
    """
    s = state.arrays
    rows = s.desk[a.ROWS]
    more = s.region("more")[:rows]
    known = np.flatnonzero((more[:, a.TOPIC_HIGH] != 0) | (more[:, a.TOPIC_LOW] != 0))
    named = s.region("named")[: s.desk[a.NAMED]]
    latest = np.column_stack([known, more[known][:, [a.TOPIC_HIGH, a.TOPIC_LOW, a.TOPIC_OFFSET]]])
    entries = [*state.names, *told]
    for row, high, low, record_offset in np.concatenate([named, latest]).tolist():
        fields = decode_coordinator_record(s.text_at(int(s.rows[row, a.KEY_AT])), None).key
        entries.append((record_offset, high.to_bytes(8, signed=True) + low.to_bytes(8, signed=True), fields["topic"]))
    entries.sort(key=lambda entry: entry[0])
    return {topic_id: name for _, topic_id, name in entries}
