"""Both engines on one log, and what they say in a form that compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa

from offsets_log.columnar.events.chunk import ROOM, Room
from offsets_log.columnar.events.export import PART_BYTES, Destination, Export
from offsets_log.columnar.events.rows import EVENT_COLUMNS, event_row
from offsets_log.columnar.events.tables import TableChunk
from offsets_log.columnar.folds import replay as columnar
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.values import finish as finish_columnar
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Note, ScanPlace, Threads
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Event, LogEvent, TailFound, Until
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import replay_into
from offsets_log.replay.profile import Profile
from offsets_log.rows.activity import Activity
from offsets_log.rows.shown import ALL, Shown
from offsets_log.rows.survey import Survey

Answer = dict[str, Any]
RowsAnswer = tuple[list[dict[str, Any]], list[Any]]
EVENT_NAMES = [column.name for column in EVENT_COLUMNS]


def construct_answer(
    log: PartitionLog, profile: Profile, until: Until = EVERYTHING, *, release: tuple[int, int] | None = None
) -> Answer:
    """What the construct path makes of a log."""
    seen: list[Damage | TailFound | Missing] = []
    found = Survey.of(log)

    def kept(event: LogEvent) -> LogEvent:
        if isinstance(event, TailFound | Missing):
            seen.append(event)
        return event

    activity = Activity()
    events = (kept(event) for event in activity.watch(found.watch(iter_events(log, until=until, release=release))))
    state = finish(replay(events, profile, on_damage=seen.append))
    return _answer(state, seen, found) | {"activity": activity.last_ms}


class _Cut(columnar.Replay):
    """A log cut before the batches at some positions too, whose pieces are perhaps joined from the last one on."""

    def __init__(
        self, log: PartitionLog, profile: Profile, *, cuts: Sequence[int], from_last: bool, **how: Any
    ) -> None:
        super().__init__(log, profile, notes_activity=True, **how)
        self.cuts += [ScanPlace(0, position) for position in cuts]
        self.from_last = from_last

    def join(self, parts: Sequence[Any], note: Note) -> ColumnarState:
        made = [part.result() for part in parts]
        states = [part.state for part in made]
        are_plain = not any(state is None or state.is_out_of_place for state in states)
        if self.from_last and are_plain and all(self.order.fits(one.cursor, two.begin) for one, two in pairwise(made)):
            whole: ColumnarState = reduce(lambda later, earlier: earlier.merge(later), reversed(states))
            for seen in chain.from_iterable(part.notes for part in made):
                note(seen)
            replay_into(whole, self.order.note_end(made[-1].cursor, note), on_damage=note)
        else:
            whole = super().join(parts, note)
        for state in filter(None, (whole, *states)):
            assert_fits(state)
        return whole


def assert_fits(state: ColumnarState) -> None:
    """No table holds more than it has room for, and none of hashes is more than half full."""
    s, found = state.arrays, state.arrays.scan_state
    room = s.room() | {"rows": len(s.rows), "groups": len(s.groups), "arena": len(s.arena), "slots": len(s.slots)}
    used = {name: int(getattr(found, name)) for name in ("opened", "cancelled", "named", "owned", "told", "kept")}
    used |= {"rows": found.row_count, "groups": found.group_count, "arena": found.arena_used, "more": found.row_count}
    used |= {"producers": found.producer_count, "unended": found.producer_count, "slots": 2 * found.row_count}
    used |= {"group_slots": 2 * found.group_count, "producer_slots": 2 * found.producer_count}
    used |= {"owned_slots": 2 * found.owned}
    assert used.keys() == room.keys()
    assert not {name: (count, room[name]) for name, count in used.items() if count > room[name]}


def columnar_answer(
    log: PartitionLog,
    profile: Profile,
    until: Until = EVERYTHING,
    *,
    pieces: int = 1,
    cuts: Sequence[int] = (),
    from_last: bool = False,
    release: tuple[int, int] | None = None,
) -> Answer:
    """What the columnar engine makes of it, cut into pieces, or before the batches at these positions."""
    seen: list[Damage | TailFound | Missing] = []
    replayed = next(
        columnar.replay_logs(
            [log],
            profile,
            note=lambda log: seen.append,
            until=lambda log: until,
            release=release,
            threads=Threads(pieces=pieces),
            replay=partial(_Cut, cuts=cuts, from_last=from_last),
        )
    )
    with Scanner() as scanner:
        state = finish_columnar(replayed.layout, replayed.state, scanner)
    found = Survey.of(log)
    replayed.state.tell(found)
    for item in seen:
        if not isinstance(item, Damage):
            found.saw(item)
    return _answer(state, seen, found) | {"activity": replayed.state.last_activity()}


def _answer(state: CoordinatorState, seen: Sequence[Damage | TailFound | Missing], found: Survey) -> Answer:
    return {
        "groups": state.groups,
        "committed": sorted(map(repr, state.committed)),
        "pending": sorted(map(repr, state.pending)),
        "problems": state.problems,
        "topic_names": state.topic_names,
        "end_offset": state.end_offset,
        "seen": [what(item) for item in seen],
        "found": (found.first_offset, found.end_offset, found.tails, found.missing),
        "counts": (found.batches, found.records, found.missing_offsets, found.gaps),
    }


def what(item: Damage | TailFound | Missing) -> tuple[Any, ...]:
    """What was seen, in a form that compares."""
    match item:
        case Damage(error, raw):
            place = (error.file, error.position, error.record_offset, error.field)
            return (type(error).__name__, *place, error.problem, raw)
        case TailFound(segment, tail, lost):
            return ("tail", segment.file, tail, lost)
        case Missing():
            return ("missing", item)


def construct_rows(
    log: PartitionLog, until: Until = EVERYTHING, shown: Shown = ALL, release: tuple[int, int] | None = None
) -> RowsAnswer:
    """Rows and what was seen on the way, one record at a time."""
    rows, seen = [], []
    for event in iter_events(log, until=until, release=release):
        if isinstance(event, Damage | TailFound | Missing):
            seen.append(what(event))
        elif isinstance(event, Event):
            if event.damage is not None:
                seen.append(what(event.damage))
            row = event_row(event)
            if shown.shows(row):
                rows.append({name: row.get(name) for name in EVENT_NAMES})
    return rows, seen


def columnar_rows(
    log: PartitionLog,
    until: Until = EVERYTHING,
    shown: Shown = ALL,
    threads: int = 1,
    release: tuple[int, int] | None = None,
    part_bytes: int = PART_BYTES,
    room: Room = ROOM,
) -> RowsAnswer:
    """The same of the kernels."""
    parts: dict[int, list[dict[str, Any]]] = {}
    seen: list[Any] = []

    def write(log: PartitionLog, number: int, tables: Iterator[pa.Table]) -> int:
        parts[number] = []
        for table in tables:
            table.validate(full=True)
            parts[number] += table.to_pylist()
        return len(parts[number])

    export = Export(
        Destination(write, part_bytes=part_bytes),
        note=lambda log: lambda item: seen.append(what(item)),
        shown=shown,
        until=lambda log: until,
        threads=Threads(threads),
        release=release,
        chunk=partial(TableChunk, room=room),
    )
    count = sum(rows for _, rows in export.parts([log]))
    rows = [row for _, part in sorted(parts.items()) for row in part]
    assert count == len(rows)
    return rows, seen
