"""Make programs that read kafka-dump-log's lines, from the lines that `offsets_log.rows.dump_log` writes.

So the form of a line is defined once: `sinks.templates` uses the same lines to write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.sinks.marks import NoTemplateError, batch_of, event_of, split
from offsets_log.columnar.texts import kernels as tk
from offsets_log.columnar.texts.marks import FORM, INT_SIZES, ReadMarks, Step, steps_of
from offsets_log.log_format.batch import CONTROL_MASK, DELETE_HORIZON_MASK, TIMESTAMP_TYPE_MASK, TRANSACTIONAL_MASK
from offsets_log.log_format.control_record import ControlRecord, control_record
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.messages.schema import STRING, Field, Message
from offsets_log.rows import dump_log
from offsets_log.rows.tables import Row

FLAGS = (TIMESTAMP_TYPE_MASK, TRANSACTIONAL_MASK, CONTROL_MASK, DELETE_HORIZON_MASK)
"""Attributes of batches that are read; compressed batches take the slow path."""
EPOCH_BYTES = 4
NO_TAGS = b"\0"
TOPIC_ID = len(FORM.expanded)
"""Number of a topic id among the fields known by their text, after the fields of members."""


@dataclass(slots=True)
class Programs:
    """All programs.

    Attributes:
        ops: int64[n, `kernels.OP_COLUMNS`], one program after the other.
        literals: bytes that must be in the text, and bytes that are written.
        of_batches, of_records: where each program begins.
    """

    ops: npt.NDArray[np.int64]
    literals: npt.NDArray[np.uint8]
    of_batches: npt.NDArray[np.int64]
    of_records: npt.NDArray[np.int64]


@dataclass(slots=True)
class _Pool:
    rows: list[tuple[int, ...]] = field(default_factory=list)
    literals: bytearray = field(default_factory=bytearray)

    def add(self, op: int, argument: int = 0, literal: bytes = b"", other: bytes = b"") -> None:
        at = len(self.literals)
        self.literals += literal + other
        self.rows.append((op, argument, at, len(literal), at + len(literal), len(other)))


@cache
def dump_log_programs() -> Programs:
    """Return the programs of all lines that have one."""
    pool = _Pool()
    of_batches, of_records = [], []
    for chosen in product((False, True), repeat=len(FLAGS)):
        of_batches.append(len(pool.rows))
        _add_batch(pool, sum(flag for flag, is_set in zip(FLAGS, chosen, strict=True) if is_set))
    for attributes in (0, TIMESTAMP_TYPE_MASK):
        for kind in _records():
            begin = len(pool.rows)
            try:
                _add_record(pool, attributes, kind)
            except NoTemplateError:
                del pool.rows[begin:]
                continue
            of_records.append(begin)
    return Programs(
        np.array(pool.rows, np.int64),
        np.frombuffer(bytes(pool.literals), np.uint8),
        np.array(of_batches, np.int64),
        np.array(of_records, np.int64),
    )


def _add_batch(pool: _Pool, attributes: int) -> None:
    marks = ReadMarks(0)
    batch = batch_of(attributes, marks)
    literals, seen = split(dump_log.batch_line(batch, batch.base_offset).encode() + b"\n", marks)
    for literal, mark in zip(literals, seen, strict=False):
        pool.add(mark.op, mark.argument, literal)
    pool.add(tk.END, attributes, literals[-1])


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of record: of a type and a value version (None for a tombstone), or a marker."""

    record_type: int = 0
    layout: Message | None = None
    version: int | None = None
    marker: str | None = None
    has_topic_id: bool = False

    @property
    def has_value(self) -> bool:
        """Whether it is not a tombstone."""
        return self.marker is not None or self.layout is not None

    @property
    def is_group(self) -> bool:
        """Whether it is a classic group with a value."""
        return self.record_type == 2 and self.layout is not None


def _records() -> Iterator[_Kind]:
    for number in (1, 0, 2):
        for version in reversed(range(a.VERSIONS)):
            for layout in RECORD_TYPES[number].layouts(version):
                yield _Kind(number, layout, version)
                if number != 2 and layout.is_flexible(version):
                    yield _Kind(number, layout, version, has_topic_id=True)
        yield _Kind(number)
    for marker in ("COMMIT", "ABORT"):
        yield _Kind(marker=marker)


