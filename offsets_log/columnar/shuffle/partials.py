"""Convert a piece's state to a table and back: what is shuffled from tasks that read pieces to those that join them.

`partial_table` writes a `ColumnarState` as rows, one for each distinct key and piece; `join` takes the rows of all
pieces of a log, or of any set of groups of it, and joins them in log order by the same rules and kernels as
`ColumnarState.merge`. Values travel with their rows, so joining needs no file.

The column ``kind`` says what a row is:

=============  ======================================================================================================
offset         a GroupTopicPartition: its committed offset (``record_offset`` null without one), its last tombstone
open           the last record of an open transaction for a GroupTopicPartition; ``is_tombstone``: one that cancels
cancelled      a GroupTopicPartition whose pending offset of an earlier piece the producer's tombstone cancelled
producer       a producer's first marker: ``record_offset``, ``commits``
group          the last type 2 record of a group (``record_offset``, ``value``, ``is_tombstone``), if nothing but type 2
               follows, and ``applied_offset``: the last offset value of the group, whatever became of it
group_record   any other record of a group in order, as ``key`` and ``value``; without a key: an offset value was seen
topic_name     a topic id and its name
problem        what would end a broker's load, in ``facts``
piece          how far the piece reaches, and how many batches and records it has, in ``facts``
damage         a piece of a file that could not be read: ``facts``, and its bytes in ``value``
tail, missing  as `events.TailFound` and `completeness.Missing`, in ``facts``
=============  ======================================================================================================

Over 400 lines: each kind of row is written and joined here, so that both ways stand together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import merge
from offsets_log.columnar.folds.state import ColumnarState, Pointer, canonical_key
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.materialize import timelines as ti
from offsets_log.columnar.materialize import values as fi
from offsets_log.columnar.materialize.arrow import offset_columns, schema_of, texts
from offsets_log.columnar.overflow import SIZES, Cancelled, Opened, Producer
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.state import State
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from offsets_log.replay.coordinator_state import settle_groups
from offsets_log.replay.group import Group
from offsets_log.replay.partial import NO_OFFSET, GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import GroupEvent, Timeline
from offsets_log.rows.tables import COMPACT_COLUMNS, Column, Row, offset_row

VALUE_COLUMNS = tuple(
    column.name
    for column in COMPACT_COLUMNS
    if column.name not in ("group", "topic", "partition", "record_offset", "offsets_partition")
)
"""Columns that an offset commit's value tells."""
NAMES_BASE64 = ("group_base64", "topic_base64", "metadata_base64")
PARTIAL_COLUMNS = (
    Column("kind", "string", "kind of the row; see the module's docstring"),
    Column("log", "int", "number of the log among those that are read"),
    Column("piece", "int", "number of the piece in its log"),
    Column("pieces", "int", "how many pieces the log has"),
    Column("number", "int", "place among the piece's rows of its kind"),
    *COMPACT_COLUMNS,
    *(Column(name, "string", "raw bytes of a name that is not UTF-8") for name in NAMES_BASE64),
    Column(
        "applied_offset",
        "bigint",
        "record offset at which an offset took effect: its own, or that of its commit marker",
    ),
    Column("tombstone_offset", "bigint", "record offset of the last tombstone that ends committed offsets"),
    Column("producer_id", "bigint", "producer of a transaction; -1 for a plain commit"),
    Column("producer_epoch", "int", "the producer's epoch"),
    Column("commits", "boolean", "whether a marker commits"),
    Column(
        "is_tombstone",
        "boolean",
        "whether a group's last type 2 record, or a record of an open transaction, is a tombstone",
    ),
    Column("key", "binary", "raw key of a group's record"),
    Column("value", "binary", "raw value of a group's record, or bytes of a damaged piece"),
    Column("facts", "json", "facts about a row without a key: a piece, damage, a problem"),
)
SCHEMA = schema_of(PARTIAL_COLUMNS)

Numbers = npt.NDArray[Any]
Columns = dict[str, Any]


# --------------------------------------------------------------------------------------- a state as rows


