"""Turn rows to Arrow tables: columns of numbers that the kernel wrote, and rows that were read on the slow path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.chunk import ROOM, Chunk, Mask, Room
from offsets_log.columnar.events.layouts import Release
from offsets_log.columnar.events.rows import EVENT_COLUMNS, ROWS_IN_TABLE, encodable, event_row
from offsets_log.columnar.materialize.arrow import flags, numbers, repeated, schema_of, strings
from offsets_log.columnar.wire import batches as bt
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.compression import CODECS
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.rows.shown import Shown
from offsets_log.rows.tables import Row

Numbers = npt.NDArray[Any]
TEXTS = ("file", "timestamp_type", "compression", "control_type", "name", "group", "topic", "topic_id")
"""Columns whose texts repeat often: their Arrow type is a dictionary."""
ALWAYS = (
    "file", "position", "batch_base_offset", "record_offset", "timestamp_ms", "timestamp_type", "magic", "compression",
    "producer_id", "producer_epoch", "is_transactional", "is_control",
)  # fmt: skip
"""Columns that are never null."""


def _schema() -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field(field.name, text if field.name in TEXTS else field.type, field.name not in ALWAYS)
            for field in schema_of(EVENT_COLUMNS)
        ]
    )


SCHEMA = _schema()


CODEC_NAMES = [codec.name for codec in CODECS]
TYPE_NAMES = [RECORD_TYPES[number].name if number in RECORD_TYPES else "" for number in range(a.RECORD_TYPES)]


# ------------------------------------------------------------------------------------------ Arrow columns


class Presence:
    """Which rows of a column are not null, in Arrow's form; columns may share one."""

    def __init__(self, is_there: Mask) -> None:
        self.count = len(is_there)
        self.nulls = self.count - int(np.count_nonzero(is_there))
        self.bits = pa.py_buffer(np.packbits(is_there, bitorder="little")) if self.nulls else None

    def column(self, kind: pa.DataType, *buffers: Any) -> pa.Array:
        """Return buffers as a column, without a copy."""
        if self.nulls == self.count:
            return pa.nulls(self.count, kind)
        made = [pa.py_buffer(buffer) for buffer in buffers]
        return pa.Array.from_buffers(kind, self.count, [self.bits, *made], null_count=self.nulls)

    def texts(self, kind: pa.DataType, ends: Numbers, data: a.Bytes) -> pa.Array:
        """Return consecutive texts or bytes as a column, given where each ends."""
        bounds = np.concatenate([np.zeros(1, np.int32), ends])
        return self.column(kind, bounds, data[: bounds[-1]])

    def flags(self, is_true: Mask) -> pa.Array:
        """Return truth values as a column."""
        return self.column(pa.bool_(), np.packbits(is_true, bitorder="little"))

    def dictionary(self, numbers: Numbers, texts: pa.StringArray | Sequence[str]) -> pa.Array:
        """Return numbers of texts, int32, as a column; each number of a row that is not null must have a text."""
        indices = self.column(pa.int32(), numbers)
        values = texts if isinstance(texts, pa.StringArray) else strings(texts)
        return pa.DictionaryArray.from_arrays(indices, values, safe=False)


def _type_names(types: Numbers, presence: Presence) -> pa.Array:
    """Return record types as a column of names; the first ones, of classic groups, are in every dictionary."""
    if types.max(initial=0) < a.KEY_TYPES:
        return presence.dictionary(types, TYPE_NAMES[: a.KEY_TYPES])
    used, numbers = np.unique(types, return_inverse=True)
    return presence.dictionary(numbers.astype(np.int32), [TYPE_NAMES[number] for number in used.tolist()])


# ------------------------------------------------------------------------------------------------ a chunk


