"""Compile schema tables to programs that write the JSON of a key or a value: `json_kernels` runs them over its bytes.

They are made from the same rows as the codec and Kafka's JSON (`messages.schema`), so a field is declared once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.sinks import json_kernels as jk
from offsets_log.columnar.sinks.marks import NoTemplateError
from offsets_log.columnar.sinks.writers import SLACK
from offsets_log.columnar.wire.programs import SIZES
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import ArrayOf, Field, Message, Scalar, Struct, in_versions
from offsets_log.rows.tables import to_json

QUOTE = '"'
UNSIGNED = frozenset({"uint16"})
GROUP_METADATA = RECORD_TYPES[2].values
"""The tables of classic groups' values."""


@dataclass(slots=True)
class Programs:
    """Programs in one array, made when they are needed. Threads may share it.

    Args:
        quote: the bytes of a JSON quote in a line; None if unknown.
        beyond: names of structs that are left to the slow path where they are there.
        expanded: names of fields of classic groups that are known by their bytes.

    Attributes:
        steps: int64[n, `json_kernels.STEP_COLUMNS`].
        literals: bytes that they write.
    """

    quote: bytes | None
    beyond: frozenset[str] = frozenset()
    expanded: Sequence[str] = ()
    steps: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, jk.STEP_COLUMNS), np.int64))
    literals: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    _begins: dict[tuple[Message, int], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_of(self, message: Message, version: int) -> int:
        """Return where the program of a version of a message begins.

        Raises:
            NoTemplateError: it has none.
        """
        with self._lock:
            if (message, version) not in self._begins:
                expanded = self.expanded if message in GROUP_METADATA else ()
                is_flexible = message.is_flexible(version)
                if expanded and is_flexible:  # brokers write none, and its first fields would be read otherwise
                    raise NoTemplateError
                compiler = _Compiler(version, is_flexible, len(self.steps), self.beyond, expanded)
                compiler.struct(message.fields)
                compiler.emit(jk.END)
                self._begins[message, version] = self._add(compiler.steps)
            return self._begins[message, version]

    def _add(self, made: Sequence[_Step]) -> int:
        begin, at = len(self.steps), len(self.literals)
        rows, pieces = [], []
        for step in made:
            literal, other = self._in_line(step.literal), self._in_line(step.other)
            rows.append((step.op, step.argument, at, len(literal), at + len(literal), len(other), step.target))
            pieces += [literal, other]
            at += len(literal) + len(other)
        pieces.append(bytes(SLACK))
        self.literals = np.concatenate([self.literals, np.frombuffer(b"".join(pieces), np.uint8)])
        self.steps = np.concatenate([self.steps, np.array(rows, np.int64)])
        return begin

    def _in_line(self, json: str) -> bytes:
        return json.encode().replace(QUOTE.encode(), self.quote or b"")


@dataclass(slots=True)
class _Step:
    op: int
    argument: int
    literal: str
    other: str
    target: int = 0


class _Compiler:
    """Makes the steps of one message; literals wait until the next step writes them.

    Args:
        begin: the number of the first step.
        beyond, expanded: as of `Programs`.
    """

    def __init__(
        self, version: int, flexible: bool, begin: int, beyond: frozenset[str], expanded: Sequence[str]
    ) -> None:
        self.beyond, self.expanded = beyond, expanded
        self.version = version
        self.flexible = flexible
        self.begin = begin
        self.steps: list[_Step] = []
        self._literal = ""

    def emit(self, op: int, argument: int = 0, other: str = "") -> _Step:
        """Append a step."""
        self.steps.append(_Step(op, argument, self._literal, other))
        self._literal = ""
        return self.steps[-1]

    def _end(self, step: _Step) -> None:
        """Set where to continue after what a step began."""
        if self._literal:
            self.emit(jk.LITERAL)
        step.target = self.begin + len(self.steps)

    def struct(self, fields: tuple[Field, ...]) -> None:
        """Add an object; its tagged fields come after the others, as in the bytes."""
        rows = [row for row in fields if in_versions(self.version, row.versions)]
        plain = [row for row in rows if row.tag is None]
        tagged = sorted((row for row in rows if row.tag is not None), key=lambda row: row.tag or 0)
        if not plain or rows != plain + tagged or (tagged and not self.flexible):
            raise NoTemplateError
        for i, row in enumerate(plain):
            self._literal += f"{',' if i else '{'}{to_json(row.json_name)}:"
            self._field(row)
        if self.flexible:
            self._tags(tagged)
        self._literal += "}"

    def _tags(self, rows: Sequence[Field]) -> None:
        section = self.emit(jk.TAGS)
        for row in rows:
            self._literal = f",{to_json(row.json_name)}:"
            tag = self.emit(jk.TAG, row.tag or 0)
            self._field(row)
            if self._literal:
                self.emit(jk.LITERAL)
            self.emit(jk.TAG_END, other=self._default(row))
            self._end(tag)
        self._end(section)

    def _default(self, row: Field) -> str:
        """Return the JSON of a missing field."""
        value = Message("", (row,)).zeros(self.version)
        return to_json(Message("", (replace(row, tag=None),)).to_json(value, self.version)[row.json_name])

    def _field(self, row: Field) -> None:
        match row.type:
            case ArrayOf(element):
                array = self.emit(jk.ARRAY, self._flags(row, jk.IS_LONG))
                self._field(Field(row.name, element))
                self.emit(jk.NEXT)
                self._end(array)
            case Struct(fields) if row.nullable:
                beyond = jk.IS_BEYOND * (row.name in self.beyond)
                struct = self.emit(jk.STRUCT, jk.IS_TAGGED * (row.tag is not None) | beyond)
                self.struct(fields)
                self._end(struct)
            case Struct(fields):
                self.struct(fields)
            case Scalar(name):
                SCALARS.get(name, _Compiler._integer)(self, row, name)

    def _flags(self, row: Field, plain: int) -> int:
        """Return the flags of a field with a length; ``plain`` is used if the length is not compact."""
        return jk.NULLABLE * row.nullable | (jk.IS_COMPACT if self.flexible else plain)

    def _integer(self, row: Field, name: str) -> None:
        self.emit(jk.INTEGER, SIZES[name] | jk.IS_UNSIGNED * (name in UNSIGNED))

    def _string(self, row: Field, name: str) -> None:
        self.emit(jk.STRING, self._flags(row, 0), QUOTE)

    def _bytes(self, row: Field, name: str) -> None:
        if row.name in self.expanded:
            self.emit(jk.EMBEDDED, self.expanded.index(row.name), QUOTE)
        else:
            self.emit(jk.BYTES, self._flags(row, jk.IS_LONG), QUOTE)

    def _uuid(self, row: Field, name: str) -> None:
        self.emit(jk.UUID, other=QUOTE)


SCALARS: dict[str, Callable[[_Compiler, Field, str], Any]] = {
    "string": _Compiler._string,
    "bytes": _Compiler._bytes,
    "uuid": _Compiler._uuid,
}
"""Wire type → its step; all others are integers."""
