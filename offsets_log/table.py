"""The answer of a question as a table: for pandas, DuckDB, Polars and whatever else reads Arrow."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.materialize.arrow import FIRST_MS, LAST_MS, schema_of
from offsets_log.disk.writer import atomic_output
from offsets_log.questions.question import Typed
from offsets_log.rows.tables import TIME_SUFFIXES, Row

if TYPE_CHECKING:
    import os

    import pandas as pd

    from offsets_log.questions.question import Question

MOMENT = pa.timestamp("ms", "UTC")
NO_TIME = -1
COMPRESSION = "zstd"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was begun.

    Attributes:
        notes: what was said of the data so far.
        is_complete: whether all that was read so far was there and sound.
    """

    question: Question
    notes: Callable[[], Sequence[str]]
    is_complete: Callable[[], bool]


class Table:
    """Rows of named columns. Nothing is read before it is asked for; each reading reads the copy again.

    Anything that knows Arrow's C stream takes it as it is: ``duckdb.sql("select * from table")``,
    ``polars.DataFrame(table)``, ``pyarrow.table(table)``. Columns named ``X_ms`` hold Kafka's milliseconds; beside each
    moment stands ``X``, a timestamp in UTC, null where there is none in the years 1 to 9999.

    Args:
        ask: begins the question, and returns it with its session.
        columns: names of the columns that are wanted, in this order; None for all.
        shown: makes the columns that are shown of those of the question.
    """

    def __init__(
        self,
        ask: Callable[[], Asked],
        columns: tuple[str, ...] | None = None,
        shown: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        self._ask, self._columns, self._with_more = ask, columns, shown or with_moments
        self._is_read = False
        self.last: Asked | None = None
        """The last reading that was begun."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow's C data interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, without holding all of them."""
        return iter(self.reader())

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows in batches. Raises OffsetsLogError."""
        self.last = self._ask()
        tables = self._tables(self.last)
        first = next(tables)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from first.to_batches()
            for table in tables:
                yield from table.to_batches()

        return pa.RecordBatchReader.from_batches(first.schema, batches())

    def _tables(self, asked: Asked) -> Iterator[pa.Table]:
        """Yield the tables of an answer, at least one, and note at the end what is to be known of it."""
        schema: pa.Schema | None = None
        self._check(asked.question)
        for found in asked.question.tables():
            table = self._shown(found)
            if schema is None:
                schema = table.schema
            yield table.select(schema.names).cast(schema)
        if schema is None:
            yield self._shown(_nothing(asked.question))
        asked.question.tell()
        self._is_read = True

    def _shown(self, table: pa.Table) -> pa.Table:
        """Return a table with moments beside milliseconds, and only the columns that are wanted."""
        shown = self._with_more(table)
        return shown if self._columns is None else shown.select(list(self._columns))

    def _check(self, question: Question) -> None:
        """Refuse to read what has no column that is wanted. Raises KeyError: names those that there are."""
        if self._columns is None or not question.columns:
            return
        known = self._with_more(schema_of(question.columns).empty_table()).schema.names
        if unknown := [name for name in self._columns if name not in known and not name.endswith("_base64")]:
            raise KeyError(f"there is no column {unknown[0]!r}; there are {', '.join(known)}")

    def select(self, names: str | Sequence[str]) -> Table:
        """Return the same table with only this column, or these in their order."""
        return Table(self._ask, (names,) if isinstance(names, str) else tuple(names), self._with_more)

    @property
    def declared(self) -> pa.Schema:
        """The columns of all rows; nothing is read for them but what is opened. Raises OffsetsLogError."""
        return self._shown(_nothing(self._ask().question)).schema

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table of pyarrow. Raises OffsetsLogError."""
        return self.reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a data frame with Arrow's types: no number becomes a float because another is null.

        Texts are texts there, for of Arrow's dictionaries pandas neither sorts nor searches the values.
        """
        import pandas as pd

        table = self.to_arrow()
        plain = [
            pa.field(field.name, field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in table.schema
        ]
        return table.cast(pa.schema(plain)).to_pandas(types_mapper=pd.ArrowDtype)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write all rows into a file, which appears whole or not at all. Raises OffsetsLogError."""
        import pyarrow.parquet as pq

        reader = self.reader()
        with (
            atomic_output(str(path)) as stream,
            pq.ParquetWriter(stream, reader.schema, compression=COMPRESSION) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)

    def rows(self) -> list[Row]:
        """Return all rows as dictionaries, as are maps in them. Raises OffsetsLogError."""
        table = self.to_arrow()
        maps = [field.name for field in table.schema if pa.types.is_map(field.type)]
        rows: list[Row] = table.to_pylist()
        for row in rows if maps else ():
            row |= {name: dict(row[name]) for name in maps if row[name] is not None}
        return rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as Arrow has them. Raises OffsetsLogError."""
        return self.reader().schema

    @property
    def notes(self) -> list[str]:
        """What is to be known of the answer, a sentence each; the copy is read for it if it was not."""
        return [*self._read().notes()]

    @property
    def is_complete(self) -> bool:
        """Whether all that the question reads was there and sound."""
        return self._read().is_complete()

    def _read(self) -> Asked:
        """Return the last reading; one that came to its end, for what is known only there."""
        if not self._is_read:
            for _ in self.reader():
                pass
        assert self.last is not None
        return self.last

    def _repr_html_(self) -> str:
        """Show the rows in notebooks, and what is to be known of them."""
        frame = self.to_pandas()
        return str(frame._repr_html_()) + "".join(f"<p>{html.escape(words)}</p>" for words in self.notes)


def _nothing(question: Question) -> pa.Table:
    """Return a table of a question's columns without rows."""
    schema = question.schema if isinstance(question, Typed) else schema_of(question.columns)
    return schema.empty_table()


def with_moments(table: pa.Table) -> pa.Table:
    """Return a table with a timestamp ``X`` before each column ``X_ms`` that holds moments."""
    fields: list[pa.Field] = []
    columns: list[pa.ChunkedArray] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if is_moment(field.name) and pa.types.is_integer(field.type):
            is_told = pc.and_(pc.greater_equal(column, FIRST_MS), pc.less_equal(column, LAST_MS))
            is_told = pc.and_(is_told, pc.not_equal(column, NO_TIME))
            fields.append(pa.field(field.name.removesuffix("_ms"), MOMENT))
            columns.append(pc.if_else(is_told, column, None).cast(MOMENT))
        fields.append(field)
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields))


def is_moment(name: str) -> bool:
    """Return whether a column of this name holds moments in epoch milliseconds."""
    return name.endswith(TIME_SUFFIXES)
