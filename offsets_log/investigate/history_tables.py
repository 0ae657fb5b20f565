"""Turn entries of `bulk_history`, and rows of `history_row`, to Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events.tables import Presence
from offsets_log.columnar.history import columns as co
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history import lines as ln
from offsets_log.columnar.materialize.arrow import numbers, schema_of, strings, table_of_rows
from offsets_log.investigate.bulk_history import OrderedHistory, goes_back
from offsets_log.investigate.history_lines import says_more_letters
from offsets_log.investigate.history_rows import FOLLOWING, HISTORY_COLUMNS
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.messages.commit_metadata import decode_commit_metadata
from offsets_log.rows.tables import Row, to_json

ROWS_IN_TABLE = 122_880
"""Rows of one table: a row group of DuckDB."""
MOST_TEXT_BYTES = 1 << 28
"""Maximum number of metadata bytes in one run of entries."""
MEMBERS = ("member_id", "group_instance_id", "client_id", "host")
NUMBERS = {
    "record_offset": k.RECORD_OFFSET,
    "timestamp_ms": k.TIMESTAMP,
    "committed_offset": k.COMMITTED,
    "commit_timestamp_ms": k.COMMIT_TIMESTAMP,
    "effective_offset": k.EFFECTIVE,
    "effective_record_offset": k.EFFECTIVE_RECORD,
    "rewound_by": k.REWOUND_BY,
}
"""Columns of numbers → those of entries."""
TEXTS = ("group", "topic", "event", "transaction", "change", *MEMBERS)
"""Columns whose texts repeat often: their Arrow type is a dictionary."""
CHANGES = (None, "new", "advanced", "rewound", "same", "deleted", "new")

Mask = npt.NDArray[np.bool_]


def schema_with(more: Sequence[str] = ()) -> pa.Schema:
    """Return the schema of histories.

    Args:
        more: further columns, of the raw bytes of names that are not UTF-8.
    """
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [pa.field(field.name, text if field.name in TEXTS else field.type) for field in schema_of(HISTORY_COLUMNS)]
    return pa.schema([*fields, *(pa.field(name, pa.string()) for name in more)])


def table_of_history(rows: Iterable[Row], more: Sequence[str] = ()) -> pa.Table:
    """Return rows of `history_row` as a table; see `schema_with`."""
    texts = {column.name for column in HISTORY_COLUMNS if column.sql_type == "json"}
    flat = [
        {name: to_json(value) if name in texts and value is not None else value for name, value in row.items()}
        for row in rows
    ]
    return table_of_rows([*flat, dict.fromkeys(more)], HISTORY_COLUMNS)[: len(flat)].cast(schema_with(more))


class HistoryTables:
    """Tables of all entries in order.

    Args:
        only_rewinds: leave out all others.
        threads: that make them.
        rows: of a table.

    Attributes:
        schema: the schema of the tables.
    """

    def __init__(self, ordered: OrderedHistory, *, only_rewinds: bool, threads: int, rows: int = ROWS_IN_TABLE) -> None:
        self.ordered, self.history, self.only_rewinds, self.threads = ordered, ordered.history, only_rewinds, threads
        self._rows = rows
        history, keys = self.history, ordered.history.keys
        is_plain = co.are_utf8(history.entries.array, len(history), history.texts.array)
        odd = {
            "group": bool(keys.groups.are_malformed().any()),
            "topic": bool(keys.topics.are_malformed().any()),
            "metadata": not is_plain,
        }
        self._more = sorted(f"{name}_base64" for name, is_odd in odd.items() if is_odd)
        self.schema = schema_with(self._more)
        self._letters = says_more_letters()
        self._names = strings(keys.groups.texts), strings(keys.topics.texts)

    def __iter__(self) -> Iterator[pa.Table]:
        return self.ordered.side_by_side(self._table, step=self._rows, threads=self.threads)

    def _table(self, begin: int, end: int) -> pa.Table:
        entries = self.history.entries.array[self.ordered.order[begin:end]]
        if self.only_rewinds:
            entries = entries[goes_back(entries)]
        if len(entries) > 1 and entries[:, k.METADATA_SIZE].sum() > MOST_TEXT_BYTES:
            half = (begin + end) // 2
            return pa.concat_tables([self._table(begin, half), self._table(half, end)])
        if self._more:
            return table_of_history(map(self.ordered.row, entries.tolist()), self._more)
        columns = self._columns(entries)
        return pa.Table.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _columns(self, entries: a.Int64s) -> dict[str, pa.Array]:
        keys = self.history.keys.columns[entries[:, k.KEY]]
        events, outcomes, changes = (
            entries[:, k.MARKS] // part & k.MASK for part in (k.EVENT, k.OUTCOME, k.CHANGE)
        )  # fmt: skip
        every, commits = np.ones(len(entries), np.bool_), events == k.COMMIT
        answered = entries[:, k.EFFECTIVE_RECORD] != a.NEVER
        has_time = entries[:, k.TIMESTAMP] != NO_TIMESTAMP
        there = {
            "record_offset": every,
            "timestamp_ms": has_time,
            "committed_offset": commits,
            "commit_timestamp_ms": commits,
            "effective_offset": answered,
            "effective_record_offset": answered,
            "rewound_by": goes_back(entries),
        }
        told = _Told(self.ordered, keys[:, ln.LOG])
        longs = {name: told.numbers(name, there[name], entries[:, column]) for name, column in NUMBERS.items()}
        leaders = commits & (entries[:, k.LEADER_EPOCH] != -1)
        in_transaction = outcomes != k.PLAIN
        return longs | {
            "group": told.texts("group", every, keys[:, ln.GROUP], self._names[0]),
            "topic": told.texts("topic", every, keys[:, ln.TOPIC], self._names[1]),
            "partition": told.numbers("partition", every, keys[:, ln.KEY_PARTITION], np.int32),
            "event": told.texts("event", every, events, strings(k.EVENTS)),
            "leader_epoch": told.numbers("leader_epoch", leaders, entries[:, k.LEADER_EPOCH], np.int32),
            "producer_id": told.numbers("producer_id", in_transaction, entries[:, k.PRODUCER_ID]),
            "transaction": told.texts("transaction", in_transaction, outcomes, strings(["", *k.OUTCOMES[1:]])),
            "change": told.texts("change", changes != k.NONE, changes, strings(["", *CHANGES[1:]])),
            "offsets_partition": self._partitions(told, keys[:, ln.LOG]),
            **self._metadata(told, entries, commits),
            **self._members(told, entries[:, k.MEMBER]),
        }

    def _partitions(self, told: _Told, logs: a.Int64s) -> pa.Array:
        of_logs = [read.log.offsets_partition for read in self.history.logs]
        is_known = np.array([number is not None for number in of_logs], np.bool_)
        partitions = np.array([number or 0 for number in of_logs], np.int32)
        return told.numbers("offsets_partition", is_known[logs], partitions[logs], np.int32)

    def _metadata(self, told: _Told, entries: a.Int64s, commits: Mask) -> dict[str, pa.Array]:
        """Return the columns of the clients' texts, and of what these contain when decoded."""
        out = np.empty(int(entries[:, k.METADATA_SIZE].sum()), np.uint8)
        ends, more = np.zeros(len(entries), np.int32), np.zeros(len(entries), np.uint8)
        co.metadata(entries, self.history.texts.array, self._letters, out, ends, more)
        decoded: list[str | None] = []
        says = np.flatnonzero(more)
        for row in says.tolist():
            text = out[ends[row] - entries[row, k.METADATA_SIZE] : ends[row]].tobytes().decode()
            found = decode_commit_metadata(text, int(entries[row, k.COMMITTED]))
            decoded.append(None if found is None else to_json(found))
        numbers_of = np.zeros(len(entries), np.int32)
        numbers_of[says] = np.arange(len(says))
        is_decoded = np.zeros(len(entries), np.bool_)
        is_decoded[says] = [text is not None for text in decoded]
        texts = told.texts("metadata_decoded", is_decoded, numbers_of, strings([text or "" for text in decoded]))
        presence = told.presence("metadata", commits)
        return {
            "metadata": presence.texts(pa.string(), ends, out),
            "metadata_decoded": texts.cast(pa.string()),
        }

    def _members(self, told: _Told, members: a.Int64s) -> dict[str, pa.Array]:
        used, number = np.unique(members, return_inverse=True)
        holders = [self.history.member(each) for each in used.tolist()]
        is_there = members != k.NOBODY

        made: dict[str, pa.Array] = {}
        for name in MEMBERS:
            texts = [None if holder is None else getattr(holder, name) for holder in holders]
            is_text = np.array([text is not None for text in texts], np.bool_)[number]
            made[name] = told.texts(name, is_text, number, strings([text or "" for text in texts]))
        epochs = np.array([0 if holder is None else holder.epoch for holder in holders], np.int32)
        return made | {"member_epoch": told.numbers("member_epoch", is_there, epochs[number], np.int32)}


