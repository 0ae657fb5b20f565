"""Compile schema tables to column programs: small arrays of opcodes that `primitives.walk` runs over a record's bytes.

A program is made from the same rows as the construct codec (`messages.schema`), so a field is declared once. It accepts
what the codec accepts, and notes the positions of the fields asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.messages.schema import ArrayOf, Field, Message, Scalar, Struct, in_versions

END = 0
SKIP = 1  # bytes
NOTE = 2  # place: of the next field's bytes
STRING = 3  # nullable: behind an int16 length
BYTES = 4  # nullable: behind an int32 length
COMPACT = 5  # flags: a string or bytes behind a compact length, or with IS_SHORT an int16
ARRAY = 6  # nullable, opcodes of an element: behind an int32 count
COMPACT_ARRAY = 7  # the same behind a compact count
NEXT = 8  # the end of an array's element
TAGS = 9  # opcodes of the whole, how many, then for each: tag, where its opcodes are, place or NO_PLACE
CLEAR = 10  # place: of a field that may not be there
TAG_END = 11  # the end of a tagged field's data
PRESENT = 12  # flags, opcodes of a struct that may be null: behind an int8, or with IS_TAGGED a uvarint
NUMBERS = 13  # flags, bytes of an element: an array behind a compact count, or with IS_LONG an int32

# Flags of PRESENT and of NUMBERS, beside NULLABLE.
IS_TAGGED = IS_LONG = 2

# Flags of COMPACT; the first is that of the others too.
NULLABLE, IS_SHORT, IS_DISTINCT, IS_SUBSCRIPTION = 1, 2, 4, 8
"""What makes a record not plain: with IS_DISTINCT a text that occurs twice in it, with IS_SUBSCRIPTION, a flag of BYTES
too, a consumer's subscription that may end a load."""

NO_PLACE = -1
OTHER = -1
"""Instead of a value version: the other layout of version 0."""

Name = TypeVar("Name")

SIZES = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}


@dataclass(frozen=True, slots=True)
class Program:
    """The opcodes of one version of a message, and the places of the fields asked for.

    Attributes:
        code: int64 opcodes with their arguments.
        notes: name of a top-level field → its place in the notes that `primitives.walk` fills.
    """

    code: npt.NDArray[np.int64]
    notes: dict[str, int]

    @property
    def one_string(self) -> tuple[int, int] | None:
        """Number of bytes before and after the string, for a message of numbers around one string that is not null."""
        code = self.code.tolist()
        while code[:1] == [CLEAR]:
            code = code[2:]
        match code:
            case [op, before, string, 0, other, behind, end] if [op, string, other, end] == [SKIP, STRING, SKIP, END]:
                return before, behind
            case _:
                return None


def compile_program(
    message: Message,
    version: int,
    *,
    noted: Sequence[str] = (),
    checked: Mapping[str, int] = {},
) -> Program:
    """Compile the program of one version.

    Args:
        noted: top-level fields whose bytes are asked for; fields that the version lacks get a place too, which is never
            filled.
        checked: string and bytes fields inside an array → IS_DISTINCT, where nulls do not count, or IS_SUBSCRIPTION.
    """
    compiler = _Compiler(version, message.is_flexible(version), {name: i for i, name in enumerate(noted)}, checked)
    always = {row.name for row in message.fields_of(version) if row.tag is None}
    for name in noted:
        if name not in always:
            compiler.emit(CLEAR, compiler.places[name])
    compiler.struct(message.fields, is_top=True)
    return Program(np.array([*compiler.code, END], np.int64), compiler.places)


