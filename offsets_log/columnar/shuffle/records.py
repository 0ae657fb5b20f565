"""Read all records of a log as Kafka's clients see them, with raw keys and values, to Arrow tables.

A kernel copies keys and values of batches in which everything is plain; other batches are read by `pipeline`, in their
place. Control records are rows too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.events.rows import event_row
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.materialize.arrow import FIRST_MS, LAST_MS, numbers, schema_of
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Advance, Cursor, Note, Reading, ScanOrder, ScanPlace
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be16
from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.rows.tables import Column, Row

HEADERS = Column("headers", "array<struct<key:string,value:binary>>", "the record's headers; null if there are none")
KAFKA_COLUMNS = (
    Column("key", "binary", "raw key"),
    Column("value", "binary", "raw value; null for a tombstone"),
    Column("topic", "string", OFFSETS_TOPIC),
    Column("partition", "int", "partition of __consumer_offsets"),
    Column("offset", "bigint", "the record's offset"),
    Column("timestamp", "timestamp", "the record's timestamp; null outside of the years 1 to 9999"),
    Column("timestampType", "int", "0 create, 1 log append, -1 none (magic 0)"),
)
"""Columns that Spark's Kafka source has too."""
BATCH_COLUMNS = (
    Column("producerId", "bigint", "id of the producer; -1 if none"),
    Column("producerEpoch", "int", "epoch of the producer; -1 if none"),
    Column("isTransactional", "boolean", "whether the batch belongs to a transaction (attribute bit 4)"),
    Column("isControl", "boolean", "whether the batch holds control records (attribute bit 5)"),
    Column("controlType", "string", "type of a control record: COMMIT, ABORT or another; null for data"),
    Column("file", "string", "segment file"),
    Column(
        "position",
        "bigint",
        "where the record begins in the file; if it is compressed, where the compressed records begin",
    ),
)
RECORD_COLUMNS = (*KAFKA_COLUMNS, HEADERS, *BATCH_COLUMNS)
SCHEMA = schema_of(RECORD_COLUMNS)


@dataclass(frozen=True, slots=True)
class Room:
    """How much a table holds: rows, and bytes of keys and of values; more where one batch needs more."""

    rows: int = 1 << 16
    size_bytes: int = 1 << 23


ROOM = Room()
# Rows of ``longs``.
OFFSET, TIMESTAMP, ATTRIBUTES, PRODUCER_ID, PRODUCER_EPOCH, POSITION, KEY_SIZE, VALUE_SIZE, CONTROL = range(9)
LONGS = 9
# Of ``counts``.
ROWS, KEYS_USED, VALUES_USED = range(3)

CONTROL_TYPES = ("ABORT", "COMMIT")


class Columns(NamedTuple):
    """The columns of a table, and how far they are filled: numbers, bytes of keys and of values behind each other."""

    counts: Longs
    longs: LongRows
    keys: Bytes
    values: Bytes


@inlined
def _control_type(source: Any, key: Any, key_size: Any) -> Any:
    """Return 0 for ABORT, 1 for COMMIT, −1 for anything that is not plain."""
    kind = be16(source, key + 2) if key_size >= 4 and be16(source, key) >= 0 else np.int64(-1)
    return kind if kind <= 1 else np.int64(-1)


@inlined
def _copy(source: Any, start: Any, size: Any, target: Any, used: Any) -> Any:
    """Append bytes after the used ones; return how many are used then."""
    for i in range(size):
        target[U(used + i)] = source[U(start + i)]
    return used + max(size, np.int64(0))