class _Told:
    """Columns of entries, null where the sources of their logs lack them.

    Args:
        logs: the number of each entry's log.
    """

    def __init__(self, ordered: OrderedHistory, logs: a.Int64s) -> None:
        self._missing_columns: dict[str, Mask] = {}
        for number, read in enumerate(ordered.history.logs):
            missing_columns = read.log.missing_columns
            for name in missing_columns | {column for told, column in FOLLOWING.items() if told in missing_columns}:
                is_missing_column = logs == number
                self._missing_columns[name] = self._missing_columns.get(name, is_missing_column) | is_missing_column

    def presence(self, name: str, is_there: Mask) -> Presence:
        """Return which rows of a column are not null."""
        return Presence(is_there & ~self._missing_columns[name] if name in self._missing_columns else is_there)

    def numbers(self, name: str, is_there: Mask, values: Any, kind: Any = np.int64) -> pa.Array:
        """Return numbers as a column."""
        values = np.ascontiguousarray(values, kind)
        return self.presence(name, is_there).column(numbers(values[:0]).type, values)

    def texts(self, name: str, is_there: Mask, values: Any, texts: pa.StringArray) -> pa.Array:
        """Return texts, given by their numbers, as a column."""
        return self.presence(name, is_there).dictionary(np.ascontiguousarray(values, np.int32), texts)
