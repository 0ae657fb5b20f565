"""Turn entries of `bulk_history`, and rows of `history_row`, to Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events.tables import Presence
from offsets_log.columnar.history import columns as co
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.materialize.arrow import numbers, schema_of, strings, table_of_rows, texts
from offsets_log.columnar.sinks.letters import Letters
from offsets_log.investigate.bulk_history import OrderedHistory
from offsets_log.investigate.history_rows import FOLLOWING, HISTORY_COLUMNS
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
    "producer_id": k.PRODUCER_ID,
    "rewound_by": k.REWOUND_BY,
}
"""Columns of numbers → those of entries."""
TEXTS = ("group", "topic", "event", "transaction", "change", *MEMBERS)
"""Columns whose texts repeat often: their Arrow type is a dictionary."""
CHANGES = (None, "new", "advanced", "rewound", "same", "deleted", "new")


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
        self._escapes = Letters().escapes
        self._names = strings(keys.groups.texts), strings(keys.topics.texts)

    def __iter__(self) -> Iterator[pa.Table]:
        return self.ordered.side_by_side(self._table, step=self._rows, threads=self.threads)

    def _table(self, begin: int, end: int) -> pa.Table:
        run = self.ordered.run(begin, end, only_rewinds=self.only_rewinds)
        if len(run) > 1 and run.longs[k.METADATA_SIZE].sum() > MOST_TEXT_BYTES:
            half = (begin + end) // 2
            return pa.concat_tables([self._table(begin, half), self._table(half, end)])
        if self._more:
            return table_of_history((self.ordered.row(run.entry(place)) for place in range(len(run))), self._more)
        columns = self._columns(run)
        return pa.Table.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _columns(self, run: co.Run) -> dict[str, pa.Array]:
        longs, keys, made = run.longs, run.keys, _Columns(self.ordered, run)
        for name, column in NUMBERS.items():
            made.numbers(name, longs[column])
        made.numbers("leader_epoch", longs[k.LEADER_EPOCH], np.int32)
        made.numbers("partition", keys[k.KEY_PARTITION], np.int32)
        made.numbers("member_epoch", longs[co.MEMBERS_AT + k.EPOCH], np.int32)
        made.texts("group", keys[k.GROUP], self._names[0])
        made.texts("topic", keys[k.TOPIC], self._names[1])
        made.texts("event", run.events, strings(k.EVENTS))
        made.texts("transaction", run.outcomes, strings(["", *k.OUTCOMES[1:]]))
        made.texts("change", run.changes, strings(["", *CHANGES[1:]]))
        self._add_partitions(made, keys[k.LOG])
        self._add_metadata(made, run)
        self._add_members(made, longs[k.MEMBER])
        return made.columns

    def _add_partitions(self, made: _Columns, logs: a.Int64s) -> None:
        of_logs = [read.log.offsets_partition for read in self.history.logs]
        made.there["offsets_partition"] = np.array([number is not None for number in of_logs], np.bool_)[logs]
        made.numbers("offsets_partition", np.array([number or 0 for number in of_logs], np.int32)[logs], np.int32)

    def _add_metadata(self, made: _Columns, run: co.Run) -> None:
        """Add the columns of the clients' texts, and of what these contain when decoded."""
        all_texts, longs = self.history.texts.array, run.longs
        says = np.flatnonzero(run.may_say_more(all_texts, self._escapes))
        decoded: list[str | None] = []
        for at, size, offset in longs[[k.METADATA_AT, k.METADATA_SIZE, k.COMMITTED]][:, says].T.tolist():
            found = decode_commit_metadata(all_texts[at : at + size].tobytes().decode(), offset)
            decoded.append(None if found is None else to_json(found))
        places = np.where(made.is_there("metadata"), longs[k.METADATA_AT], a.NOTHING)
        made.columns["metadata"] = texts(all_texts, places, longs[k.METADATA_SIZE])
        numbers_of, is_decoded = np.zeros(len(run), np.int32), np.zeros(len(run), np.bool_)
        numbers_of[says], is_decoded[says] = np.arange(len(says)), [text is not None for text in decoded]
        made.there["metadata_decoded"] = is_decoded
        made.texts("metadata_decoded", numbers_of, strings([text or "" for text in decoded]))
        made.columns["metadata_decoded"] = made.columns["metadata_decoded"].cast(pa.string())

    def _add_members(self, made: _Columns, members: a.Int64s) -> None:
        used, number = np.unique(members, return_inverse=True)
        holders = [self.history.member(each) for each in used.tolist()]
        for name in MEMBERS:
            made.texts(name, number, strings([getattr(holder, name, None) or "" for holder in holders]))


class _Columns:
    """Columns of entries, null where the sources of their logs lack them."""

    def __init__(self, ordered: OrderedHistory, run: co.Run) -> None:
        self.columns: dict[str, pa.Array] = {}
        self.there, self._every = run.there, np.ones(len(run), np.bool_)
        self._lacking: dict[str, list[int]] = {}
        self._logs = run.keys[k.LOG]
        for number, read in enumerate(ordered.history.logs):
            lacking = read.log.missing_columns
            for name in lacking | {column for told, column in FOLLOWING.items() if told in lacking}:
                self._lacking.setdefault(name, []).append(number)

    def is_there(self, name: str) -> co.Mask:
        """Return which rows of a column are not null."""
        is_there = self.there.get(name, self._every)
        return is_there & ~np.isin(self._logs, self._lacking[name]) if name in self._lacking else is_there

    def numbers(self, name: str, values: Any, kind: Any = np.int64) -> None:
        """Add a column of numbers."""
        values = np.array(values, kind)
        self.columns[name] = Presence(self.is_there(name)).column(numbers(values[:0]).type, values)

    def texts(self, name: str, values: Any, texts: pa.StringArray) -> None:
        """Add a column of texts, given by their numbers."""
        self.columns[name] = Presence(self.is_there(name)).dictionary(np.array(values, np.int32), texts)
