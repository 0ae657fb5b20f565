"""Templates of lines: what is the same in every line of a kind, and the values between.

Nothing of a line is written down here. The format makes the line of a record whose values are marks, and it is cut at
these: so the order of fields, the fields that a version has, what stands for null and how a text is escaped are what it
says.
"""

from __future__ import annotations

import base64
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import kernels as k
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.wire import batches as bt
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.record import ControlRecord, Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.messages.schema import (
    BYTES,
    INT32,
    INT64,
    STRING,
    ArrayOf,
    Field,
    Message,
    Scalar,
    Struct,
    in_versions,
)
from offsets_log.pipeline import Event, LogEvent
from offsets_log.tables import Row


@dataclass(frozen=True, slots=True)
class Form:
    """A format of lines, each with what ends it.

    Attributes:
        line: of a record.
        aside: of anything else that was read, as far as it has one; None where only records have lines.
        heading: before the first batch of a file.
        batch_line: of a whole batch and its base offset, where batches have lines.
        expanded: field of a member → what stands in a line for its bytes.
        expanded_in: what a value begins with, behind its version, if its members are expanded.
    """

    line: Callable[[Event], bytes]
    aside: Callable[[LogEvent], bytes | None] = lambda event: None
    heading: Callable[[Segment], bytes] = lambda segment: b""
    batch_line: Callable[[RecordBatch, int], bytes] | None = None
    expanded: Mapping[str, Callable[[bytes], bytes]] = field(default_factory=dict)
    expanded_in: bytes = b""


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

FROM_BYTES = {INT32: sk.READ_INT32, INT64: sk.READ_INT64, STRING: sk.READ_STRING, BYTES: sk.READ_BYTES}
"""Wire type → the operation that writes it from the bytes of a record."""

TEXTS = frozenset({sk.NAME, sk.METADATA, sk.READ_STRING})
"""Operations that write a text."""

RAW = frozenset({sk.READ_BYTES, sk.READ_EMBEDDED})
"""Operations that write bytes."""

WITHOUT_VALUE = frozenset({k.TOMBSTONE, k.GROUP_TOMBSTONE})


class NoTemplateError(Exception):
    """Lines of this kind are made by hand."""


# -------------------------------------------------------------------------------------------------- kinds


@dataclass(frozen=True, slots=True)
class Kind:
    """What rows with the same template have in common: facts of `events.kernels`."""

    kind: int
    attributes: int
    record_type: int
    value_version: int
    has_topic_id: bool


WIDTHS = (3, bt.OLDER_SHIFT + 2, 2, a.VERSIONS.bit_length(), 1)
"""Bits of the parts of a kind's number."""
KINDS = 1 << sum(WIDTHS)


