"""Make templates of lines: the parts that are equal in every line of a kind, and the values between them.

No format is written down here. The format makes the line of a record whose values are marks, and this line is cut at
them. So the format alone decides the order of fields, the fields of a version, the form of null and how a text is
escaped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.layouts import Release, layouts_of
from offsets_log.columnar.sinks import kernels as sk
from offsets_log.columnar.sinks.json_programs import Programs
from offsets_log.columnar.sinks.kinds import Kind, kind_of
from offsets_log.columnar.sinks.marks import (
    Form,
    MarkedRecord,
    Marks,
    NoTemplateError,
    Values,
    batch_of,
    event_of,
    split,
)
from offsets_log.columnar.sinks.writers import SLACK
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.partition_log import Segment
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.messages.schema import Message
from offsets_log.rows.tables import Row

WITHOUT_VALUE = frozenset({k.TOMBSTONE, k.GROUP_TOMBSTONE})


# ------------------------------------------------------------------------------------- records of marks


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the lines of a segment's records.

    Attributes:
        json: programs of keys and values.
        release: the release that wrote the log, if it is known.
    """

    segment: Segment
    offsets_partition: int | None
    form: Form
    json: Programs
    release: Release | None = None

    def program(self, number: int) -> list[Operation]:
        """Return the program of a kind of rows, given its number.

        Raises:
            NoTemplateError: its lines are made on the slow path.
        """
        marks = Marks(self.form)
        return program_of(self.line(kind_of(number), marks), marks)

    def line(self, kind: Kind, marks: Marks) -> bytes:
        """Return the line of a row of a kind with the values that marks give. Raises NoTemplateError."""
        if kind.kind == k.BATCH and self.form.batch_line is not None:
            batch = batch_of(kind.attributes, marks)
            return self.form.batch_line(batch, batch.base_offset)
        if kind.kind not in MARKED:
            raise NoTemplateError
        what = MARKED[kind.kind](self, kind, marks)
        key = marks.bytes_of_size(k.KEY_SIZE)
        value = None if kind.kind in WITHOUT_VALUE else marks.bytes_of_size(k.VALUE_SIZE)
        event = event_of(
            self.segment, self.offsets_partition, kind.attributes, marks.of, key=key, value=value, **what
        )  # fmt: skip
        return self.form.line(event)

    def _layout(self, kind: Kind) -> Message | None:
        if kind.value_version < 0:
            return None
        return layouts_of(kind.record_type, kind.value_version, self.release)[kind.layout]

    def commit(self, kind: Kind, marks: Marks) -> Row:
        """Return an offset commit of marks."""
        layout = self._layout(kind)
        assert layout is not None
        key, absent = _key(kind, marks), frozenset({"topic_id"} if not kind.has_topic_id else ())
        return _decoded(kind, key, marks.columns(layout.fields_of(kind.value_version), but=absent), layout)

    def tombstone(self, kind: Kind, marks: Marks) -> Row:
        """Return a tombstone of an offset commit."""
        return _decoded(kind, _key(kind, marks))

    def group(self, kind: Kind, marks: Marks) -> Row:
        """Return a record of a group."""
        layout, quote = self._layout(kind), self.json.quote
        key = marks.json(sk.JSON_KEY, self.json.begin_of(RECORD_TYPES[kind.record_type].key, 0), quote)
        value = None
        if layout is not None:
            value = marks.json(sk.JSON_VALUE, self.json.begin_of(layout, kind.value_version), quote)
        version = None if layout is None else kind.value_version
        record = MarkedRecord(
            record_type=kind.record_type, key={}, value_version=version, value=None if value is None else {},
            marked_key=key, marked_value=value,
        )  # fmt: skip
        return {"decoded": record}

    def marker(self, kind: Kind, marks: Marks) -> Row:
        """Return a transaction marker."""
        name = "COMMIT" if kind.kind == k.COMMIT_MARKER else "ABORT"
        return {"control": ControlRecord(name, marks.of(sk.EPOCH))}


def _key(kind: Kind, marks: Marks) -> Row:
    return marks.columns(RECORD_TYPES[kind.record_type].key.fields)


def _decoded(kind: Kind, key: Row, value: Row | None = None, layout: Message | None = None) -> Row:
    version = None if value is None else kind.value_version
    record = CoordinatorRecord(
        record_type=kind.record_type, key=key, value_version=version, value=value, layout=layout
    )  # fmt: skip
    return {"decoded": record}


MARKED = {
    k.COMMITTED: Maker.commit,
    k.TOMBSTONE: Maker.tombstone,
    k.GROUP_TOMBSTONE: Maker.group,
    k.GROUP_VALUE: Maker.group,
    k.ABORT_MARKER: Maker.marker,
    k.COMMIT_MARKER: Maker.marker,
}
"""Kind of row → what its record contains, in marks. Other kinds have no template."""


# ----------------------------------------------------------------------------------------------- programs

CHECKS = {sk.JSON_KEY: sk.CHECK_KEY, sk.JSON_VALUE: sk.CHECK_VALUE}
"""What writes something → what only checks that it can be written; if it cannot, other columns may tell why."""


@dataclass(slots=True)
class Operation:
    """A row of a program with its literal: see `kernels.write_lines`."""

    op: int
    argument: int = 0
    literal: bytes = b""


def program_of(line: bytes, marks: Values) -> list[Operation]:
    """Return the program of lines, cut from one of marks."""
    literals, seen = split(line, marks)
    steps = [Operation(mark.op, mark.argument, literal) for mark, literal in zip(seen, literals, strict=False)]
    unseen = [mark for mark in marks.made if mark.op in CHECKS and mark not in seen]
    checks = [Operation(CHECKS[mark.op], mark.argument) for mark in unseen]
    return [*steps, *checks, Operation(sk.END, literal=literals[-1])]


class Templates:
    """The programs of all kinds of rows, made when they are needed. Threads may share it.

    Args:
        program: makes that of a kind, given its number. Raises NoTemplateError.
        kinds: how many there are.

    Attributes:
        begins: int32[kinds], where each kind's program begins, SLOW_PATH or NO_PROGRAM; that may be behind the end of
            what ``ops`` was when a thread took it.
        ops: int64[n, `kernels.OP_COLUMNS`], one program after the other.
        literals: bytes that they write.
    """

    def __init__(self, program: Callable[[int], list[Operation]], kinds: int) -> None:
        self.begins = np.zeros(kinds, np.int32)
        self.ops = np.zeros((1, sk.OP_COLUMNS), np.int64)  # no program begins at NO_PROGRAM
        self.literals = np.zeros(0, np.uint8)
        self._program = program
        self._lock = threading.Lock()

    def make(self, number: int) -> None:
        """Make the program of a kind, unless another thread has made it."""
        with self._lock:
            if self.begins[number] == sk.NO_PROGRAM:
                self.begins[number] = self._add(number)

    def _add(self, number: int) -> int:
        try:
            program = self._program(number)
        except NoTemplateError:
            return sk.SLOW_PATH
        begin, at = len(self.ops), len(self.literals)
        rows = []
        for step in program:
            rows.append((step.op, step.argument, at, len(step.literal)))
            at += len(step.literal)
        literals = b"".join(step.literal for step in program) + bytes(SLACK)
        self.literals = np.concatenate([self.literals, np.frombuffer(literals, np.uint8)])
        self.ops = np.concatenate([self.ops, np.array(rows, np.int64)])
        return begin
