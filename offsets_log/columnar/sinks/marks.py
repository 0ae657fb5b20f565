"""Make records of marks: values that stand for others in a format's line, so that the line can be cut at them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from offsets_log.columnar.events import columns as k
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.letters import Letters
from offsets_log.columnar.wire import batches as bt
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.messages.schema import (
    Field,
)
from offsets_log.rows.tables import Row, json_bytes

Expanded = Callable[[str, str, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Form:
    """A format of lines, each with its line end.

    Attributes:
        line: returns the line of a record.
        aside: returns the line of anything else that was read, or None if it has none.
        heading: returns what comes before the first batch of a file.
        batch_line: returns the line of a whole batch, given its base offset; None if batches have no lines.
        expanded: field of a member → function from its group's protocol type and protocol and its bytes to their text
            in a line.
        expanded_in: the bytes after the version of a value whose members are expanded.
        beyond: fields whose records get their lines on the slow path, where a struct is there, or where a commit's
            metadata may say more than its text.
    """

    line: Callable[[Event], bytes]
    aside: Callable[[LogEvent], bytes | None] = lambda event: None
    heading: Callable[[Segment], bytes] = lambda segment: b""
    batch_line: Callable[[RecordBatch, int], bytes] | None = None
    expanded: Mapping[str, Expanded] = field(default_factory=dict)
    expanded_in: bytes = b""
    beyond: frozenset[str] = frozenset()


FROM_COLUMNS = {
    "group": (sk.NAME, k.IS_GROUP),
    "topic": (sk.NAME, k.IS_TOPIC),
    "partition": (sk.INT, k.PARTITION),
    "offset": (sk.LONG, k.COMMITTED_OFFSET),
    "leader_epoch": (sk.INT, k.LEADER_EPOCH),
    "metadata": (sk.METADATA, 0),
    "commit_timestamp": (sk.LONG, k.COMMIT_TIMESTAMP),
    "expire_timestamp": (sk.LONG, k.EXPIRE_TIMESTAMP),
    "topic_id": (sk.NAME, k.IS_TOPIC_ID),
}
"""Field of a key or of an offset commit → the operation that writes it from the columns of a chunk."""

TEXTS = frozenset({sk.NAME, sk.METADATA})
"""Operations that write a text."""


class NoTemplateError(Exception):
    """Lines of this kind are made on the slow path."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The text that stands for a value in a line of marks, and the operation that writes that value."""

    text: bytes
    op: int
    argument: int = 0


def a_number() -> int:
    """Return a number that stands nowhere else."""
    return 10**29 + secrets.randbelow(10**29)


def a_text() -> str:
    """Return a text that stands nowhere else."""
    return f"mark{a_number()}"


class Values:
    """Values that stand for others.

    Attributes:
        made: the marks, in order.
    """

    def __init__(self) -> None:
        self.made: list[Mark] = []

    def note(self, text: bytes, op: int, argument: int) -> None:
        """Note a mark."""
        self.made.append(Mark(text, op, argument))

    def number(self, op: int, argument: int = 0) -> int:
        """Return a number that marks what an operation writes."""
        number = a_number()
        self.note(str(number).encode(), op, argument)
        return number

    def text(self, op: int, argument: int = 0) -> str:
        """Return a text that marks what an operation writes, whatever that is."""
        text = a_text()
        self.note(text.encode(), op, argument)
        return text


class Marks(Values):
    """The values of a record that stand for others.

    Args:
        form: the format whose lines are made.
    """

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form

    def of(self, op: int, argument: int = 0) -> Any:
        """Return a value that marks what an operation writes."""
        return self.text(op, argument) if op in TEXTS else self.number(op, argument)

    def json(self, op: int, argument: int, quote: bytes | None) -> Row:
        """Return an object that marks what an operation writes; ``quote`` is the result of `quote_of`.

        Raises:
            NoTemplateError: it is not known how objects are written in a line.
        """
        if quote is None:
            raise NoTemplateError
        mark = f"mark{secrets.randbits(90)}"
        self.note(b"{%b%b%b:0}" % (quote, mark.encode(), quote), op, argument)
        return {mark: 0}

    def bytes_of_size(self, number: int) -> bytes:
        """Return bytes whose size is a mark, for a column of ``ints``."""
        size = 10**18 + secrets.randbelow(10**18)
        self.note(str(size).encode(), sk.INT, number)
        return Sized(size)

    def columns(self, fields: Sequence[Field], *, but: frozenset[str] = frozenset()) -> Row:
        """Return the fields that columns hold.

        Fields that are missing, or in no column, have their defaults: kernels make no rows of records with other values
        there.
        """
        told = FROM_COLUMNS.keys() - but
        return {row.name: self._column(row.name) if row.name in told else row.default for row in fields}

    def _column(self, name: str) -> Any:
        op, argument = FROM_COLUMNS[name]
        return self.of(op, int(name in self.form.beyond) if op == sk.METADATA else argument)


class Told(Marks):
    """The values of a row themselves, in place of marks.

    Args:
        column: returns what an operation writes from the columns of a chunk.
    """

    def __init__(self, form: Form, column: Callable[[int, int], Any]) -> None:
        super().__init__(form)
        self.column = column

    def of(self, op: int, argument: int = 0) -> Any:
        return self.column(op, argument)

    def bytes_of_size(self, number: int) -> bytes:
        return Sized(self.column(sk.INT, number))