class TableChunk(Chunk):
    """Rows of one Arrow table with `rows.EVENT_COLUMNS`.

    Args:
        names: which columns the table has, in this order.
    """

    def __init__(
        self, release: Release | None = None, room: Room = ROOM, names: Sequence[str] = tuple(SCHEMA.names)
    ) -> None:
        super().__init__(release, room)
        self._schema = pa.schema([SCHEMA.field(name) for name in names])
        self._names: dict[str, tuple[list[str], pa.StringArray]] = {}

    def row(self, event: LogEvent, shown: Shown) -> Row | None:
        """Return a record as `rows.event_row` does."""
        if not isinstance(event, Event):
            return None
        row = event_row(event)
        return row if shown.shows(row) else None

    def made(self, offsets_partition: int | None, shown: Shown) -> pa.Table:
        """Return the table, valid until the next."""
        self.entries.understand(int(self.counts[k.ENTRIES]))
        columns = self._columns(offsets_partition)
        table = pa.Table.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        places = self._places
        if not shown.is_all:
            mask = self._shown(shown)
            table = table.filter(flags(mask))
            places = np.concatenate([[0], np.cumsum(mask)])[places].tolist() if places else []
        if not self._slow_path:
            return table
        order = np.insert(np.arange(len(table)), places, len(table) + np.arange(len(places)))
        others = table_of_events(self._slow_path).select(self._schema.names)
        both = pa.concat_tables([table, others]).unify_dictionaries()
        return both.take(numbers(order))

    def _columns(self, offsets_partition: int | None) -> dict[str, pa.Array]:
        n = self.rows
        longs, attributes = self.longs[:, :n], self.ints[k.ATTRIBUTES, :n]
        always = Presence(np.ones(n, np.bool_))
        magics = bt.magics(attributes)
        types = bt.TIMESTAMP_TYPES if (magics == 0).any() else bt.TIMESTAMP_TYPES[:2]
        return {
            "file": self._file_column(),
            "offsets_partition": repeated(offsets_partition, n),
            "position": numbers(longs[k.POSITION]),
            "batch_base_offset": numbers(longs[k.BATCH_BASE_OFFSET]),
            "record_offset": numbers(longs[k.RECORD_OFFSET]),
            "timestamp_ms": numbers(longs[k.TIMESTAMP]),
            "timestamp_type": always.dictionary(bt.timestamp_types(attributes).astype(np.int32), types),
            "magic": numbers(magics),
            "compression": always.dictionary(attributes & bt.CODEC_MASK, CODEC_NAMES),
            "producer_id": numbers(longs[k.PRODUCER_ID]),
            "producer_epoch": numbers(self.ints[k.PRODUCER_EPOCH, :n]),
            "is_transactional": always.flags(attributes & bt.TRANSACTIONAL_MASK != 0),
            "is_control": always.flags(attributes & bt.CONTROL_MASK != 0),
            "error": pa.nulls(n, pa.string()),
            **self._key_columns(),
            **self._value_columns(),
            **self._raw_columns(),
        }

    @property
    def _kinds(self) -> Numbers:
        return self.ints[k.KIND, : self.rows].astype(np.uint8)

    def _raw_columns(self) -> dict[str, pa.Array]:
        kinds, ints = self._kinds, self.ints[:, : self.rows]
        has_key = (kinds != k.COMMITTED) & (kinds != k.TOMBSTONE)
        keys, values = Presence(has_key), Presence(has_key & (kinds != k.GROUP_TOMBSTONE))
        return {
            "key": keys.texts(pa.binary(), ints[k.ENDS_AT + k.RAW_KEY], self.texts[k.RAW_KEY]),
            "value": values.texts(pa.binary(), ints[k.ENDS_AT + k.RAW_VALUE], self.texts[k.RAW_VALUE]),
        }

    def _file_column(self) -> pa.Array:
        begins = [begin for begin, _ in self._segments]
        numbers = np.repeat(np.arange(len(begins), dtype=np.int32), np.diff([*begins, self.rows]))
        return Presence(np.ones(self.rows, np.bool_)).dictionary(
            numbers, [encodable(segment.file) for _, segment in self._segments]
        )

    def _key_columns(self) -> dict[str, pa.Array]:
        ints, entries = self.ints[:, : self.rows], self.entries
        kinds = self._kinds
        is_data = kinds < k.ABORT_MARKER
        data, commits = Presence(is_data), Presence(ints[k.TOPIC] >= 0)
        is_commit_marker = (kinds == k.COMMIT_MARKER).astype(np.int32)
        return {
            "control_type": Presence(~is_data).dictionary(is_commit_marker, ["ABORT", "COMMIT"]),
            "record_type": data.column(pa.int32(), ints[k.RECORD_TYPE]),
            "name": _type_names(ints[k.RECORD_TYPE], data),
            "group": self._name_column("group", entries.groups, ints[k.GROUP], data),
            "topic": self._name_column("topic", entries.topics, ints[k.TOPIC], commits),
            "partition": commits.column(pa.int32(), ints[k.PARTITION]),
            "is_tombstone": data.flags((kinds == k.TOMBSTONE) | (kinds == k.GROUP_TOMBSTONE)),
        }

    def _name_column(self, name: str, texts: list[str], numbers: Numbers, presence: Presence) -> pa.Array:
        """Return numbers of texts as a column; if there are many texts, only those in the column are included."""
        if 4 * len(texts) > len(numbers):
            used, numbers = np.unique(numbers, return_inverse=True)
            return presence.dictionary(numbers.astype(np.int32), [texts[n] if n >= 0 else "" for n in used.tolist()])
        known, column = self._names.get(name, ([], strings([])))
        if known is not texts or len(column) < len(texts):
            column = strings(texts)
            self._names[name] = texts, column
        return presence.dictionary(numbers, column)

    def _value_columns(self) -> dict[str, pa.Array]:
        longs, ints = self.longs[:, : self.rows], self.ints[:, : self.rows]
        committed = Presence(self._kinds <= k.COMMITTED_RAW)
        expire, leader_epoch = longs[k.EXPIRE_TIMESTAMP], ints[k.LEADER_EPOCH]
        return {
            "value_version": Presence(self._kinds <= k.GROUP_VALUE).column(pa.int32(), ints[k.VALUE_VERSION]),
            "committed_offset": committed.column(pa.int64(), longs[k.COMMITTED_OFFSET]),
            "leader_epoch": Presence(leader_epoch != -1).column(pa.int32(), leader_epoch),
            "metadata": committed.texts(pa.string(), ints[k.ENDS_AT + k.METADATA], self.texts[k.METADATA]),
            "commit_timestamp_ms": committed.column(pa.int64(), longs[k.COMMIT_TIMESTAMP]),
            "expire_timestamp_ms": Presence(expire != -1).column(pa.int64(), expire),
            "topic_id": self._name_column(
                "topic_id", self.entries.topic_ids, ints[k.TOPIC_ID], Presence(ints[k.TOPIC_ID] >= 0)
            ),
        }


def owned(table: pa.Table) -> pa.Table:
    """Return a table of `TableChunk` that stays valid: its columns are copied."""
    memory = pa.default_cpu_memory_manager()
    return pa.Table.from_batches([batch.copy_to(memory) for batch in table.to_batches()], table.schema)


def table_of_events(rows: Sequence[Row]) -> pa.Table:
    """Return rows of `event_row` as a table."""
    plain = schema_of(EVENT_COLUMNS)
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in plain]
    made = [
        column.dictionary_encode() if field.name in TEXTS else column
        for field, column in zip(plain, columns, strict=True)
    ]
    return pa.Table.from_arrays(made, schema=SCHEMA)


def iter_event_tables(rows: Iterable[Row]) -> Iterator[pa.Table]:
    """Yield rows of `event_row` as tables of `ROWS_IN_TABLE`."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == ROWS_IN_TABLE:
            yield table_of_events(held)
            held = []
    if held:
        yield table_of_events(held)