def partial_table(layout: Layout, state: ColumnarState, scanner: Scanner, *, members: bool) -> pa.Table:
    """Return the rows of a piece except those of kind ``piece`` and of what was seen; log and piece are not filled in.

    Args:
        members: whether to include the values of type 2 records, which hold the members of classic groups.
    """
    merge.compact_open(state.arrays.all)
    names = ti.group_names(state)
    rows = [
        *_producer_rows(state),
        *_cancelled_rows(state),
        *_group_record_rows(layout, state, scanner, names, members),
        *({"kind": "topic_name", "topic_id": str(Uuid(i)), "topic": name} for i, name in fi.topic_names(state).items()),
        *({"kind": "problem", "facts": json.dumps(problem_facts(problem))} for problem in state.problems),
    ]
    return pa.concat_tables(
        [_offset_rows(layout, state, scanner), _group_rows(layout, state, scanner, names, members), table_of(rows)]
    )


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table; missing columns are null."""
    return pa.Table.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in SCHEMA], schema=SCHEMA
    )


def _table(columns: Columns, count: int) -> pa.Table:
    """Return columns as a table; those that are not given are null."""
    return pa.Table.from_arrays(
        [_cast(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
         for field in SCHEMA],
        schema=SCHEMA,
    )  # fmt: skip


def _cast(column: Any, kind: pa.DataType) -> pa.Array:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    return array if array.type == kind else array.cast(kind)


def _offset_rows(layout: Layout, state: ColumnarState, scanner: Scanner) -> pa.Table:
    """Return rows of kind ``offset`` and ``open``."""
    s = state.arrays
    rows = s.rows.up_to(s.scan_state.row_count)
    is_canonical = rows.column(a.Row.target) == np.arange(len(rows))
    has_value = rows.column(a.Row.record_offset) != a.NEVER
    tombstone_offset = rows.column(a.Row.tombstone_offset)
    ended = np.flatnonzero(is_canonical & ~has_value & (tombstone_offset != a.NEVER))
    live = np.flatnonzero(is_canonical & has_value)
    open_values, open_cancels = (_open_records(state, cancels=cancels) for cancels in (False, True))
    committed = rows.of(live).columns(a.Row.batch, a.Row.index, a.Row.record_offset, a.Row.applied_offset)
    pending = open_values[:, [2, 3, 1, 1]]
    values = _value_columns(layout, state, scanner, np.concatenate([committed, pending]))
    number = len(live) + len(pending)
    more = [
        (_key_columns(state, ended), ["offset"] * len(ended), tombstone_offset[ended], None),
        (_key_columns(state, open_cancels[:, 0]), ["open"] * len(open_cancels), None, open_cancels),
    ]
    keys = _key_columns(state, np.concatenate([live, open_values[:, 0]]))
    tombstones = np.concatenate([tombstone_offset[live], np.full(len(pending), a.NEVER, np.int64)])
    made = values | keys | {
        "kind": pa.array(["offset"] * len(live) + ["open"] * len(pending), pa.string()),
        "record_offset": np.concatenate([_record_offsets(state, committed), pending[:, 2]]),
        "applied_offset": np.concatenate([committed[:, 3], pending[:, 3]]),
        "tombstone_offset": pa.array(tombstones, mask=tombstones == a.NEVER),
        "is_tombstone": pa.repeat(pa.scalar(False), number),
    }  # fmt: skip
    made["producer_id"] = _with_owners(made["producer_id"], open_values[:, 4], len(live))
    tables = [_table(made, number)]
    for columns, kinds, tombstone_offsets, cancels in more:
        columns["kind"] = pa.array(kinds, pa.string())
        if tombstone_offsets is not None:
            columns["tombstone_offset"] = tombstone_offsets
        if cancels is not None:
            columns |= {"record_offset": cancels[:, 1], "producer_id": cancels[:, 4]}
            columns["is_tombstone"] = pa.repeat(pa.scalar(True), len(cancels))
        tables.append(_table(columns, len(kinds)))
    return pa.concat_tables(tables)


def _record_offsets(state: ColumnarState, places: a.Int64s) -> a.Int64s:
    """Return the record offsets of values at places, which of the slow path's may have another number."""
    record_offsets = places[:, 2].copy()
    for at in np.flatnonzero(places[:, 0] == a.SLOW_PATH).tolist():
        record_offsets[at] = state.values[places[at, 1]].record_offset
    return record_offsets


