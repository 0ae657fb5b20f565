"""Turn rows to Arrow tables: columns of numbers that the kernel wrote, and rows that were read on the slow path."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.entries import enter
from offsets_log.columnar.events.layouts import Release, programs_of
from offsets_log.columnar.events.rows import ROWS_IN_TABLE, SCHEMA, Shown, encodable, event_row, table_of_events
from offsets_log.columnar.materialize.arrow import flags, numbers, repeated, strings
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.programs import scan_state_of
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.compression import CODECS
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.rows.tables import Row

Numbers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Room:
    """How much a chunk holds.

    Attributes:
        rows: of a table, more or less.
        least_entries: distinct keys, names and topic ids that it has room for at first.
        most_entries, most_entry_bytes: that are remembered; where more are needed the table ends and all are
            forgotten.
    """

    rows: int = ROWS_IN_TABLE
    least_entries: int = 1 << 12
    most_entries: int = 1 << 20
    most_entry_bytes: int = 1 << 28


ROOM = Room()
SLOW_PATH_BYTES = 1 << 24
"""Maximum number of bytes of batches whose rows wait in Python for their table."""
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
        return self.column(kind, np.concatenate([np.zeros(1, np.int32), ends]), data)

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


# ---------------------------------------------------------------------------------------------- entries


class _Names:
    """Texts by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._column = strings([])

    def column(self, numbers: Numbers, presence: Presence) -> pa.Array:
        """Return numbers as a column; if there are many texts, only those in the column are included."""
        if 4 * len(self.texts) > len(numbers):
            used, numbers = np.unique(numbers, return_inverse=True)
            texts = [self.texts[number] if number >= 0 else "" for number in used.tolist()]
            return presence.dictionary(numbers.astype(np.int32), texts)
        if len(self._column) < len(self.texts):
            self._column = strings(self.texts)
        return presence.dictionary(numbers, self._column)


class Entries:
    """Keys, names and topic ids by number; the names are decoded once."""

    def __init__(self, least: int) -> None:
        self.slots = np.zeros(4 * least, np.int64)
        self.entries = np.zeros((least, k.ENTRY_COLUMNS), np.int64)
        self.arena = a.new_arena(a.CACHE_LINE * least)
        self.groups, self.topics, self.topic_ids = _Names(), _Names(), _Names()
        self._understood = 0

    def grow(self, scan_state: a.Int64s, counts: a.Int64s) -> None:
        """Double the room."""
        self.slots = np.zeros(2 * len(self.slots), np.int64)
        self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
        arena = a.new_arena(2 * len(self.arena))
        arena[: len(self.arena)] = self.arena
        self.arena = arena
        enter(scan_state, counts, self.slots, self.entries, self.arena)

    def understand(self, count: int) -> None:
        """Decode the names and topic ids that are new."""
        new = self.entries[self._understood : count]
        names = {k.IS_GROUP: self.groups, k.IS_TOPIC: self.topics, k.IS_TOPIC_ID: self.topic_ids}
        for at, size, kind in new[new[:, k.ENTRY_KIND] != k.IS_KEY][:, : k.ENTRY_KIND + 1].tolist():
            raw = self.arena[at : at + size].tobytes()
            names[kind].texts.append(str(Uuid(raw)) if kind == k.IS_TOPIC_ID else raw.decode())
        self._understood = count


# ------------------------------------------------------------------------------------------------ a chunk


