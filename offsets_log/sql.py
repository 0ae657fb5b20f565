"""SQL over a copy: DuckDB asks the library's tables, and only those that a query names are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from offsets_log.errors import OffsetsLogError
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.table import Asked, Table

if TYPE_CHECKING:
    from types import ModuleType

Tables = Mapping[str, Callable[[], Table]]
"""Table of a query → the question that it is."""

WITHOUT_DUCKDB = "SQL needs DuckDB: pip install 'offsets-log[sql]'"


class SqlError(OffsetsLogError):
    """A query that DuckDB does not understand, or that cannot be run."""


class Named:
    """A table of a query, which DuckDB reads as often as the query names it."""

    def __init__(self, table: Table) -> None:
        self.schema = table.declared
        self.table = table.select(self.schema.names)

    def __arrow_c_schema__(self) -> object:
        """Return the columns; no record is read for them."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow's C data interface."""
        return self.table.__arrow_c_stream__(requested_schema)


class Query:
    """The question that a query is, as `questions.question.Question`."""

    columns: Sequence[Column] = ()
    needed = Needed()

    def __init__(self, tables: Tables, query: str) -> None:
        self._query, self._known = query, tables
        words = set(re.findall(r"[a-z_]+", query.lower()))
        self._named = {name: Named(ask()) for name, ask in tables.items() if name in words}

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return [row for table in self.tables() for row in table.to_pylist()]

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer in parts, the first of which has no rows. Raises OffsetsLogError."""
        duckdb = _duckdb()
        with duckdb.connect() as connection:
            connection.execute("set timezone = 'UTC'")
            for name, table in self._named.items():
                connection.register(name, table)
            try:
                statements = connection.extract_statements(self._query)
                if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                    raise SqlError("one query is answered, which begins with select, with or from")
                reader = connection.sql(self._query).to_arrow_reader()
                names = _told_apart(reader.schema.names)
                yield reader.schema.empty_table().rename_columns(names)
                for batch in reader:
                    yield pa.Table.from_batches([batch]).rename_columns(names)
            except duckdb.Error as error:
                hint = "" if self._named else f"; there are {', '.join(self._known)}"
                raise SqlError(str(error).replace("\n", "; ") + hint) from None

    def tell(self) -> None:
        """Remark nothing: what is to be known is told of the tables that were read."""

    def notes(self) -> list[str]:
        """Return what was said of the tables that were read."""
        return [words for reading in self._readings() for words in reading.notes()]

    def is_complete(self) -> bool:
        """Return whether all that was read of the tables was there and sound."""
        return all(reading.is_complete() for reading in self._readings())

    def _readings(self) -> list[Asked]:
        return [reading for table in self._named.values() if (reading := table.table.last) is not None]


def answered(tables: Tables, query: str) -> Table:
    """Return the answer to a query. Raises SqlError: DuckDB is not installed."""
    _duckdb()

    def ask() -> Asked:
        question = Query(tables, query)
        return Asked(question, question.notes, question.is_complete)

    return Table(ask, shown=lambda table: table)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return names of columns of which none stands twice, as after a join."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return told


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError:
        raise SqlError(WITHOUT_DUCKDB) from None
    return duckdb