@part
def _add_records(
    scan_state: a.ScanState,
    source: Any,
    start: Any,
    end: Any,
    data: Any,
    at: Any,
    staged: Table[a.Staged],
    columns: Columns,
) -> Any:
    """Add the records of the batch at ``at``, which are in ``source[start:end]``, as rows."""
    counts, longs = columns.counts, columns.longs
    count = scan_state.needed = bt.count_of(source, start, end, data, at)
    if count > len(staged):
        return oc.NEEDS_RECORDS
    first = counts[ROWS]
    room = min(len(columns.keys) - counts[KEYS_USED], len(columns.values) - counts[VALUES_USED])
    if first + count > longs.shape[1] or end - start > room:
        return oc.FULL
    if bt.records_of(source, start, end, count, data, at, staged, np.int64(0)) < 0:
        return oc.NOT_PLAIN
    attributes = bt.attributes_of(data, at)
    time, is_counted = bt.base_time(data, at)
    for item in range(count):
        i, n = U(item), U(first + item)
        key, key_size = staged[i].key_at, staged[i].key_size
        longs[CONTROL, n] = -1
        if attributes & bt.CONTROL_MASK:
            longs[CONTROL, n] = _control_type(source, key, key_size)
            if longs[CONTROL, n] < 0:
                return oc.NOT_PLAIN
        longs[OFFSET, n] = staged[i].offset
        longs[TIMESTAMP, n] = time + staged[i].timestamp_delta if is_counted else time
        longs[ATTRIBUTES, n] = attributes
        longs[PRODUCER_ID, n] = bt.producer_of(data, at)
        longs[PRODUCER_EPOCH, n] = bt.producer_epoch(data, at)
        longs[POSITION, n] = bt.records_begin(data, at) if attributes & bt.CODEC_MASK else staged[i].record_at
        longs[KEY_SIZE, n] = key_size
        longs[VALUE_SIZE, n] = staged[i].value_size
        counts[KEYS_USED] = _copy(source, key, key_size, columns.keys, counts[KEYS_USED])
        counts[VALUES_USED] = _copy(
            source, staged[i].value_at, staged[i].value_size, columns.values, counts[VALUES_USED]
        )
    counts[ROWS] = first + count
    return oc.FINISHED


@inlined
def _take(scan_state: a.ScanState, buffers: a.Buffers, data: Any, columns: Columns, at: Any, size: Any) -> Any:
    """Add the batch at a position as rows, or return why not."""
    table = buffers.table
    refused = sc.refusal(scan_state, data, at, size)
    if refused != oc.FINISHED:
        return refused
    attributes = bt.attributes_of(data, at)
    is_compressed = attributes & bt.CODEC_MASK
    if is_compressed and attributes & bt.CONTROL_MASK:
        return oc.NOT_PLAIN
    if not is_compressed:
        begin = bt.records_begin(data, at)
        return _add_records(scan_state, data, begin, at + size, data, at, buffers.staged, columns)
    place = dp.find_in_window(scan_state, table, at)
    if place < 0:
        return oc.NEEDS_WINDOW
    if table[place, dp.END] < 0:
        return oc.NOT_PLAIN
    begin, end = table[place, dp.BEGIN], table[place, dp.END]
    return _add_records(scan_state, buffers.window, begin, end, data, at, buffers.staged, columns)


@kernel
def copy_records(scan_state: a.ScanState, buffers: a.Buffers, data: Bytes, columns: Columns) -> Any:
    """Copy the records of plain batches from ``scan_state.at`` on, each whole or not at all; return why it stopped."""
    counts = columns.counts
    while scan_state.at < scan_state.stop:
        at = scan_state.at
        size = bt.batch_at(data, at, np.int64(len(data)))
        keys_used, values_used = counts[KEYS_USED], counts[VALUES_USED]
        outcome = np.int64(_take(scan_state, buffers, data, columns, at, size))
        if outcome != oc.FINISHED:
            counts[KEYS_USED], counts[VALUES_USED] = keys_used, values_used
            return outcome
        scan_state.last_offset = bt.last_offset(data, at)
        scan_state.at = at + size
    return np.int64(oc.FINISHED)


def iter_tables_of_log(order: ScanOrder, note: Note, advance: Advance, *, room: Room = ROOM) -> Iterator[pa.Table]:
    """Yield all records of a log as `SCHEMA`, each table when it is asked for; what is missing is noted too."""
    cursor = order.begin(ScanPlace(0, 0))
    assert cursor is not None
    order.note_begin(note)
    with Scanner() as scanner:
        yield from _RecordReading(order, cursor, scanner, note, room).tables(order.end, advance)
    for _ in order.note_end(cursor, note):
        pass


