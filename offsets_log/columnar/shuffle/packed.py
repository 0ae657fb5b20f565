"""What became of a piece of a log as bytes: the state that threads join, and the records that it refers to.

A process that has the bytes joins pieces by `Replay.join`, as this process joins those of its threads, and `Carried`
stands for the log where values are looked up. Two pieces that do not fit together are read again from the log itself,
and so is a group whose newer records must be read once more. The form is a stream of Arrow, with a row for each array;
it is read by the version of this package that wrote it, and by no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from offsets_log import errors
from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import merge
from offsets_log.columnar.folds.replay import Part, Replay, Replayed
from offsets_log.columnar.folds.state import ColumnarState, Pointer
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.overflow import Opened, Producer, Told
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanPlace, Seen
from offsets_log.errors import Damage
from offsets_log.events import TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.segment import Tail
from offsets_log.messages.registry import decode_coordinator_record, encode_coordinator_record
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.timeline import GroupEvent

SCHEMA = pa.schema([("name", pa.string()), ("data", pa.large_binary())])
Release = tuple[int, int]
Row = dict[str, Any]


def pack(part: Part, layout: Layout) -> bytes:
    """Return what became of a piece, with the records that its state refers to."""
    facts: Row = {
        "end": _place(part.end),
        "begin": None if part.begin is None else _place(part.begin),
        "notes": [told_of(seen) for seen in part.notes],
    }
    arrays: dict[str, Any] = {}
    if part.cursor is not None and part.state is not None:
        facts["cursor"] = asdict(part.cursor)
        facts |= _facts_of(part.state)
        arrays = _arrays_of(part.state, layout)
    rows = {"facts": json.dumps(facts).encode()} | {name: array.tobytes() for name, array in arrays.items()}
    batch = pa.record_batch([pa.array(rows.keys(), pa.string()), pa.array(rows.values(), pa.large_binary())], SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _arrays_of(state: ColumnarState, layout: Layout) -> dict[str, Any]:
    s = state.arrays
    merge.compact_open(s.all)
    places = _referred_to(state)
    with Scanner() as scanner:
        copied, table = scanner.gather(layout, places)
    return {
        "scan_state": s.scan_state.numbers,
        "rows": s.rows.numbers,
        "groups": s.groups.numbers,
        "arena": s.arena,
        "overflow": s.overflow,
        "places": places,
        "table": table,
        "copied": copied[: _end_of(table)],
    }


def _referred_to(state: ColumnarState) -> a.Int64s:
    """Return the places of all records that the state refers to, int64[n, 2] of (batch, index), each once."""
    s = state.arrays
    rows = s.rows.up_to(s.scan_state.row_count)
    groups = s.groups.up_to(s.scan_state.group_count)
    told = s.region(Told).up_to(s.scan_state.told)
    pointers = [
        (event.batch, event.index) for of_group in state.events.values() for event in of_group
        if isinstance(event, Pointer)
    ]  # fmt: skip
    found = [
        rows.of(rows.column(a.Row.record_offset) != a.NEVER).columns(a.Row.batch, a.Row.index),
        groups.of(groups.column(a.Group.metadata_offset) != a.NEVER).columns(
            a.Group.metadata_batch, a.Group.metadata_index
        ),
        groups.of(groups.column(a.Group.anchor_offset) != a.NEVER).columns(a.Group.anchor_batch, a.Group.anchor_index),
        told.columns(Told.batch, Told.index),
        np.array([*_open_places(state), *pointers], np.int64).reshape(-1, 2),
    ]
    places = np.unique(np.concatenate(found), axis=0)
    return places[places[:, 0] >= 0]


def _open_places(state: ColumnarState) -> Iterator[tuple[int, int]]:
    """Yield the places of the values of open transactions."""
    opened = state.arrays.region(Opened)
    for producer in state.arrays.region(Producer).up_to(state.arrays.scan_state.producer_count):
        number = int(producer.newest)
        while number != a.NOTHING:
            _, _, batch, index, cancels, number = opened[number].numbers.tolist()
            if not cancels:
                yield batch, index


def _end_of(table: a.Int64s) -> int:
    ends = table[:, [ga.KEY, ga.VALUE]] + np.maximum(table[:, [ga.KEY_SIZE, ga.VALUE_SIZE]], 0)
    return int(ends.max(initial=0))


def _place(place: ScanPlace) -> list[int]:
    return [place.segment_index, place.position]


def _facts_of(state: ColumnarState) -> Row:
    """Return what a state has in Python's lists."""
    return {
        "is_out_of_place": state.is_out_of_place,
        "problems": [asdict(problem) for problem in state.problems],
        "names": [(offset, topic_id.hex(), name) for offset, topic_id, name in state.names],
        "values": [[_text(cell) for cell in value] for value in state.values],
        "group_records": [*map(_event, state.group_records)],
        "events": {str(group): [*map(_event, events)] for group, events in state.events.items()},
    }