class Chunk(ABC):
    """Collects rows: those of the kernel in columns, those of the slow path with their places among them.

    Args:
        release: the release that wrote the log, if it is known.
    """

    def __init__(self, release: Release | None = None, room: Room = ROOM) -> None:
        self.release, self.room = release, room
        self.scan_state = scan_state_of(programs_of(release), seed=secrets.randbits(61))
        self.counts = np.zeros(k.COUNTS, np.int64)
        self.longs = np.zeros((k.LONGS, room.rows), np.int64)
        self.ints = np.zeros((k.INTS, room.rows), np.int32)
        self.texts = np.zeros((k.TEXTS, 32 * room.rows), np.uint8)
        self.entries = Entries(room.least_entries)
        self._segments: list[tuple[int, Segment]] = []
        self._slow_path: list[Any] = []
        self._places: list[int] = []
        self._slow_path_bytes = 0

    @abstractmethod
    def row(self, event: LogEvent, shown: Shown) -> Any:
        """Return what is kept of an event read on the slow path, or None if it is not asked for."""

    @abstractmethod
    def made(self, offsets_partition: int | None, shown: Shown) -> Sized:
        """Return what becomes of the rows asked for, in log order, using the chunk's memory."""

    @property
    def rows(self) -> int:
        """The number of the kernel's rows."""
        return int(self.counts[k.ROWS])

    def __len__(self) -> int:
        return self.rows + len(self._slow_path)

    @property
    def is_full(self) -> bool:
        """Whether it is time for a table."""
        return len(self) >= self.room.rows or self._slow_path_bytes >= SLOW_PATH_BYTES

    def begin_segment(self, segment: Segment) -> None:
        """Note that the kernel's rows from here on are of this segment."""
        self._segments.append((self.rows, segment))

    def add_on_slow_path(self, rows: Sequence[Any], size_bytes: int) -> None:
        """Add the next rows, of a batch of that size."""
        self._slow_path += rows
        self._places += [self.rows] * len(rows)
        self._slow_path_bytes += size_bytes

    def widen(self, count: int) -> None:
        """Make room for a batch of that many rows, or of more bytes. There must be no rows."""
        if count > self.longs.shape[1]:
            self.longs = np.zeros((k.LONGS, count), np.int64)
            self.ints = np.zeros((k.INTS, count), np.int32)
        else:
            self.texts = np.zeros((k.TEXTS, 2 * self.texts.shape[1]), np.uint8)

    @property
    def has_many_entries(self) -> bool:
        """Whether it is time to forget them."""
        entries, size_bytes = self.counts[[k.ENTRIES, k.ARENA_USED]].tolist()
        return bool(entries > self.room.most_entries or size_bytes > self.room.most_entry_bytes // 2)

    def grow(self) -> None:
        """Make room for more entries."""
        self.entries.grow(self.scan_state, self.counts)

    def begin(self) -> None:
        """Begin another part."""
        self.clear()
        self._segments = []

    def clear(self) -> None:
        """Begin again after a table."""
        self.counts[[k.ROWS, *range(k.TEXTS_USED, k.TEXTS_USED + k.TEXTS)]] = 0
        if self.has_many_entries:
            self.entries = Entries(self.room.least_entries)
            self.counts[: k.HAS_BATCHES] = 0
        self._segments = [(0, segment) for _, segment in self._segments[-1:]]
        self._slow_path, self._places, self._slow_path_bytes = [], [], 0

    def _shown(self, shown: Shown) -> Mask:
        """Return for each row of the kernel whether it is asked for. The last name stands for no name."""
        groups = np.array([*map(shown.shows_group, self.entries.groups.texts), False], np.bool_)
        topics = np.array([*map(shown.shows_topic, self.entries.topics.texts), shown.topic is None], np.bool_)
        mask: Mask = groups[self.ints[k.GROUP, : self.rows]] & topics[self.ints[k.TOPIC, : self.rows]]
        return mask


class TableChunk(Chunk):
    """Rows of one Arrow table with `rows.EVENT_COLUMNS`."""

    def row(self, event: LogEvent, shown: Shown) -> Row | None:
        """Return a record as `rows.event_row` does."""
        if not isinstance(event, Event):
            return None
        row = event_row(event)
        return row if shown.shows(row) else None

    def made(self, offsets_partition: int | None, shown: Shown) -> pa.Table:
        """Return the table."""
        self.entries.understand(int(self.counts[k.ENTRIES]))
        columns = self._columns(offsets_partition)
        table = pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        places = self._places
        if not shown.is_all:
            mask = self._shown(shown)
            table = table.filter(flags(mask))
            places = np.concatenate([[0], np.cumsum(mask)])[places].tolist() if places else []
        if not self._slow_path:
            return table
        order = np.insert(np.arange(len(table)), places, len(table) + np.arange(len(places)))
        both = pa.concat_tables([table, table_of_events(self._slow_path)]).unify_dictionaries()
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
            "group": entries.groups.column(ints[k.GROUP], data),
            "topic": entries.topics.column(ints[k.TOPIC], commits),
            "partition": commits.column(pa.int32(), ints[k.PARTITION]),
            "is_tombstone": data.flags((kinds == k.TOMBSTONE) | (kinds == k.GROUP_TOMBSTONE)),
        }

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
            "topic_id": self.entries.topic_ids.column(ints[k.TOPIC_ID], Presence(ints[k.TOPIC_ID] >= 0)),
        }
