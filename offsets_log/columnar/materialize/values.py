"""Finish a replay in bulk: winners, open offsets and groups are found again in the log, as columns or as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.records import places
from offsets_log.columnar.materialize.timelines import group_names, names_told, timelines
from offsets_log.columnar.overflow import More, Named, Opened, Producer
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.wire.programs import SIZES, compile_program, table_of
from offsets_log.log_format.java_text import decode_string
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.offset_commit import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.messages.schema import Message, Scalar
from offsets_log.replay.coordinator_state import CoordinatorState, Holdings, in_order, settle_groups
from offsets_log.replay.group import Group
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.problem import Problem

KEY_FIELDS = ("group", "topic", "partition")
VALUE_FIELDS = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")
OFFSET, LEADER_EPOCH, METADATA, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, TOPIC_ID = range(len(VALUE_FIELDS))
GROUP, TOPIC, PARTITION = range(len(KEY_FIELDS))


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads all versions of a message, as arguments of `gather.read_columns`."""

    scan_state: a.ScanState
    programs: ga.ColumnPrograms

    def read(self, copied: a.Bytes, table: a.Int64s, at: int) -> tuple[a.Int64s, a.Int64s]:
        """Return numbers, −1 where a field is missing, and sizes of texts: int64[n, fields] each."""
        numbers = np.full((len(table), len(self.programs.sizes)), -1, np.int64)
        texts = np.zeros_like(numbers)
        ga.read_columns(self.scan_state.copy(), self.programs, copied, table, at, numbers, texts)
        return numbers, texts


@cache
def reader_of(message: Message, fields: tuple[str, ...], is_key: bool) -> Reader:
    """Return the reader of a message's fields. A key has one layout, whatever number it begins with."""
    versions = range(a.VERSIONS)
    layouts = [0 if is_key else version if message.has_version(version) else None for version in versions]
    programs = {
        version: compile_program(message, layout, noted=fields)
        for version, layout in zip(versions, layouts, strict=True)
        if layout is not None
    }
    code, begins = table_of(programs)
    scan_state = a.new_scan_state(code, seed=0)
    types = {field.name: field.type for field in message.fields}
    sizes = [SIZES.get(types[name].name, 0) for name in fields if isinstance(types[name], Scalar)]  # type: ignore[union-attr]
    made = ga.ColumnPrograms(
        np.array([begins.get(version, 0) for version in versions], np.int64),
        np.array([message.is_flexible(0 if is_key else version) for version in versions], np.int64),
        np.array(sizes, np.int64),
    )
    return Reader(scan_state, made)


def offset_reader() -> Reader:
    """Return the reader of offset commits."""
    return reader_of(OFFSET_COMMIT_VALUE, VALUE_FIELDS, False)


def key_reader() -> Reader:
    """Return the reader of offset commits' keys."""
    return reader_of(OFFSET_COMMIT_KEY, KEY_FIELDS, True)


@dataclass(frozen=True, slots=True)
class ReferencedRows:
    """What a finished replay refers to: rows with a committed offset, and open offsets.

    Attributes:
        committed: row numbers.
        pending: (row, record offset, batch, index), int64[n, 4].
    """

    committed: a.Int64s
    pending: a.Int64s


def find(state: ColumnarState) -> ReferencedRows:
    """Return the rows that have a committed offset, and the open offsets."""
    s = state.arrays
    rows = s.rows.up_to(s.scan_state.row_count)
    is_live = (rows.column(a.Row.record_offset) != a.NEVER) & (rows.column(a.Row.target) == np.arange(len(rows)))
    pending = np.array([place for _, *place in iter_open(state)], np.int64).reshape(-1, 4)
    return ReferencedRows(np.flatnonzero(is_live), pending)


