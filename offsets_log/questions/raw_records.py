"""All records in log order as Kafka's clients see them: raw keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from offsets_log.columnar.shuffle.records import RECORD_COLUMNS, SCHEMA, iter_tables_of_log, record_row
from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.session.session import Session

COPY = "shuffle.records.copy_records"
ROWS_IN_TABLE = 1 << 12
"""Rows of a table that is read record by record."""


class RawRecords:
    """The question, as `questions.question.Question`; rows are in the order of the partitions and of their logs."""

    columns: Sequence[Column] = RECORD_COLUMNS
    needed = Needed()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._records = 0

    def rows(self) -> Iterator[Row]:
        """Yield the answer row by row. Raises OffsetsLogError."""
        session = self._session
        for log in session.inputs.logs:
            for event in session.engine.events(log):
                if isinstance(event, Damage):
                    session.account.on_damage(event)
                elif isinstance(event, Event):
                    self._records += 1
                    yield record_row(event)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as Arrow tables, none of them before it is asked for. Raises OffsetsLogError."""
        yield SCHEMA.empty_table()
        yield from self._in_bulk() if self._session.engine.is_bulk_for(COPY) else self._one_by_one()

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        told = f"{counted(self._records, 'record')}, {self._session.inputs.partitions_read}"
        self._session.account.finish(told, found=self._records)

    def _one_by_one(self) -> Iterator[pa.Table]:
        import pyarrow as pa

        rows = self.rows()
        while some := list(islice(rows, ROWS_IN_TABLE)):
            yield pa.Table.from_pylist(some, SCHEMA)

    def _in_bulk(self) -> Iterator[pa.Table]:
        from offsets_log.columnar.scan.reading import ScanOrder

        session = self._session
        session.engine.compile_first(COPY)
        for log in session.inputs.logs:
            order = ScanOrder(log, session.inputs.until(log), session.inputs.scope.kafka)
            for table in iter_tables_of_log(order, session.account.noting(log), session.account.advance):
                self._records += len(table)
                yield table