class _Compiler:
    def __init__(self, version: int, flexible: bool, places: dict[str, int], checked: Mapping[str, int]) -> None:
        self.version = version
        self.flexible = flexible
        self.places = places
        self.checked = checked
        self.code: list[int] = []
        self.last_skip: int | None = None

    def emit(self, *code: int) -> None:
        """Append opcodes; neighbouring skips are joined."""
        if code[0] == SKIP and self.last_skip is not None:
            self.code[self.last_skip] += code[1]
            return
        self.last_skip = len(self.code) + 1 if code[0] == SKIP else None
        self.code += code

    def struct(self, fields: tuple[Field, ...], is_top: bool) -> None:
        rows = [row for row in fields if in_versions(self.version, row.versions)]
        for row in rows:
            if row.tag is None:
                if is_top and row.name in self.places:
                    self.emit(NOTE, self.places[row.name])
                self.field(row)
        if self.flexible:
            self.tags([row for row in rows if row.tag is not None], is_top)

    def tags(self, rows: list[Field], is_top: bool) -> None:
        begin = len(self.code)
        self.emit(TAGS, 0, len(rows), *([0] * 3 * len(rows)))
        for i, row in enumerate(rows):
            assert row.tag is not None
            place = self.places.get(row.name, NO_PLACE) if is_top else NO_PLACE
            self.code[begin + 3 + 3 * i : begin + 6 + 3 * i] = row.tag, len(self.code) - begin, place
            self.field(row)
            self.emit(TAG_END)
        self.code[begin + 1] = len(self.code) - begin
        self.last_skip = None

    def field(self, row: Field) -> None:
        match row.type:
            case Scalar("string"):
                self.string(row)
            case Scalar("bytes"):
                self.emit(COMPACT if self.flexible else BYTES, row.nullable | self.checked.get(row.name, 0))
            case Scalar(name):
                self.emit(SKIP, SIZES[name])
            case ArrayOf(element):
                self.array(row, element)
            case Struct(fields) if row.nullable:
                self.present(fields, IS_TAGGED * (row.tag is not None))
            case Struct(fields):
                self.struct(fields, is_top=False)

    def present(self, fields: tuple[Field, ...], flags: int) -> None:
        self.emit(PRESENT, flags, 0)
        begin = len(self.code)
        self.struct(fields, is_top=False)
        self.code[begin - 1] = len(self.code) - begin
        self.last_skip = None

    def string(self, row: Field) -> None:
        if row.name in self.checked:
            self.emit(COMPACT, NULLABLE * row.nullable | IS_SHORT * (not self.flexible) | self.checked[row.name])
        else:
            self.emit(COMPACT if self.flexible else STRING, int(row.nullable))

    def array(self, row: Field, element: Scalar | Struct) -> None:
        if isinstance(element, Scalar) and element.name in SIZES:
            self.emit(NUMBERS, NULLABLE * row.nullable | IS_LONG * (not self.flexible), SIZES[element.name])
            return
        self.emit(COMPACT_ARRAY if self.flexible else ARRAY, int(row.nullable), 0)
        begin = len(self.code)
        self.last_skip = None
        self.field(Field(row.name, element))
        self.emit(NEXT)
        self.code[begin - 1] = len(self.code) - begin
        self.last_skip = None


def table_of(programs: Mapping[Name, Program]) -> tuple[a.Int64s, dict[Name, int]]:
    """Return many programs in one array, and where each begins."""
    begins: dict[Name, int] = {}
    code: list[int] = []
    for name, program in programs.items():
        begins[name] = len(code)
        code += program.code.tolist()
    return np.array(code or [END], np.int64), begins


def scan_state_of(programs: Mapping[tuple[int, int | None], Program], *, seed: int) -> a.ScanState:
    """Return a scan state (`arrays`) that contains programs.

    Args:
        programs: by record type and version; version None for the key, `OTHER` for another layout.
        seed: an unpredictable seed of the hashes.
    """
    code, begins = table_of(programs)
    scan_state = a.new_scan_state(code, seed=seed)
    for number in range(a.RECORD_TYPES):
        scan_state.key_programs[number] = begins.get((number, None), NO_PLACE)
        scan_state.other_programs[number] = begins.get((number, OTHER), NO_PLACE)
        for version in range(a.VERSIONS):
            scan_state.value_programs[number, version] = begins.get((number, version), NO_PLACE)
    return scan_state