def _text(cell: Any) -> Any:
    return {"raw": cell.raw.hex()} if isinstance(cell, MalformedString) else cell


def _event(event: GroupEvent | Pointer) -> Sequence[Any]:
    """Return the fields of a pointer, or where a record stands, its key and its value."""
    if isinstance(event, Pointer):
        return astuple(event)
    key, value = (None, None) if event.record is None else encode_coordinator_record(event.record)
    return event.record_offset, *(None if part is None else part.hex() for part in (key, value))


def told_of(seen: Seen) -> Row:
    """Return what was seen in a log as plain data, which `seen_of` reads back."""
    match seen:
        case Damage(error, raw):
            place = {name: getattr(error, name) for name in ("file", "position", "record_offset", "field")}
            return {"error": type(error).__name__, "problem": error.problem, "place": place, "raw": raw.hex()}
        case TailFound(segment, tail, lost):
            return {"tail": asdict(tail), "file": segment.file, "broken": segment.is_of_broken, "lost": lost}
        case Missing():
            return {"missing": asdict(seen)}


@dataclass(frozen=True, slots=True)
class Packed:
    """What became of a piece, as `Replay.join` waits for it, with the records that it carries.

    Attributes:
        places: those of the records, ascending, int64[n, 2].
        table: their columns of `gather.COLUMNS`.
        copied: their bytes.
    """

    part: Part
    places: a.Int64s
    table: a.Int64s
    copied: a.Bytes

    def result(self) -> Part:
        """Return what became of it."""
        return self.part


def unpack(data: bytes, replay: Replay) -> Packed:
    """Return a piece from the bytes of `pack`.

    Args:
        replay: of the whole log.
    """
    table = pa.ipc.open_stream(data).read_all()
    rows = dict(zip(table["name"].to_pylist(), table["data"].chunks[0], strict=True))
    facts: Row = json.loads(rows["facts"].as_buffer().to_pybytes())

    def numbers(name: str, kind: Any = np.int64) -> Any:
        return np.frombuffer(rows[name].as_buffer(), kind) if name in rows else np.empty(0, kind)

    begin = None if facts["begin"] is None else ScanPlace(*facts["begin"])
    cursor = state = None
    if "cursor" in facts:
        cursor = Cursor(**(facts["cursor"] | {"place": ScanPlace(**facts["cursor"]["place"])}))
        state = _state_of(facts, numbers, replay.new_state())
    part = Part(ScanPlace(*facts["end"]), begin, cursor, state, [*map(seen_of, facts["notes"])])
    places, columns = numbers("places").reshape(-1, 2), numbers("table").reshape(-1, ga.COLUMNS)
    return Packed(part, places, columns, numbers("copied", np.uint8))


