"""Build groups' timelines at the end of a replay in bulk, from records found again in the log (for some groups all)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.known import Release
from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState, Pointer
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import Kept, More, Told
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.scan.reading import ScanOrder, ScanPlace
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, decode_coordinator_record
from offsets_log.replay.groups import replay_timeline
from offsets_log.replay.timeline import GroupEvent, Timeline
from offsets_log.replay.topic_names import topic_names_in


def group_names(state: ColumnarState) -> list[str]:
    """Return the names of groups, by group number."""
    s = state.arrays
    return [s.text_at(at).decode() for at in s.groups.up_to(s.scan_state.group_count).column(a.Group.name_at).tolist()]


def timelines(
    layout: Layout, state: ColumnarState, scanner: Scanner, whole_groups: bool
) -> Iterator[tuple[str, Timeline]]:
    """Yield the timeline of each group that has one.

    Args:
        whole_groups: whether to read the members of groups; otherwise a timeline only says whether its group exists at
            the end.
    """
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
    """Return the timelines of groups with records of newer kinds, by number; None for those that must be read again.

    Args:
        only_existence: whether it suffices that a timeline says whether its group exists at the end.
    """
    s = state.arrays
    groups, rows = s.groups.up_to(len(names)), _newer_rows(state)
    member_rows, states = members(state)
    is_between = np.isin(states.column(More.state) & newer.PHASE, newer.BETWEEN)  # when the log ended
    groups.column(a.Group.newer_flags)[member_rows.of(is_between).column(a.Row.group)] |= newer.WHOLE
    found: dict[int, list[GroupEvent | Pointer] | None] = {}
    unfinished: dict[int, list[GroupEvent | Pointer]] = {}
    for group in np.flatnonzero(groups.column(a.Group.newer_kind)).tolist():
        flags, anchor = groups[group].newer_flags, int(groups[group].anchor_offset)
        if flags & newer.WHOLE:
            found[group] = None
        elif only_existence and anchor != a.NEVER and not flags & newer.ENDED:
            found[group] = [GroupEvent(anchor, None)]  # a value made it, and nothing removed it
        elif any(event.record_offset >= groups[group].newer_since for event in state.events.get(group, ())):
            found[group] = None  # offsets of magic 0 and 1 are in no order
        else:
            found[group] = unfinished[group] = [*state.events.get(group, ()), *state.latest_events(group)]
            if anchor != a.NEVER:
                batch, index = int(groups[group].anchor_batch), int(groups[group].anchor_index)
                unfinished[group].append(_event(state, anchor, batch, index, 0))
    if unfinished:
        last = rows.of(rows.column(a.Row.last_offset) != a.NEVER)
        of_each = last.columns(a.Row.group, a.Row.last_offset, a.Row.batch, a.Row.index, a.Row.is_removed)
        for group, offset, batch, index, is_removed in of_each.tolist():
            if group in unfinished and offset != groups[group].anchor_offset:
                unfinished[group].append(_event(state, offset, batch, index, is_removed))
    for events in unfinished.values():
        events.sort(key=lambda event: event.record_offset)
    return found


def _newer_rows(state: ColumnarState) -> Table[a.Row]:
    """Return the rows of keys of newer kinds."""
    rows = state.arrays.rows.up_to(state.arrays.scan_state.row_count)
    return rows.of(rows.column(a.Row.target) == a.IS_NEWER)


def members(state: ColumnarState) -> tuple[Table[a.Row], Table[More]]:
    """Return the rows of members' own keys, and more of each."""
    s = state.arrays
    rows = s.rows.up_to(s.scan_state.row_count)
    is_member = rows.column(a.Row.target) == a.IS_NEWER
    is_member[is_member] = np.isin(_record_types(state, rows.of(is_member)), newer.MEMBER_TYPES)
    return rows.of(is_member), s.region(More).up_to(len(rows)).of(is_member)


def _record_types(state: ColumnarState, rows: Table[a.Row]) -> a.Int64s:
    arena, at = state.arrays.arena, rows.column(a.Row.key_at)
    numbers: a.Int64s = arena[at].astype(np.int64) << 8 | arena[at + 1]
    return numbers


def _event(state: ColumnarState, offset: int, batch: int, index: int, is_tombstone: int) -> GroupEvent | Pointer:
    if batch == a.SLOW_PATH:
        return state.group_records[index]
    return Pointer(offset, batch, index, bool(is_tombstone), is_newer=True)


def read_again(layout: Layout, state: ColumnarState, scanner: Scanner, names: Sequence[str]) -> dict[str, Timeline]:
    """Return the timelines of some groups from all of their records, which are read again."""
    if not names:
        return {}
    read = ColumnarState(state.profile, until=state.until, release=state.release, with_newer=True)
    numbers = {read.read_again(name): name for name in names}
    order = ScanOrder(layout.log, state.until, state.release)
    begin = order.begin(ScanPlace(0, 0))
    assert begin is not None
    Piece(order, begin, scanner, lambda seen: None, read).run(order.end, lambda size_bytes: None)
    kept = read.arrays.region(Kept).up_to(read.arrays.scan_state.kept).numbers.tolist()
    events = [
        (group, GroupEvent(offset, None) if batch == a.NOTHING else _event(read, offset, batch, index, 0))
        for group, offset, batch, index in kept
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
    """Yield the records of pointers; records of type 2 have their members only if ``whole`` asks for them."""
    row = RECORD_TYPES[2]
    empty = row.values[0].zeros(0)
    read = [pointer for pointer in pointers if whole or pointer.is_newer]
    places = np.array([(pointer.batch, pointer.index) for pointer in read], np.int64).reshape(-1, 2)
    copied, table = scanner.gather(layout, places)
    raw, found = copied.tobytes(), iter(table.tolist())
    for pointer in pointers:
        if whole or pointer.is_newer:
            place = next(found)
            key = raw[place[ga.KEY] : place[ga.KEY] + place[ga.KEY_SIZE]]
            data = raw[place[ga.VALUE] : place[ga.VALUE] + place[ga.VALUE_SIZE]] if place[ga.VALUE_SIZE] >= 0 else None
            yield GroupEvent(pointer.record_offset, decode_coordinator_record(key, data, release))
        else:
            value = None if pointer.is_tombstone else empty
            yield GroupEvent(pointer.record_offset, CoordinatorRecord(record_type=2, key=row.key.zeros(0), value=value))


def names_told(layout: Layout, state: ColumnarState, scanner: Scanner) -> Iterator[tuple[int, bytes, str]]:
    """Yield topic ids and names in records of newer kinds, with the records' offsets.

    Those read on the slow path are in ``ColumnarState.names``.
    """
    rows = _newer_rows(state)
    names_topics = newer.TYPES[_record_types(state, rows), newer.NAMES] == 1
    last = rows.of(names_topics & (rows.column(a.Row.last_offset) != a.NEVER) & (rows.column(a.Row.is_removed) == 0))
    told = state.arrays.region(Told).up_to(state.arrays.scan_state.told).numbers
    places = np.concatenate([told, last.columns(a.Row.last_offset, a.Row.batch, a.Row.index)])
    pointers = [
        Pointer(offset, batch, index, False, is_newer=True)
        for offset, batch, index in places.tolist()
        if batch != a.SLOW_PATH
    ]
    for event in records_at(layout, scanner, pointers, True, state.release):
        if event.record is not None:
            for topic_id, name in topic_names_in(event.record):
                yield event.record_offset, topic_id, name