def _with_owners(producer_ids: Any, owners: Numbers, before: int) -> Numbers:
    """Return producer ids in which open records have the producer they wait for.

    A classic coordinator knows this producer from the batch even so.
    """
    return np.concatenate([np.asarray(producer_ids, np.int64)[:before], owners])


def _open_records(state: ColumnarState, *, cancels: bool) -> Numbers:
    """Return what `iter_open` yields as int64[n, 5] of (row, record offset, batch, index, producer id)."""
    found = [(*place, producer_id) for producer_id, *place in fi.iter_open(state, cancels=cancels)]
    return np.array(found, np.int64).reshape(-1, 5)


def _key_columns(state: ColumnarState, rows: Numbers) -> Columns:
    """Return group, topic and partition of rows, from their canonical keys."""
    s = state.arrays
    at = s.rows.column(a.Row.key_at)[rows]
    sizes = sum(s.arena[at - a.SIZE_BYTES + i].astype(np.int64) << 8 * i for i in range(a.SIZE_BYTES))
    table = np.zeros((len(at), ga.COLUMNS), np.int64)
    table[:, ga.KEY], table[:, ga.KEY_SIZE] = at, sizes
    keys, text_sizes = fi.key_reader().read(s.arena, table, ga.KEY)
    return {
        "group": texts(s.arena, keys[:, fi.GROUP], text_sizes[:, fi.GROUP]),
        "topic": texts(s.arena, keys[:, fi.TOPIC], text_sizes[:, fi.TOPIC]),
        "partition": pa.array(keys[:, fi.PARTITION], pa.int32()),
    }


def _value_columns(layout: Layout, state: ColumnarState, scanner: Scanner, places: a.Int64s) -> Columns:
    """Return the values at places, int64[n, 4] of (batch, index, record offset, applied offset), as columns."""
    if not np.any(places[:, 0] == a.SLOW_PATH):
        copied, table = scanner.gather(layout, places[:, :2])
        columns = offset_columns(copied, table)
        if columns is not None:
            return columns | {"producer_id": table[:, ga.PRODUCER_ID], "producer_epoch": table[:, ga.PRODUCER_EPOCH]}
    values = list(fi.offsets_at(layout, state, scanner, places))
    rows = [
        offset_row(value, None) | {"producer_id": value.producer_id, "producer_epoch": value.producer_epoch}
        for value in values
    ]
    names = [*VALUE_COLUMNS, *NAMES_BASE64, "producer_id", "producer_epoch"]
    return {name: pa.array([row.get(name) for row in rows], SCHEMA.field(name).type) for name in names}


def _producer_rows(state: ColumnarState) -> Iterator[Row]:
    s = state.arrays
    for producer in s.region(Producer).up_to(s.scan_state.producer_count):
        if producer.head_offset != a.NOTHING:
            yield {
                "kind": "producer",
                "producer_id": int(producer.producer_id),
                "record_offset": int(producer.head_offset),
                "commits": bool(producer.head_commits),
            }


def _cancelled_rows(state: ColumnarState) -> Iterator[Row]:
    s = state.arrays
    cancelled = s.region(Cancelled).up_to(s.scan_state.cancelled)
    producers = s.region(Producer).of(cancelled.column(Cancelled.producer)).column(Producer.producer_id).tolist()
    keys = {name: column.to_pylist() for name, column in _key_columns(state, cancelled.column(Cancelled.row)).items()}
    for i, producer_id in enumerate(producers):
        yield {"kind": "cancelled", "producer_id": producer_id} | {name: column[i] for name, column in keys.items()}