def _state_of(facts: Row, numbers: Callable[..., Any], state: ColumnarState) -> ColumnarState:
    """Return a new state with what was packed of another."""
    s = state.arrays
    s.scan_state = a.ScanState(numbers("scan_state").copy())
    rows = numbers("rows").reshape(-1, a.Row.dtype.itemsize // 8)
    s.rows = a.new_rows(len(rows), Table.of_numbers(a.Row, rows))
    s.groups = Table.of_numbers(a.Group, numbers("groups").reshape(-1, a.Group.dtype.itemsize // 8).copy())
    arena = numbers("arena", np.uint8)
    s.arena = a.new_arena(len(arena))
    s.arena[:] = arena
    s.overflow = numbers("overflow").copy()
    state.find_slots()
    state.is_out_of_place = facts["is_out_of_place"]
    state.problems = [Problem(**problem) for problem in facts["problems"]]
    state.names = [(offset, bytes.fromhex(topic_id), name) for offset, topic_id, name in facts["names"]]
    state.values = [OffsetAndMetadata(*map(_cell, value)) for value in facts["values"]]
    event_of = partial(_event_of, state.release)
    state.group_records = [event for event in map(event_of, facts["group_records"]) if isinstance(event, GroupEvent)]
    state.events = {int(group): [*map(event_of, events)] for group, events in facts["events"].items()}
    return state


def _cell(cell: Any) -> Any:
    return MalformedString(bytes.fromhex(cell["raw"])) if isinstance(cell, dict) else cell


def _event_of(release: Release | None, told: Sequence[Any]) -> GroupEvent | Pointer:
    if len(told) == len(fields(Pointer)):
        return Pointer(*told)
    record_offset, key, value = told
    if key is None:
        return GroupEvent(record_offset, None)
    decoded = decode_coordinator_record(bytes.fromhex(key), None if value is None else bytes.fromhex(value), release)
    return GroupEvent(record_offset, decoded)


def seen_of(told: Row) -> Seen:
    """Return what was seen from `told_of`."""
    if "missing" in told:
        return Missing(**told["missing"])
    if "tail" in told:
        return TailFound(
            Segment(told["file"], None, b"", is_of_broken=told["broken"]), Tail(**told["tail"]), told["lost"]
        )
    kind: type[errors.OffsetsLogError] = getattr(errors, told["error"])
    return Damage(kind(told["problem"], **told["place"]), bytes.fromhex(told["raw"]))


class Carried(Scanner):
    """Looks up records that came with pieces; others in the log."""

    def __init__(self, pieces: Sequence[Packed]) -> None:
        super().__init__()
        starts = np.cumsum([0, *(len(piece.copied) for piece in pieces)])[:-1].tolist()
        moved = [_moved(piece.table, start) for piece, start in zip(pieces, starts, strict=True)]
        keys = _keys(np.concatenate([piece.places for piece in pieces]))
        order = np.argsort(keys)
        self._sorted, self._table = keys[order], np.concatenate(moved)[order]
        self._copied: a.Bytes = np.concatenate([piece.copied for piece in pieces])

    def gather(self, layout: Layout, places: a.Int64s) -> tuple[a.Bytes, a.Int64s]:
        """Do what `Scanner.gather` does."""
        asked = _keys(places)
        at = np.minimum(np.searchsorted(self._sorted, asked), max(len(self._sorted) - 1, 0))
        is_here = self._sorted[at] == asked if len(self._sorted) else np.zeros(len(asked), np.bool_)
        if is_here.all():
            return self._copied, self._table[at]
        table = np.zeros((len(places), ga.COLUMNS), np.int64)
        table[is_here] = self._table[at[is_here]]
        copied, others = super().gather(layout, places[~is_here])
        table[~is_here] = _moved(others, len(self._copied))
        return np.concatenate([self._copied, copied]), table


def _keys(places: a.Int64s) -> Any:
    """Return places as texts that are in their order."""
    return np.ascontiguousarray(places.astype(">i8")).view("S16").reshape(-1)


def _moved(table: a.Int64s, by: int) -> a.Int64s:
    """Return the columns of records whose bytes stand so much further."""
    made = table.copy()
    made[:, ga.KEY] += by
    made[:, ga.VALUE] += by
    return made


def join(pieces: Sequence[bytes], replay: Replay, note: Callable[[Seen], None]) -> Replayed:
    """Join the pieces of a log, all of them in log order.

    Args:
        replay: of the whole log, with as many pieces.
    """
    packed = [unpack(data, replay) for data in pieces]
    state = replay.join(packed, note)
    return Replayed(replay.order.log, replay.order.layout, state, partial(Carried, packed))