class Sized(bytes):
    """Bytes of which only the size matters."""

    size: int

    def __new__(cls, size: int) -> Sized:
        made = super().__new__(cls)
        made.size = size
        return made

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRecord(CoordinatorRecord):
    """A record whose key and value are marks in JSON."""

    marked_key: Row
    marked_value: Row | None

    def key_json(self) -> Row:
        return self.marked_key

    def value_json(self) -> Row | None:
        return self.marked_value


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBatch(RecordBatch):
    """The header of a batch that was found whole and valid."""

    def is_valid(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedBatch(WholeBatch):
    """The header of a batch whose last sequence number is a mark."""

    marked_sequence: int

    @property
    def last_sequence(self) -> int:
        return self.marked_sequence


def batch_of(attributes: int, marks: Marks) -> MarkedBatch:
    """Return a batch of marks."""
    return MarkedBatch(
        position=marks.of(sk.LONG, k.POSITION),
        raw=marks.bytes_of_size(k.SIZE),
        magic=bt.NEWEST_MAGIC - (attributes >> bt.OLDER_SHIFT),
        crc=marks.of(sk.LONG, k.CRC),
        attributes=attributes & bt.KNOWN_ATTRIBUTES,
        base_offset=marks.of(sk.LONG, k.BATCH_BASE_OFFSET),
        last_offset=marks.of(sk.LONG, k.LAST_OFFSET),
        partition_leader_epoch=marks.of(sk.INT, k.PARTITION_LEADER_EPOCH),
        base_timestamp_ms=marks.of(sk.LONG, k.BASE_TIMESTAMP),
        max_timestamp_ms=marks.of(sk.LONG, k.MAX_TIMESTAMP),
        producer_id=marks.of(sk.LONG, k.PRODUCER_ID),
        producer_epoch=marks.of(sk.INT, k.PRODUCER_EPOCH),
        base_sequence=marks.of(sk.INT, k.BASE_SEQUENCE),
        marked_sequence=marks.of(sk.INT, k.LAST_SEQUENCE),
        records_count=marks.of(sk.INT, k.RECORDS_COUNT),
    )


def event_of(
    segment: Segment,
    offsets_partition: int | None,
    attributes: int,
    column: Any,
    *,
    key: bytes | None = None,
    value: bytes | None = None,
    **what: Any,
) -> Event:
    """Return the event of a row.

    Args:
        column: returns the value of a column, given the operation that writes it (LONG or INT) and its number.
        what: further fields of the event: ``decoded`` or ``control``.
    """
    position, base_offset, offset, timestamp_ms, producer_id = (
        column(sk.LONG, number)
        for number in (k.POSITION, k.BATCH_BASE_OFFSET, k.RECORD_OFFSET, k.TIMESTAMP, k.PRODUCER_ID)
    )
    batch = WholeBatch(
        position=position,
        raw=b"",
        magic=bt.NEWEST_MAGIC - (attributes >> bt.OLDER_SHIFT),
        crc=column(sk.LONG, k.OLDER_CHECKSUM),
        attributes=attributes & bt.KNOWN_ATTRIBUTES,
        base_offset=base_offset,
        last_offset=offset,
        producer_id=producer_id,
        producer_epoch=column(sk.INT, k.PRODUCER_EPOCH),
    )
    sequence = column(sk.INT, k.SEQUENCE)
    record = Record(
        offset=offset, position=position, timestamp_ms=timestamp_ms, sequence=sequence, key=key, value=value
    )  # fmt: skip
    return Event(
        segment=segment,
        offsets_partition=offsets_partition,
        batch=batch,
        batch_base_offset=base_offset,
        record=record,
        **what,
    )


def split(line: bytes, values: Values) -> tuple[list[bytes], list[Mark]]:
    """Return the bytes between the marks of a line, and the marks."""
    found = sorted(((at, mark) for mark in values.made for at in _places(line, mark.text)), key=itemgetter(0))
    begins = [0, *(at + len(mark.text) for at, mark in found)]
    ends = [*(at for at, _ in found), len(line)]
    return [line[begin:end] for begin, end in zip(begins, ends, strict=True)], [mark for _, mark in found]


def _places(line: bytes, text: bytes) -> Iterator[int]:
    """Yield where a text stands in a line. Compiling a pattern of all marks would take longer than all the rest."""
    at = line.find(text)
    while at >= 0:
        yield at
        at = line.find(text, at + len(text))


def letters_of(form: Form) -> Letters:
    """Return how texts stand in lines, wherever they stand: those of keys and of values alike."""

    def line_with(text: str) -> bytes:
        layout, key = OFFSET_COMMIT_VALUE, RECORD_TYPES[1].key.zeros(0) | {"group": text}
        value = layout.zeros(0) | {"metadata": text}
        decoded = CoordinatorRecord(record_type=1, key=key, value_version=0, value=value, layout=layout)
        return form.line(event_of(Segment("", None, b""), None, 0, lambda op, number: 0, decoded=decoded))

    return Letters(line_with)


def quote_of(form: Form) -> bytes | None:
    """Return the form of a JSON quote in a line; None if other characters change too."""
    mark = f"mark{secrets.randbits(90)}"
    sample: Row = {mark: {"azAZ09_-": [None, 0, -1, "", [], {}]}}
    record = MarkedRecord(record_type=3, key={}, value_version=0, value={}, marked_key=sample, marked_value=sample)
    line = form.line(event_of(Segment("", None, b""), None, 0, lambda op, number: 0, decoded=record))
    if mark.encode() not in line:  # keys and values are not shown
        return b'"'
    found = re.search(mark.encode() + b"(.+?):", line)
    if found is None or json_bytes(sample).replace(b'"', found[1]) not in line:
        return None
    return found[1]