def _group_rows(
    layout: Layout, state: ColumnarState, scanner: Scanner, names: Sequence[str], members: bool
) -> pa.Table:
    """Return what the arrays know of groups: their last type 2 record and their last offset value."""
    groups = state.arrays.groups.up_to(len(names))
    offsets = groups.columns(a.Group.metadata_offset, a.Group.value_offset)
    known = np.flatnonzero((offsets != a.NEVER).any(axis=1))
    groups, metadata_offset, value_offset = groups.of(known), offsets[known, 0], offsets[known, 1]
    has_record = metadata_offset != a.NEVER
    is_tombstone = groups.column(a.Group.is_tombstone) != 0
    raw: list[bytes | None] = [None] * len(groups)
    if members:
        wanted = np.flatnonzero(has_record & ~is_tombstone)
        copied, table = scanner.gather(
            layout, groups.of(wanted).columns(a.Group.metadata_batch, a.Group.metadata_index)
        )
        data = copied.tobytes()
        for number, place in zip(wanted.tolist(), table.tolist(), strict=True):
            raw[number] = data[place[ga.VALUE] : place[ga.VALUE] + place[ga.VALUE_SIZE]]
    return _table(
        {
            "kind": pa.array(["group"] * len(groups), pa.string()),
            "group": pa.array([names[number] for number in known.tolist()], pa.string()),
            "record_offset": pa.array(metadata_offset, mask=~has_record),
            "is_tombstone": pa.array(is_tombstone, mask=~has_record),
            "applied_offset": pa.array(value_offset, mask=value_offset == a.NEVER),
            "value": pa.array(raw, pa.binary()),
        },
        len(groups),
    )


def _group_record_rows(
    layout: Layout, state: ColumnarState, scanner: Scanner, names: Sequence[str], members: bool
) -> Iterator[Row]:
    events = [(group, event) for group, of_group in state.events.items() for event in of_group]
    pointers = [event for _, event in events if isinstance(event, Pointer)]
    records = ti.records_at(layout, scanner, pointers, members)
    for number, (group, event) in enumerate(events):
        found = next(records) if isinstance(event, Pointer) else event
        row: Row = {
            "kind": "group_record", "number": number, "group": names[group], "record_offset": found.record_offset
        }  # fmt: skip
        if found.record is not None:
            row["key"], row["value"] = encode_coordinator_record(found.record)
        yield row


