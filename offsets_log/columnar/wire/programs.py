"""Schema tables as column programs: small arrays of opcodes that `primitives.walk` runs over a record's bytes.

A program is made from the same rows as the construct codec (`messages.schema`), so a field is declared once. It
accepts what the codec accepts. Of the fields asked for it notes where their bytes stand.
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
TAGS = 9  # how many, then for each: tag, bytes, place or NO_PLACE
CLEAR = 10  # place: of a field that may not be there

# Flags of COMPACT; the first is that of the others too.
NULLABLE, IS_SHORT, IS_DISTINCT = 1, 2, 4
"""A distinct text that stands twice in a record makes it doubtful."""

NO_PLACE = -1

Name = TypeVar("Name")

SIZES = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}


class NoProgramError(Exception):
    """The message has a part that programs do not know: the codec reads it."""


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
        """Of a message that is numbers around one string that is not null: bytes before it and behind it."""
        code = self.code.tolist()
        while code[:1] == [CLEAR]:
            code = code[2:]
        match code:
            case [op, before, string, 0, other, behind, end] if [op, string, other, end] == [SKIP, STRING, SKIP, END]:
                return before, behind
            case _:
                return None


def compile_program(
    message: Message, version: int, *, noted: Sequence[str] = (), distinct: Sequence[str] = ()
) -> Program:
    """The program of one version.

    Args:
        noted: top-level fields whose bytes are asked for; those the version lacks get a place too, never filled.
        distinct: string fields inside an array that must not hold one text twice; null counts for none.

    Raises:
        NoProgramError: a nullable or tagged struct, a tagged field without a fixed size.
    """
    compiler = _Compiler(version, message.is_flexible(version), {name: i for i, name in enumerate(noted)}, distinct)
    always = {row.name for row in message.fields_of(version) if row.tag is None}
    for name in noted:
        if name not in always:
            compiler.emit(CLEAR, compiler.places[name])
    compiler.struct(message.fields, is_top=True)
    return Program(np.array([*compiler.code, END], np.int64), compiler.places)


class _Compiler:
    def __init__(self, version: int, flexible: bool, places: dict[str, int], distinct: Sequence[str]) -> None:
        self.version = version
        self.flexible = flexible
        self.places = places
        self.distinct = distinct
        self.code: list[int] = []
        self.last_skip: int | None = None

    def emit(self, *code: int) -> None:
        """Opcodes; neighbouring skips become one."""
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
            tagged = [self.tagged(row, is_top) for row in rows if row.tag is not None]
            self.emit(TAGS, len(tagged), *(number for entry in tagged for number in entry))

    def tagged(self, row: Field, is_top: bool) -> tuple[int, int, int]:
        size = SIZES.get(row.type.name) if isinstance(row.type, Scalar) else None
        if size is None or row.nullable or row.tag is None:
            raise NoProgramError(row.name)
        return row.tag, size, self.places.get(row.name, NO_PLACE) if is_top else NO_PLACE

    def field(self, row: Field) -> None:
        match row.type:
            case Scalar("string"):
                self.string(row)
            case Scalar("bytes"):
                self.emit(COMPACT if self.flexible else BYTES, int(row.nullable))
            case Scalar(name):
                self.emit(SKIP, SIZES[name])
            case ArrayOf(element):
                self.array(row, element)
            case Struct(fields) if not row.nullable:
                self.struct(fields, is_top=False)
            case _:
                raise NoProgramError(row.name)

    def string(self, row: Field) -> None:
        if row.name in self.distinct:
            self.emit(COMPACT, NULLABLE * row.nullable | IS_SHORT * (not self.flexible) | IS_DISTINCT)
        else:
            self.emit(COMPACT if self.flexible else STRING, int(row.nullable))

    def array(self, row: Field, element: Scalar | Struct) -> None:
        self.emit(COMPACT_ARRAY if self.flexible else ARRAY, int(row.nullable), 0)
        begin = len(self.code)
        self.last_skip = None
        self.field(Field(row.name, element))
        self.emit(NEXT)
        self.code[begin - 1] = len(self.code) - begin
        self.last_skip = None


def table_of(programs: Mapping[Name, Program]) -> tuple[a.Int64s, dict[Name, int]]:
    """Many programs in one array, and where each begins."""
    begins: dict[Name, int] = {}
    code: list[int] = []
    for name, program in programs.items():
        begins[name] = len(code)
        code += program.code.tolist()
    return np.array(code or [END], np.int64), begins


def desk_of(programs: Mapping[tuple[int, int | None], Program], *, seed: int) -> a.Int64s:
    """A desk (`arrays`) with programs on it.

    Args:
        programs: by record type and version, None for the key.
        seed: of the hashes, not to be foreseen.
    """
    code, begins = table_of(programs)
    desk = a.new_desk(code, seed=seed)
    for number in range(a.KEY_TYPES):
        desk[a.KEY_PROGRAMS + number] = begins[number, None]
        for version in range(a.VERSIONS):
            place = a.VALUE_PROGRAMS + number * a.VERSIONS + version
            desk[place] = begins.get((number, version), NO_PLACE)
    return desk
