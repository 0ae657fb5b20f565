"""All records in log order, decoded: flat columns, for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.columnar.events.rows import EVENT_COLUMNS, event_row
from offsets_log.questions.shown_events import ShownEvents
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.columnar.events.export import Destination, Write
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session

NEEDS = frozenset({"record_offset", "timestamp_ms", "producer_id", "value_version"})
"""Columns that are never null, or that the raw bytes beside them depend on."""
FILL = "events.kernels.fill"
PART_BYTES = 1 << 22
"""Bytes of log in a part, of which each thread makes one or two before they are asked for."""


class Records:
    """The question, as `questions.question.Question`; rows are in the order of the partitions and of their logs.

    Args:
        wanted: names of the columns that tables have; None for all.
    """

    columns: Sequence[Column] = EVENT_COLUMNS
    needed = Needed()

    def __init__(self, session: Session, wanted: Collection[str] | None = None) -> None:
        self._session = session
        self._names = [column.name for column in EVENT_COLUMNS if wanted is None or column.name in wanted]
        self._records = 0

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns of all tables that have all columns."""
        from offsets_log.columnar.events.tables import SCHEMA

        return SCHEMA

    def rows(self) -> Iterator[Row]:
        """Yield the answer row by row. Raises OffsetsLogError."""
        shown = ShownEvents(self._session)
        for log in self._session.inputs.logs:
            for event in shown.records_of(log):
                yield dict.fromkeys(column.name for column in self.columns) | event_row(event)
        self._records = shown.records

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as Arrow tables, none of them before it is asked for but a few that threads read ahead.

        Raises:
            OffsetsLogError: a file cannot be read, or is damaged in a strict session.
        """
        tables = self._in_bulk() if self._is_bulk else self._one_by_one()
        first = next(tables, None)
        yield self.schema.empty_table().select(self._names) if first is None else first
        yield from tables

    def write_parts(self, write: Write) -> None:
        """Hand the tables of each part of a log to a function, which is called as `Destination.write`.

        Raises:
            OffsetsLogError: as `tables`.
        """
        if self._is_bulk:
            from offsets_log.columnar.events.export import Destination

            self._records = sum(rows for _, rows in self._parts(Destination(write)))
            return
        from offsets_log.columnar.events.tables import iter_event_tables

        shown = ShownEvents(self._session)
        for number, log in enumerate(self._session.inputs.logs):
            self._records += write(log, number, iter_event_tables(map(event_row, shown.records_of(log))))

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        told = f"{counted(self._records, 'record')}, {self._session.inputs.partitions_read}"
        self._session.account.finish(told, found=self._records)

    @property
    def _is_bulk(self) -> bool:
        return self._session.engine.is_bulk_for(FILL)

    def _parts(self, to: Destination) -> Iterator[tuple[int, int]]:
        from offsets_log.columnar.events.tables import TableChunk

        chunk = partial(TableChunk, names=self._names)
        return self._session.engine.export_in_bulk(to, is_filtered=True, chunk=chunk)

    def _one_by_one(self) -> Iterator[pa.Table]:
        from offsets_log.columnar.events.tables import iter_event_tables

        shown = ShownEvents(self._session)
        for log in self._session.inputs.logs:
            for table in iter_event_tables(map(event_row, shown.records_of(log))):
                yield table.select(self._names)
        self._records = shown.records

    def _in_bulk(self) -> Iterator[pa.Table]:
        from offsets_log.columnar.events.export import Destination
        from offsets_log.columnar.events.tables import owned

        made: dict[int, list[pa.Table]] = {}

        def keep(log: PartitionLog, number: int, tables: Iterable[pa.Table]) -> int:
            """Keep the tables of a part, in place of earlier ones."""
            made[number] = [owned(table) for table in tables]
            return sum(map(len, made[number]))

        for number, rows in self._parts(Destination(keep, PART_BYTES)):
            self._records += rows
            yield from made.pop(number)