def kinds_of(ints: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The kinds of a chunk's rows as numbers below `KINDS`."""
    parts = (
        ints[k.KIND],
        ints[k.ATTRIBUTES],
        ints[k.RECORD_TYPE] + 1,
        ints[k.VALUE_VERSION] + 1,
        ints[k.TOPIC_ID] >= 0,
    )
    number = np.zeros(ints.shape[1], np.int64)
    for part, width in zip(parts, WIDTHS, strict=True):
        number = number << width | part
    return number


def kind_of(number: int) -> Kind:
    """Inverse of `kinds_of`."""
    parts = []
    for width in reversed(WIDTHS):
        parts.append(number & (1 << width) - 1)
        number >>= width
    has_topic_id, version, record_type, attributes, kind = parts
    return Kind(kind, attributes, record_type - 1, version - 1, bool(has_topic_id))


# -------------------------------------------------------------------------------------------------- marks


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands in a line of marks for a value, and the operation that writes that value.

    Attributes:
        element: 0 or 1 in the elements of an array, which has two; None elsewhere.
    """

    text: bytes
    op: int
    argument: int = 0
    element: int | None = None


class Marks:
    """The values of a record that stand for others.

    Args:
        form: whose lines are made.
        elements: of an array, two or none.
    """

    def __init__(self, form: Form, elements: int) -> None:
        self.form = form
        self.elements = elements
        self.made: list[Mark] = []
        self._element: int | None = None
        self._has_array = False

    def of(self, op: int, argument: int = 0) -> Any:
        """A value that an operation writes."""
        number, raw = 10**29 + secrets.randbelow(10**29), secrets.token_bytes(24)
        value: Any = raw if op in RAW else f"mark{number}" if op in TEXTS else number
        text = base64.b64encode(raw) if op in RAW else str(value).encode()
        self.made.append(Mark(text, op, argument, self._element))
        return value

    def text(self, op: int, argument: int) -> str:
        """A text in place of what an operation writes, whatever that is."""
        mark = f"mark{secrets.randbits(90)}"
        self.made.append(Mark(mark.encode(), op, argument, self._element))
        return mark

    def bytes_of_size(self, number: int) -> bytes:
        """Bytes whose size is a mark, for a column of ``ints``."""
        size = 10**18 + secrets.randbelow(10**18)
        self.made.append(Mark(str(size).encode(), sk.INT, number))
        return Sized(size)

    def columns(self, fields: Sequence[Field], *, but: frozenset[str] = frozenset()) -> Row:
        """Fields that columns tell; some are not there."""
        return {row.name: row.default if row.name in but else self.of(*FROM_COLUMNS[row.name]) for row in fields}

    def fields(self, fields: Sequence[Field], version: int) -> Row:
        """Fields that are read from the bytes of the record.

        Raises:
            NoTemplateError: there is one that no operation writes.
        """
        return {row.name: self._field(row, version) for row in fields if in_versions(version, row.versions)}

    def _field(self, row: Field, version: int) -> Any:
        match row.type:
            case _ if row.name in self.form.expanded and row.type is BYTES:
                return self.of(sk.READ_EMBEDDED, list(self.form.expanded).index(row.name))
            case Scalar() as scalar if scalar in FROM_BYTES and (scalar is STRING or not row.nullable):
                return self.of(FROM_BYTES[scalar], int(row.nullable))
            case ArrayOf(Struct(fields)) if not row.nullable and not self._has_array:
                self._has_array = True
                elements = [self._bytes_of_element(number, fields, version) for number in range(self.elements)]
                self._element = None
                return elements
        raise NoTemplateError

    def _bytes_of_element(self, number: int, fields: Sequence[Field], version: int) -> Row:
        self._element = number
        return self.fields(fields, version)


class Sized(bytes):
    """Bytes of which only the size is asked for."""

    size: int

    def __new__(cls, size: int) -> Sized:
        made = super().__new__(cls)
        made.size = size
        return made

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBatch(RecordBatch):
    """The header of a batch that was found whole and right."""

    def is_valid(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedBatch(WholeBatch):
    """One whose last sequence number is a mark."""

    marked_sequence: int

    @property
    def last_sequence(self) -> int:
        return self.marked_sequence


def batch_of(attributes: int, marks: Marks) -> MarkedBatch:
    """A batch of marks."""
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
    """The event of a row.

    Args:
        column: what a column tells, by the operation that writes it, LONG or INT, and its number.
        what: more of the event: ``decoded`` or ``control``.
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


def _commit(kind: Kind, marks: Marks) -> Row:
    row = RECORD_TYPES[kind.record_type]
    (layout,) = row.values
    key, absent = marks.columns(row.key.fields), frozenset({"topic_id"} if not kind.has_topic_id else ())
    return _decoded(kind, key, marks.columns(layout.fields_of(kind.value_version), but=absent), layout)


def _tombstone(kind: Kind, marks: Marks) -> Row:
    return _decoded(kind, marks.columns(RECORD_TYPES[kind.record_type].key.fields))


def _group(kind: Kind, marks: Marks) -> Row:
    row = RECORD_TYPES[kind.record_type]
    (layout,) = row.values
    if layout.is_flexible(kind.value_version):
        raise NoTemplateError
    key = marks.columns(row.key.fields)
    return _decoded(kind, key, marks.fields(layout.fields, kind.value_version), layout)


def _decoded(kind: Kind, key: Row, value: Row | None = None, layout: Message | None = None) -> Row:
    version = None if value is None else kind.value_version
    record = CoordinatorRecord(
        record_type=kind.record_type, key=key, value_version=version, value=value, layout=layout
    )  # fmt: skip
    return {"decoded": record}


def _marker(kind: Kind, marks: Marks) -> Row:
    name = "COMMIT" if kind.kind == k.COMMIT_MARKER else "ABORT"
    return {"control": ControlRecord(name, marks.of(sk.EPOCH))}


MARKED = {
    k.COMMITTED: _commit,
    k.TOMBSTONE: _tombstone,
    k.GROUP_TOMBSTONE: _tombstone,
    k.GROUP_VALUE: _group,
    k.ABORT_MARKER: _marker,
    k.COMMIT_MARKER: _marker,
}
"""Kind of row → what its record says, in marks. Other kinds have no template."""


# ----------------------------------------------------------------------------------------------- programs


@dataclass(slots=True)
class Operation:
    """A row of a program with its literals: see `kernels.write_lines`."""

    op: int
    argument: int = 0
    literal: bytes = b""
    other: bytes = b""


@dataclass(frozen=True, slots=True)
class Maker:
    """Whose lines are made, and what makes them."""

    segment: Segment
    offsets_partition: int | None
    form: Form

    def program(self, kind: Kind) -> list[Operation]:
        """The program of a kind of rows.

        Raises:
            NoTemplateError: its lines are made by hand.
        """
        return program_of(self.form, partial(self._marked_line, kind), is_whole=kind.kind == k.GROUP_VALUE)

    def _marked_line(self, kind: Kind, marks: Marks) -> bytes:
        if kind.kind == k.BATCH and self.form.batch_line is not None:
            batch = batch_of(kind.attributes, marks)
            return self.form.batch_line(batch, batch.base_offset)
        if kind.kind not in MARKED:
            raise NoTemplateError
        what = MARKED[kind.kind](kind, marks)
        key = marks.bytes_of_size(k.KEY_SIZE)
        value = None if kind.kind in WITHOUT_VALUE else marks.bytes_of_size(k.VALUE_SIZE)
        event = event_of(
            self.segment, self.offsets_partition, kind.attributes, marks.of, key=key, value=value, **what
        )  # fmt: skip
        return self.form.line(event)


MarkedLine = Callable[[Marks], bytes]
"""Makes a line of marks. Raises NoTemplateError."""


def program_of(form: Form, marked_line: MarkedLine, *, is_whole: bool) -> list[Operation]:
    """The program of lines.

    Args:
        is_whole: whether raw values must end where the program does.

    Raises:
        NoTemplateError: there is none.
    """
    cuts = _cuts(form, marked_line, elements=2)
    empty = _cuts(form, marked_line, elements=0)
    made: list[Operation] = []
    first = None  # operation of an array's element
    outside = 0
    for cut, mark, quote in cuts:
        element = mark.element if mark is not None else None
        if element is None:
            outside += 1
        elif element == 0 and first is None:
            made.append(Operation(sk.ARRAY, other=empty[outside][0]))
            first = len(made)
        elif element == 1:
            if first is not None and made[-1].op != sk.NEXT:
                made.append(Operation(sk.NEXT, first, other=cut))
                made[first - 1].argument = len(made)
            continue
        if mark is not None:
            made.append(Operation(mark.op, mark.argument, cut, quote))
        else:
            made.append(Operation(sk.END, int(is_whole), cut))
    return made


def _cuts(form: Form, marked_line: MarkedLine, *, elements: int) -> list[tuple[bytes, Mark | None, bytes]]:
    """A line of marks: the bytes before each, the mark, and its quotes if null has none; at last the line's end."""
    marks = Marks(form, elements)
    line = marked_line(marks)
    read = [mark for mark in marks.made if mark.op >= sk.READ_INT32]
    literals, seen = split(line, marks)
    if [mark for mark in seen if mark.op >= sk.READ_INT32] != read:
        raise NoTemplateError  # a line has them in another order than the bytes
    quotes = [b""] * (len(seen) + 1)
    for i, mark in enumerate(seen):
        if mark.op == sk.READ_EMBEDDED or (mark.op == sk.READ_STRING and mark.argument):
            before, colon, quotes[i] = literals[i].rpartition(b":")
            literals[i], literals[i + 1] = before + colon, literals[i + 1].removeprefix(quotes[i])
    return list(zip(literals, [*seen, None], quotes, strict=True))


def split(line: bytes, marks: Marks) -> tuple[list[bytes], list[Mark]]:
    """What stands between the marks of a line, and the marks."""
    by_text = {mark.text: mark for mark in marks.made}
    pieces = re.split(b"(" + b"|".join(map(re.escape, by_text)) + b")", line)
    return pieces[::2], [by_text[text] for text in pieces[1::2]]


def escapes_of(form: Form) -> npt.NDArray[np.uint8]:
    """What stands in a line for each byte of a text, uint8[256, MOST_ESCAPED + 1]: bytes, and last how many."""
    mark = f"mark{secrets.randbits(90)}"
    texts = mark + "".join(chr(number) + mark for number in range(128))
    key = {row.name: texts if row.name == "group" else 0 for row in RECORD_TYPES[2].key.fields}
    decoded = CoordinatorRecord(record_type=2, key=key)
    made = form.line(event_of(Segment("", None, b""), None, 0, lambda op, number: 0, decoded=decoded))
    found = made.split(mark.encode())[1:-1]
    found += [bytes([number]) for number in range(128, 256)]
    escapes = np.zeros((256, sk.MOST_ESCAPED + 1), np.uint8)
    for number, escaped in enumerate(found):
        escapes[number, : len(escaped)] = list(escaped)
        escapes[number, sk.MOST_ESCAPED] = len(escaped)
    return escapes


class Templates:
    """The programs of all kinds of rows of a segment, made where they are asked for. Threads may share it.

    Attributes:
        ops: int64[n, `kernels.OP_COLUMNS`], the programs behind each other.
        literals: bytes that they write.
    """

    def __init__(self, maker: Maker) -> None:
        self.ops = np.zeros((0, sk.OP_COLUMNS), np.int64)
        self.literals = np.zeros(0, np.uint8)
        self._maker = maker
        self._begins = np.full(KINDS, sk.SKIPPED, np.int64)
        self._lock = threading.Lock()

    def programs(self, ints: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Where the program of each row begins, or BY_HAND."""
        kinds = kinds_of(ints)
        programs = self._begins[kinds]
        new = np.unique(kinds[programs == sk.SKIPPED])
        if len(new):
            with self._lock:
                for number in new.tolist():
                    if self._begins[number] == sk.SKIPPED:
                        self._begins[number] = self._add(kind_of(number))
            programs = self._begins[kinds]
        return programs

    def _add(self, kind: Kind) -> int:
        try:
            program = self._maker.program(kind)
        except NoTemplateError:
            return sk.BY_HAND
        begin, at = len(self.ops), len(self.literals)
        rows = []
        for step in program:
            argument = step.argument + begin if step.op in (sk.ARRAY, sk.NEXT) else step.argument
            rows.append((step.op, argument, at, len(step.literal), at + len(step.literal), len(step.other)))
            at += len(step.literal) + len(step.other)
        literals = b"".join(step.literal + step.other for step in program)
        self.literals = np.concatenate([self.literals, np.frombuffer(literals, np.uint8)])
        self.ops = np.concatenate([self.ops, np.array(rows, np.int64)])
        return begin