def iter_open(state: ColumnarState, *, cancels: bool = False) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the last open record of every producer and key, unless a tombstone cancelled it (``J-12``, ``L-18``).

    Args:
        cancels: yield those that are tombstones, which cancel what pieces before have open; else the values.

    Yields:
        (producer id, row, record offset, batch, index).
    """
    s = state.arrays
    opened = s.region(Opened)
    ends_all = state.profile.cancels_pending == "all"
    for producer in s.region(Producer).up_to(s.scan_state.producer_count):
        seen: set[int] = set()
        number = int(producer.newest)
        while number != a.NOTHING:
            row, record_offset, batch, index, is_tombstone, number = opened[number].numbers.tolist()
            if row in seen:
                continue
            seen.add(row)
            if is_tombstone == cancels and not (ends_all and record_offset < s.rows[row].tombstone_offset):
                yield int(producer.producer_id), row, record_offset, batch, index


def open_offsets(layout: Layout, state: ColumnarState, scanner: Scanner) -> Iterator[OffsetAndMetadata]:
    """Return the offsets of open transactions, as `finish` has them."""
    return offsets_at(layout, state, scanner, find(state).pending[:, [2, 3, 1, 1]])


def negative_offsets(layout: Layout, state: ColumnarState, scanner: Scanner) -> Iterator[OffsetAndMetadata]:
    """Return the committed offsets below zero; of all others only the number is read."""
    places = committed_places(state, find(state))
    is_plain = places[:, 0] != a.SLOW_PATH
    copied, table = scanner.gather(layout, places[is_plain, :2])
    numbers, _ = offset_reader().read(copied, table, ga.VALUE)
    is_asked = ~is_plain
    is_asked[is_plain] = numbers[:, OFFSET] < 0
    found = offsets_at(layout, state, scanner, places[is_asked])
    return (value for value in found if value.committed_offset < 0)


def finish(
    layout: Layout, state: ColumnarState, scanner: Scanner, *, whole_groups: bool = True, with_offsets: bool = True
) -> CoordinatorState:
    """Return what a coordinator holds, as `replay.coordinator_state.finish` does.

    Args:
        whole_groups: whether to read the members of classic groups; otherwise it is only known that such a group
            exists.
        with_offsets: whether to read the committed offsets, which are many; otherwise there are none in the answer.
    """
    found = find(state)
    committed = committed_places(state, found) if with_offsets else np.empty((0, 4), np.int64)
    pending = found.pending[:, [2, 3, 1, 1]]
    values = list(offsets_at(layout, state, scanner, np.concatenate([committed, pending])))
    committed_values, pending_values = tuple(values[: len(committed)]), tuple(values[len(committed) :])
    groups, problems = settled(layout, state, scanner, found, whole=whole_groups)
    return CoordinatorState(
        profile=state.profile,
        groups=groups,
        committed=committed_values,
        pending=pending_values,
        problems=problems,
        topic_names=topic_names(state, names_told(layout, state, scanner)),
        end_offset=state.end_offset,
    )


def committed_places(state: ColumnarState, found: ReferencedRows) -> a.Int64s:
    """Return the places of committed offsets, as `offsets_at` takes them."""
    rows = state.arrays.rows.of(found.committed)
    return rows.columns(a.Row.batch, a.Row.index, a.Row.record_offset, a.Row.applied_offset)


def existing_groups(
    layout: Layout, state: ColumnarState, scanner: Scanner, found: ReferencedRows
) -> npt.NDArray[np.bool_]:
    """Return for each group number whether the group exists."""
    groups, _ = settled(layout, state, scanner, found, whole=False)
    return np.array([name in groups for name in group_names(state)], np.bool_)


def holdings(
    layout: Layout,
    state: ColumnarState,
    scanner: Scanner,
    *,
    shows_group: Callable[[str], bool],
    shows_topic: Callable[[str], bool] | None,
) -> Holdings:
    """Return how much of the shown groups and topics a coordinator holds; None shows all topics."""
    found = find(state)
    groups, _ = settled(layout, state, scanner, found, whole=True)
    names = group_names(state)
    rows = state.arrays.rows.of(found.committed)
    if shows_topic is not None:
        keys = (state.arrays.text_at(at) for at in rows.column(a.Row.key_at).tolist())
        rows = rows.of(
            np.array([shows_topic(decode_coordinator_record(key, None).key["topic"]) for key in keys], np.bool_)
        )
    counts = np.bincount(rows.column(a.Row.group), minlength=len(names)).tolist()
    shown = [(name in groups, count) for name, count in zip(names, counts, strict=True) if shows_group(name)]
    return Holdings(
        tuple(group for name, group in groups.items() if shows_group(name)),
        offsets=sum(count for exists, count in shown if exists),
        orphans=sum(count for exists, count in shown if not exists),
        pending=tuple(sorted(open_offsets(layout, state, scanner), key=attrgetter("record_offset"))),
        hidden_groups=sum(not shows_group(name) for name in groups),
    )


def settled(
    layout: Layout, state: ColumnarState, scanner: Scanner, found: ReferencedRows, *, whole: bool
) -> tuple[dict[str, Group], tuple[Problem, ...]]:
    """Return the groups once all records are replayed, and what a load would have met, by record offset.

    Args:
        whole: whether to read the members of classic groups.
    """
    groups, problems = settle_groups(
        state.profile,
        dict(timelines(layout, state, scanner, whole)),
        committed=_groups_of_rows(state, found.committed),
        pending=_groups_of_rows(state, found.pending[:, 0]),
        end_offset=state.end_offset,
    )
    return groups, in_order((*state.problems, *problems))


def _groups_of_rows(state: ColumnarState, rows: a.Int64s) -> set[str]:
    """Return the names of the groups of some rows."""
    names = group_names(state)
    is_there = np.bincount(state.arrays.rows.column(a.Row.group)[rows])
    return {names[number] for number in np.flatnonzero(is_there).tolist()}


def offsets_at(layout: Layout, state: ColumnarState, scanner: Scanner, places: a.Int64s) -> Iterator[OffsetAndMetadata]:
    """Return the offsets at places, int64[n, 4]: batch, index, record offset, applied offset."""
    slow_path = places[:, 0] == a.SLOW_PATH
    plain = places[~slow_path]
    copied, table = scanner.gather(layout, plain[:, :2])
    keys, key_sizes = key_reader().read(copied, table, ga.KEY)
    numbers, sizes = offset_reader().read(copied, table, ga.VALUE)
    raw = copied.tobytes()
    texts = _Once(decode_string)
    found = map(  # in the order of its fields
        OffsetAndMetadata,
        _named(texts, raw, keys[:, GROUP], key_sizes[:, GROUP]),
        _named(texts, raw, keys[:, TOPIC], key_sizes[:, TOPIC]),
        keys[:, PARTITION].tolist(),
        numbers[:, OFFSET].tolist(),
        _unless_absent(numbers[:, LEADER_EPOCH]),
        _named(texts, raw, numbers[:, METADATA], sizes[:, METADATA]),
        numbers[:, COMMIT_TIMESTAMP].tolist(),
        _unless_absent(numbers[:, EXPIRE_TIMESTAMP]),
        topic_ids(raw, numbers[:, TOPIC_ID]),
        plain[:, 2].tolist(),
        plain[:, 3].tolist(),
        table[:, ga.PRODUCER_ID].tolist(),
        table[:, ga.PRODUCER_EPOCH].tolist(),
    )
    if not slow_path.any():
        return found
    return (
        state.values[index]._replace(applied_offset=applied_offset) if batch == a.SLOW_PATH else next(found)
        for batch, index, _, applied_offset in places.tolist()
    )


class _Once(dict[bytes, str]):
    """Raw bytes → text; decoded once, as names repeat often."""

    def __init__(self, decode: Callable[[bytes], str]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = self._decode(raw)
        return text


def _named(texts: _Once, raw: bytes, begins: a.Int64s, sizes: a.Int64s) -> list[str]:
    return [texts[raw[begin:end]] for begin, end in zip(begins.tolist(), (begins + sizes).tolist(), strict=True)]


def topic_ids(raw: bytes, begins: a.Int64s) -> list[str | None]:
    """Return topic ids as text; None where a value has none, or only zeros."""
    texts = _Once(lambda topic_id: str(Uuid(topic_id)))
    ids = (raw[begin : begin + SIZES["uuid"]] if begin >= 0 else b"" for begin in begins.tolist())
    return [texts[topic_id] if any(topic_id) else None for topic_id in ids]


def _unless_absent(numbers: a.Int64s) -> list[int | None]:
    return [None if number == -1 else number for number in numbers.tolist()]


def topic_names(state: ColumnarState, told: Iterable[tuple[int, bytes, str]] = ()) -> dict[bytes, str]:
    """Return topic id → name; the last record with both wins.

    Args:
        told: further entries like those of `ColumnarState.names`.
    """
    s = state.arrays
    rows = s.scan_state.row_count
    more = s.region(More).up_to(rows)
    ids = more.columns(More.topic_high, More.topic_low, More.topic_offset)
    has_id = ids[:, :2].any(axis=1)
    known = np.flatnonzero(has_id & (s.rows.up_to(rows).column(a.Row.target) >= 0))
    named = s.region(Named).up_to(s.scan_state.named).numbers
    latest = np.column_stack([known, ids[known]])
    entries = [*state.names, *told]
    for row, high, low, record_offset in _ends_of_ids(np.concatenate([named, latest])).tolist():
        fields = decode_coordinator_record(s.text_at(int(s.rows[row].key_at)), None).key
        entries.append((record_offset, high.to_bytes(8, signed=True) + low.to_bytes(8, signed=True), fields["topic"]))
    entries.sort(key=lambda entry: entry[0])
    return {topic_id: name for _, topic_id, name in entries}


def _ends_of_ids(said: a.Int64s) -> a.Int64s:
    """Return of numbers of `Named` the first and the last of each topic id."""
    said = said[np.lexsort([said[:, at] for at in places(Named.offset, Named.low, Named.high)])]
    ids = said[:, places(Named.high, Named.low)]
    is_other = np.any(ids[1:] != ids[:-1], axis=1)
    ends: a.Int64s = said[np.append(True, is_other)[: len(said)] | np.append(is_other, True)[: len(said)]]
    return ends