@dataclass(slots=True)
class _RecordLine:
    """Makes lines of records whose keys and values are all read from bytes.

    Attributes:
        keys: how many values the key has.
        heads: first bytes of key and value.
        tail: last bytes of the value.
    """

    kind: _Kind
    attributes: int
    keys: int = 0
    heads: tuple[bytes, bytes] = b"", b""
    tail: bytes = b""

    def marked(self, marks: ReadMarks) -> bytes:
        """Return the line of marks. Raises NoTemplateError."""
        what = self._marker(marks) if self.kind.marker else self._data(marks)
        event = event_of(
            Segment("", None, b""),
            None,
            self.attributes,
            marks.of,
            key=marks.bytes_of_size(k.KEY_SIZE),
            value=marks.bytes_of_size(k.VALUE_SIZE) if self.kind.has_value else None,
            **what,
        )
        return FORM.line(event)

    def _data(self, marks: ReadMarks) -> dict[str, Any]:
        kind = self.kind
        version = kind.version or 0
        key = marks.fields(RECORD_TYPES[kind.record_type].key.fields, 0)
        self.keys, self.heads = len(marks.made), (kind.record_type.to_bytes(2), version.to_bytes(2))
        value = None if kind.layout is None else self._value(kind.layout, version, marks)
        decoded = CoordinatorRecord(
            record_type=kind.record_type, key=key, value_version=kind.version, value=value, layout=kind.layout
        )  # fmt: skip
        return {"decoded": decoded}

    def _value(self, layout: Message, version: int, marks: ReadMarks) -> Row:
        if not layout.is_flexible(version):
            return marks.fields(layout.fields, version)
        if not self.kind.has_topic_id:
            self.tail = NO_TAGS
        return {row.name: self._flexible_field(row, marks) for row in layout.fields_of(version)}

    def _flexible_field(self, row: Field, marks: ReadMarks) -> Any:
        """Return a field of an offset commit; its tagged field is written together with the section around it."""
        if row.tag is not None and row.name == "topic_id":
            return marks.string(tk.EMBEDDED, TOPIC_ID) if self.kind.has_topic_id else row.default
        if row.tag is None and row.type is STRING and not row.nullable:
            return marks.string(tk.STRING, tk.IS_COMPACT)
        if row.tag is None and row.type in INT_SIZES:
            return marks.field(row, 0)
        raise NoTemplateError

    def _marker(self, marks: ReadMarks) -> dict[str, Any]:
        control = ControlRecord(self.kind.marker or "", 0)
        made = control_record(Record(offset=0, key=None, value=None), control)
        self.heads = made.key or b"", (made.value or b"")[:-EPOCH_BYTES]
        return {"control": ControlRecord(control.type, marks.integer(EPOCH_BYTES))}


def _add_record(pool: _Pool, attributes: int, kind: _Kind) -> None:
    """Add a record line's program: facts come first, then fields of key and value in the order of their bytes."""
    line = _RecordLine(kind, attributes)
    steps = steps_of(line.marked)
    is_written = [step.op not in (tk.FACT, tk.END) for step in steps]
    key_at = is_written.index(True)
    value_at = key_at + line.keys if kind.has_value else len(steps)
    if not all(is_written[key_at:-1]):
        raise NoTemplateError
    begin = len(pool.rows) + 2  # the operations that begin key and value stand before all that are referred to
    for at, step in enumerate(steps):
        if at == key_at:
            pool.add(tk.KEY, other=line.heads[0])
        if at == value_at:
            pool.add(tk.VALUE, other=line.heads[1])
        _add_step(pool, step, begin, line)


def _add_step(pool: _Pool, step: Step, begin: int, line: _RecordLine) -> None:
    """Add a step; ``begin`` is added to the numbers of operations."""
    if step.op == tk.END:
        if line.tail:
            pool.add(tk.WRITE, other=line.tail)
        step.argument = tk.IS_CONTROL if line.kind.marker else tk.IS_GROUP if line.kind.is_group else 0
    pool.add(step.op, step.argument + (begin if step.op in (tk.ARRAY, tk.NEXT) else 0), step.literal, step.other)