class _RecordReading(Reading):
    """A reading that turns batches to tables, with room for the rows of one table."""

    def __init__(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note, room: Room) -> None:
        super().__init__(order, cursor, scanner, note)
        self._scan_state = a.ScanState()
        self.counts = np.zeros(3, np.int64)
        self.scanned = cursor.place.segment_index
        self._slow_path_rows: list[Row] = []
        self._make_room(room.rows, room.size_bytes)

    @property
    def scan_state(self) -> a.ScanState:
        return self._scan_state

    def _make_room(self, rows: int, size_bytes: int) -> None:
        self.longs = np.zeros((LONGS, rows), np.int64)
        self.keys, self.values = np.zeros(size_bytes, np.uint8), np.zeros(size_bytes, np.uint8)

    def tables(self, end: ScanPlace, advance: Advance) -> Iterator[pa.Table]:
        """Yield tables up to the end."""
        for outcome in self.steps(end, advance):
            if outcome == oc.FULL and not self.counts[ROWS]:
                self._make_room(max(self.longs.shape[1], int(self.scan_state.needed)), 2 * len(self.keys))
            elif outcome in (oc.FULL, oc.FINISHED, oc.NOT_PLAIN, oc.STOPPED):
                yield from self._flushed(self.scanned)

    def scan(self, index: int, data: a.Bytes) -> int:
        self.scanned = index
        columns = Columns(self.counts, self.longs, self.keys, self.values)
        return copy_records(self.scan_state, self.scanner.buffers, data, columns)  # type: ignore[no-any-return]

    def take(self, index: int, batch: RecordBatch) -> None:
        for event in self.events(index, batch):
            if isinstance(event, Damage):
                self.note(event)
            elif isinstance(event, Event):
                self._slow_path_rows.append(record_row(event))

    def _flushed(self, index: int) -> Iterator[pa.Table]:
        if self.counts[ROWS]:
            yield self._table(self.order.log.segments[index].file)
        self.counts[:] = 0
        if self._slow_path_rows:
            yield pa.Table.from_pylist(self._slow_path_rows, SCHEMA)
        self._slow_path_rows = []

    def _table(self, file: str) -> pa.Table:
        n = int(self.counts[ROWS])
        longs = self.longs[:, :n].copy()
        attributes = longs[ATTRIBUTES]
        control = pa.DictionaryArray.from_arrays(
            pa.array(longs[CONTROL].astype(np.int32), mask=longs[CONTROL] < 0), pa.array(CONTROL_TYPES)
        )
        columns = {
            "key": _bytes_column(self.keys[: self.counts[KEYS_USED]].copy(), longs[KEY_SIZE]),
            "value": _bytes_column(self.values[: self.counts[VALUES_USED]].copy(), longs[VALUE_SIZE]),
            "topic": pa.repeat(pa.scalar(OFFSETS_TOPIC), n),
            "partition": pa.repeat(pa.scalar(self.order.log.offsets_partition, pa.int32()), n),
            "offset": pa.array(longs[OFFSET]),
            "timestamp": numbers(longs[TIMESTAMP] * 1000, _are_told(longs[TIMESTAMP])).cast(
                SCHEMA.field("timestamp").type
            ),
            "timestampType": pa.array(_TYPE_NUMBERS[bt.timestamp_types(attributes)]),
            "headers": pa.nulls(n, SCHEMA.field("headers").type),
            "producerId": pa.array(longs[PRODUCER_ID]),
            "producerEpoch": pa.array(longs[PRODUCER_EPOCH].astype(np.int32)),
            "isTransactional": pa.array(attributes & bt.TRANSACTIONAL_MASK != 0),
            "isControl": pa.array(attributes & bt.CONTROL_MASK != 0),
            "controlType": control.cast(pa.string()),
            "file": pa.repeat(pa.scalar(file), n),
            "position": pa.array(longs[POSITION]),
        }
        return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _are_told(times_ms: a.Int64s) -> npt.NDArray[np.bool_]:
    """Return which times a timestamp has."""
    return (times_ms >= FIRST_MS) & (times_ms <= LAST_MS)


def _bytes_column(data: a.Bytes, sizes: a.Int64s) -> pa.Array:
    """Return consecutive bytes as a column; a negative size is null."""
    bounds = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.maximum(sizes, 0), out=bounds[1:])
    validity = np.packbits(sizes >= 0, bitorder="little")
    return pa.Array.from_buffers(pa.binary(), len(sizes), [pa.py_buffer(part) for part in (validity, bounds, data)])


TIMESTAMP_TYPES = {"none": -1, "create": 0, "log_append": 1}
_TYPE_NUMBERS = np.array([TIMESTAMP_TYPES[name] for name in bt.TIMESTAMP_TYPES], np.int32)


def record_row(event: Event) -> Row:
    """Return one record as `RECORD_COLUMNS`."""
    record = event.record
    row = event_row(event)
    return {
        "key": record.key,
        "value": record.value,
        "topic": OFFSETS_TOPIC,
        "partition": event.offsets_partition,
        "offset": row["record_offset"],
        "timestamp": record.timestamp_ms * 1000 if FIRST_MS <= record.timestamp_ms <= LAST_MS else None,
        "timestampType": TIMESTAMP_TYPES[row["timestamp_type"]],
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        "producerId": row["producer_id"],
        "producerEpoch": row["producer_epoch"],
        "isTransactional": row["is_transactional"],
        "isControl": row["is_control"],
        "controlType": row.get("control_type"),
        "file": row["file"],
        "position": row["position"],
    }
