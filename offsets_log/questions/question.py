"""What every question has: columns, rows that are read when they are asked for, and remarks about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row

if TYPE_CHECKING:
    import pyarrow as pa


class Question(Protocol):
    """A question to a session. Either `rows` or `tables` is read, once and to the end, then `tell` remarks on them."""

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows; some rows have more, of raw names that are not UTF-8 (``*_base64``)."""
        ...

    @property
    def needed(self) -> Needed:
        """The columns in the order in which people need them."""
        ...

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        ...

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as Arrow tables, which have the same rows in the same order. Raises OffsetsLogError."""
        ...

    def tell(self) -> None:
        """Remark what is to be known of the answer: how much it is, and what may be wrong with it."""
        ...


class FewRows:
    """A question whose rows are few enough to be made one by one; its tables are made of them."""

    needed = Needed()
    """As `Question.needed`; by default columns are needed in the order in which they stand."""

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        raise NotImplementedError

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        raise NotImplementedError

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as one Arrow table. Raises OffsetsLogError."""
        from offsets_log.columnar.materialize.arrow import table_of_rows

        yield table_of_rows([*self.rows()], self.columns)


@runtime_checkable
class Lines(Question, Protocol):
    """A question whose rows can be so many that their text, too, is made many at a time."""

    @property
    def is_bulk(self) -> bool:
        """Whether kernels read: tables are then made faster than rows."""
        ...

    def lines(self, line: Callable[[Row], bytes]) -> Iterator[bytes | memoryview]:
        """Yield the lines of all rows, many at a time, instead of `rows`; each piece is valid until the next.

        Args:
            line: the text of a row with the `columns`, and what ends it.

        Raises:
            OffsetsLogError: as `rows`.
        """
        ...


@runtime_checkable
class Typed(Protocol):
    """A question whose tables tell their types better than its columns do: texts that repeat are dictionaries."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of all tables, but for those of raw names."""
        ...