def problem_facts(problem: Problem) -> Row:
    """Return a problem as the facts of its row."""
    return {
        "record_offset": problem.record_offset, "rule": problem.rule, "problem": problem.problem,
        "group": problem.group, "is_served": problem.is_served,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ rows joined


@dataclass(frozen=True, slots=True)
class Joined:
    """Pieces joined.

    Attributes:
        table: the rows they were made from.
        committed, pending: for each offset the row of ``table`` that holds the value.
        applied_offset: for each committed offset where it took effect.
        is_unstable: for each committed offset whether a pending one has the same key.
        groups: the groups that exist.
        problems: the problems a load would have met, in these groups.
    """

    table: pa.Table
    committed: a.Int64s
    pending: a.Int64s
    applied_offset: a.Int64s
    is_unstable: npt.NDArray[np.bool_]
    groups: Mapping[str, Group]
    problems: Sequence[Problem]


KEYED = ("offset", "open", "cancelled")


def join(table: pa.Table, profile: Profile, *, end_offset: int, release: tuple[int, int] | None) -> Joined:
    """Join the rows of the pieces of one log, or of some of its groups, in log order.

    Args:
        table: rows of `SCHEMA`, in any order; it must hold all rows of kind ``producer``, whatever the groups.
        end_offset: where the log continues.
        release: the release that wrote the log; decides where layouts share a version number.
    """
    order = pc.sort_indices(table, [("piece", "ascending"), ("number", "ascending")])
    rows = _Rows(table.take(order))
    state = ColumnarState(profile)
    _make_room(state, rows)
    for piece in np.unique(rows.pieces).tolist():
        _join_piece(state, rows, piece)
    found = fi.find(state)
    winners = state.arrays.rows.of(found.committed)
    names = rows.group_names
    groups, problems = settle_groups(
        profile,
        dict(_timelines(state, rows, release)),
        committed={names[number] for number in np.unique(winners.column(a.Row.group)).tolist()},
        pending={
            names[number] for number in np.unique(state.arrays.rows.column(a.Row.group)[found.pending[:, 0]]).tolist()
        },
        end_offset=end_offset,
    )
    return Joined(
        table=rows.table,
        committed=winners.column(a.Row.index),
        pending=found.pending[:, 3],
        applied_offset=winners.column(a.Row.applied_offset),
        is_unstable=np.isin(found.committed, found.pending[:, 0]),
        groups=groups,
        problems=problems,
    )


class _Rows:
    """The rows of all pieces, with numbers for what they name.

    Attributes:
        group, key, producer: for each row the number of what it names; NOTHING where it names none.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.pieces = table["piece"].to_numpy()
        self._columns: dict[tuple[str, int], a.Int64s] = {}
        self._kinds, kind_names = _numbered(table["kind"])
        self._kind_numbers = {name: number for number, name in enumerate(kind_names)}
        is_keyed = self.are(*KEYED)
        self.group, self.group_names = _numbered(table["group"])
        topic, names = _numbered(table["topic"])
        pair, _ = _unique(self.group * (len(names) + 1) + topic, is_keyed)
        partition = self.column("partition")
        self.key, first = _unique((pair << 32) + (partition & 0xFFFFFFFF), is_keyed)
        self.group_of_key = self.group[first]
        producers = self.column("producer_id")
        self.producer, first = _unique(producers, self.are("open", "cancelled", "producer"))
        self.producer_ids = producers[first]

    def column(self, name: str, null: int = a.NOTHING) -> a.Int64s:
        """Return the numbers of a column."""
        if (name, null) not in self._columns:
            self._columns[name, null] = self.table[name].cast(pa.int64()).fill_null(null).to_numpy()
        return self._columns[name, null]

    def are(self, *kinds: str) -> npt.NDArray[np.bool_]:
        """Return for each row whether it is of one of these kinds."""
        return np.isin(self._kinds, [self._kind_numbers[kind] for kind in kinds if kind in self._kind_numbers])

    def of(self, kind: str, piece: int) -> a.Int64s:
        """Return the rows of a kind and a piece."""
        return np.flatnonzero(self.are(kind) & (self.pieces == piece))


def _numbered(column: pa.ChunkedArray) -> tuple[a.Int64s, list[str]]:
    encoded = column.combine_chunks().dictionary_encode()
    numbers: a.Int64s = encoded.indices.cast(pa.int64()).fill_null(a.NOTHING).to_numpy(zero_copy_only=False)
    return numbers, encoded.dictionary.to_pylist()


def _unique(values: a.Int64s, mask: npt.NDArray[np.bool_]) -> tuple[a.Int64s, a.Int64s]:
    """Return each row's number among the distinct values (NOTHING outside the mask), and the first row of each."""
    places = np.flatnonzero(mask)
    _, first, inverse = np.unique(values[places], return_index=True, return_inverse=True)
    numbers = np.full(len(values), a.NOTHING, np.int64)
    numbers[places] = inverse
    return numbers, places[first]


def _make_room(state: ColumnarState, rows: _Rows) -> None:
    """Give a state all keys, groups and producers, without anything that became of them."""
    s = state.arrays
    keys, groups, producers = len(rows.group_of_key), len(rows.group_names), len(rows.producer_ids)
    entries = int(rows.are("open", "cancelled").sum())
    s.rows = a.new_rows(max(keys, 1))
    s.rows.column(a.Row.target)[:keys] = np.arange(keys)
    s.rows.column(a.Row.group)[:keys] = rows.group_of_key
    for offset in (a.Row.record_offset, a.Row.applied_offset, a.Row.tombstone_offset):
        s.rows.column(offset)[:] = a.NEVER
    s.groups = Table(a.Group, max(groups, 1))
    for offset in (a.Group.metadata_offset, a.Group.value_offset):
        s.groups.column(offset)[:] = a.NEVER
    _lay_out(s, keys=keys, producers=producers, opened=entries, cancelled=2 * entries + 1)
    s.scan_state.row_count, s.scan_state.group_count, s.scan_state.producer_count = keys, groups, producers
    owners = s.region(Producer).up_to(producers)
    owners.column(Producer.producer_id)[:] = rows.producer_ids
    _fill_with_nothing(owners)


def _lay_out(arrays: State, *, keys: int, producers: int, opened: int, cancelled: int) -> None:
    """Make room for that many entries; nothing is looked up by hash here."""
    needed = {"producers": producers, "opened": opened, "cancelled": cancelled, "more": keys}
    arrays.overflow = np.zeros(0, np.int64)
    arrays.lay_out({name: needed.get(name, 0) + 1 for name in SIZES})


def _join_piece(state: ColumnarState, rows: _Rows, piece: int) -> None:
    """Merge as `ColumnarState.merge` does, with the piece's arrays made from its rows."""
    right, numbers = _piece_arrays(rows, piece)
    s = state.arrays
    for group, events in _events(rows, piece).items():
        state.carry(group)
        state.events[group] += events
    merge.join_rows(s.all, right.all, numbers, 0)
    order = np.zeros(max(int(right.scan_state.opened), 1), np.int64)
    merge.join_producers(s.all, right.all, numbers, 0, order)


def _piece_arrays(rows: _Rows, piece: int) -> tuple[State, a.Int64s]:
    """Return the arrays of a piece, and the joined state's numbers of its rows, groups and producers, int64[3, n]."""
    offsets, groups = rows.of("offset", piece), rows.of("group", piece)
    opened, cancelled = rows.of("open", piece), rows.of("cancelled", piece)
    heads = rows.of("producer", piece)
    keyed = np.concatenate([offsets, opened, cancelled])
    owners = np.unique(rows.producer[np.concatenate([heads, opened, cancelled])])
    numbers = np.full((3, max(len(keyed), len(groups), len(owners), 1)), a.NOTHING, np.int64)
    numbers[0, : len(keyed)] = rows.key[keyed]
    numbers[1, : len(groups)] = rows.group[groups]
    numbers[2, : len(owners)] = owners
    right = State(a.new_scan_state(np.zeros(0, np.int64), seed=0))
    _lay_out(right, keys=len(offsets), producers=len(owners), opened=len(opened), cancelled=len(cancelled))
    counts = right.scan_state
    counts.row_count, counts.group_count, counts.producer_count = len(offsets), len(groups), len(owners)
    counts.opened, counts.cancelled = len(opened), len(cancelled)
    right.rows = _offset_rows_of(rows, offsets)
    right.groups = _groups_of(rows, groups)
    _fill_producers(right.region(Producer), rows, heads, owners)
    _fill_open(right, rows, opened, owners, first_row=len(offsets))
    region = right.region(Cancelled).up_to(len(cancelled))
    region.column(Cancelled.producer)[:] = np.searchsorted(owners, rows.producer[cancelled])
    region.column(Cancelled.row)[:] = len(offsets) + len(opened) + np.arange(len(cancelled))
    return right, numbers


def _offset_rows_of(rows: _Rows, offsets: a.Int64s) -> Table[a.Row]:
    table = a.new_rows(max(len(offsets), 1))
    part = table.up_to(len(offsets))
    part.column(a.Row.target)[:] = np.arange(len(offsets))
    part.column(a.Row.record_offset)[:] = rows.column("record_offset", a.NEVER)[offsets]
    part.column(a.Row.applied_offset)[:] = rows.column("applied_offset", a.NEVER)[offsets]
    part.column(a.Row.tombstone_offset)[:] = rows.column("tombstone_offset", a.NEVER)[offsets]
    part.column(a.Row.index)[:] = offsets
    return table


def _groups_of(rows: _Rows, groups: a.Int64s) -> Table[a.Group]:
    table = Table(a.Group, max(len(groups), 1))
    part = table.up_to(len(groups))
    part.column(a.Group.metadata_offset)[:] = rows.column("record_offset", a.NEVER)[groups]
    part.column(a.Group.metadata_index)[:] = groups
    part.column(a.Group.is_tombstone)[:] = rows.column("is_tombstone", 0)[groups]
    part.column(a.Group.value_offset)[:] = rows.column("applied_offset", a.NEVER)[groups]
    return table


def _fill_with_nothing(producers: Table[Producer]) -> None:
    for field in (Producer.head_offset, Producer.newest, Producer.oldest):
        producers.column(field)[:] = a.NOTHING


def _fill_producers(region: Table[Producer], rows: _Rows, heads: a.Int64s, owners: a.Int64s) -> None:
    _fill_with_nothing(region.up_to(len(owners)))
    at = np.searchsorted(owners, rows.producer[heads])
    region.column(Producer.head_offset)[at] = rows.column("record_offset")[heads]
    region.column(Producer.head_commits)[at] = rows.column("commits", 0)[heads]


def _fill_open(right: State, rows: _Rows, opened: a.Int64s, owners: a.Int64s, *, first_row: int) -> None:
    """Fill in open records as chains; each has one entry for a key at most, so their order does not matter."""
    producers, region = right.region(Producer), right.region(Opened)
    record_offsets, cancels = rows.column("record_offset"), rows.column("is_tombstone", 0)
    for number, row in enumerate(opened.tolist()):
        owner = producers[np.searchsorted(owners, rows.producer[row])]
        region[number].numbers[:] = first_row + number, record_offsets[row], 0, row, cancels[row], owner.newest
        owner.newest = number


def _events(rows: _Rows, piece: int) -> dict[int, list[GroupEvent | Pointer]]:
    """Return group number → its records of the slow path, in order; they are read at the end."""
    events: dict[int, list[GroupEvent | Pointer]] = {}
    found = rows.of("group_record", piece)
    record_offsets = rows.column("record_offset")
    has_key = rows.table["key"].is_valid().to_numpy() if len(found) else ()
    for row in found.tolist():
        record_offset = int(record_offsets[row])
        pointer = Pointer(record_offset, 0, row, False)
        of_group = events.setdefault(int(rows.group[row]), [])
        of_group.append(pointer if has_key[row] else GroupEvent(record_offset, None))
    return events


def _timelines(state: ColumnarState, rows: _Rows, release: tuple[int, int] | None) -> Iterator[tuple[str, Timeline]]:
    keys, values = rows.table["key"], rows.table["value"]

    def read(group: str, event: GroupEvent | Pointer) -> GroupEvent:
        if isinstance(event, GroupEvent):
            return event
        key, value = keys[event.index].as_py(), values[event.index].as_py()
        if key is None and value is None and not event.is_tombstone:
            return GroupEvent(event.record_offset, _UNSEEN_VALUE)
        key = canonical_key(2, (group,)) if key is None else key
        return GroupEvent(event.record_offset, decode_coordinator_record(key, value, release))

    for number, name in enumerate(rows.group_names):
        events = [read(name, event) for event in (*state.events.get(number, ()), *state.latest_events(number))]
        if events:
            yield name, Timeline(events)


_UNSEEN_VALUE = CoordinatorRecord(
    record_type=2, key=RECORD_TYPES[2].key.zeros(0), value_version=0, value=RECORD_TYPES[2].values[0].zeros(0)
)
"""A type 2 value for groups of which only the existence matters."""


# ------------------------------------------------------------------------------- the construct path's state


def table_of_partial(state: PartialState) -> pa.Table:
    """Return the rows of a piece that was replayed record by record; log and piece are not filled in."""
    rows: list[Row] = []
    for key, of_key in state.keys.items():
        value = of_key.committed
        row = _key_row("offset", key) if value is None else _value_row("offset", value)
        row["tombstone_offset"] = None if of_key.tombstone_offset == NO_OFFSET else of_key.tombstone_offset
        rows.append(row)
    for producer_id, producer in state.producers.items():
        if producer.head is not None:
            head = producer.head
            rows.append(
                {"kind": "producer", "producer_id": producer_id, "record_offset": head.record_offset,
                 "commits": head.commit}
            )  # fmt: skip
        rows += [_key_row("cancelled", key) | {"producer_id": producer_id} for key in producer.cancelled]
        rows += [
            _value_row("open", value) | {"producer_id": producer_id, "is_tombstone": False}
            for value in producer.open.values()
        ]
    for group, timeline in state.timelines.items():
        for number, event in enumerate(timeline.events):
            row = {"kind": "group_record", "number": number, "group": group, "record_offset": event.record_offset}
            if event.record is not None:
                row["key"], row["value"] = encode_coordinator_record(event.record)
            rows.append(row)
    rows += [
        {"kind": "topic_name", "topic_id": str(Uuid(topic_id)), "topic": name}
        for topic_id, name in state.topic_names.items()
    ]
    rows += [{"kind": "problem", "facts": json.dumps(problem_facts(problem))} for problem in state.problems]
    return table_of(rows)


def _key_row(kind: str, key: GroupTopicPartition) -> Row:
    return {"kind": kind} | dict(zip(("group", "topic", "partition"), key, strict=True))


def _value_row(kind: str, value: OffsetAndMetadata) -> Row:
    return offset_row(value, None) | {
        "kind": kind, "applied_offset": value.applied_offset, "producer_id": value.producer_id,
        "producer_epoch": value.producer_epoch, "is_tombstone": False,
    }  # fmt: skip
