"""The headers and the footer of Parquet files: Thrift's compact protocol, for the structs that a writer needs.

Source: ``parquet.thrift`` of Apache Parquet 2.10, whose names and numbers these are; ``thrift-compact-protocol.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

MAGIC = b"PAR1"

# ------------------------------------------------------------------------------------------------ structs


class Type(IntEnum):
    """Physical types."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    BYTE_ARRAY = 6


class Encoding(IntEnum):
    """How the values of a page are written."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8


class PageType(IntEnum):
    """What a page holds."""

    DATA_PAGE = 0
    DICTIONARY_PAGE = 2


REQUIRED, OPTIONAL = range(2)
UTF8 = 0
"""The converted type of texts, for readers that do not know logical types."""
ZSTD = 6


I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
"""Types by their numbers in the compact protocol; an enum is an I32, bytes are a TEXT too."""


@dataclass(frozen=True, slots=True)
class Many:
    """A list."""

    of: Kind


Struct: TypeAlias = "Mapping[str, tuple[int, Kind]]"
"""Name of a field → its id and its type, in order of the ids; a union is a struct of one field."""
Kind: TypeAlias = "int | Many | Struct"
"""The type of a field."""

STATISTICS: Struct = {"null_count": (3, I64), "max_value": (5, TEXT), "min_value": (6, TEXT)}
DATA_PAGE_HEADER: Struct = {
    "num_values": (1, I32),
    "encoding": (2, I32),
    "definition_level_encoding": (3, I32),
    "repetition_level_encoding": (4, I32),
}
DICTIONARY_PAGE_HEADER: Struct = {"num_values": (1, I32), "encoding": (2, I32)}
PAGE_HEADER: Struct = {
    "type": (1, I32),
    "uncompressed_page_size": (2, I32),
    "compressed_page_size": (3, I32),
    "data_page_header": (5, DATA_PAGE_HEADER),
    "dictionary_page_header": (7, DICTIONARY_PAGE_HEADER),
}
PAGE_ENCODING_STATS: Struct = {"page_type": (1, I32), "encoding": (2, I32), "count": (3, I32)}
COLUMN_META_DATA: Struct = {
    "type": (1, I32),
    "encodings": (2, Many(I32)),
    "path_in_schema": (3, Many(TEXT)),
    "codec": (4, I32),
    "num_values": (5, I64),
    "total_uncompressed_size": (6, I64),
    "total_compressed_size": (7, I64),
    "data_page_offset": (9, I64),
    "dictionary_page_offset": (11, I64),
    "statistics": (12, STATISTICS),
    "encoding_stats": (13, Many(PAGE_ENCODING_STATS)),
}
COLUMN_CHUNK: Struct = {"file_offset": (2, I64), "meta_data": (3, COLUMN_META_DATA)}
ROW_GROUP: Struct = {
    "columns": (1, Many(COLUMN_CHUNK)),
    "total_byte_size": (2, I64),
    "num_rows": (3, I64),
    "file_offset": (5, I64),
    "total_compressed_size": (6, I64),
}
SCHEMA_ELEMENT: Struct = {
    "type": (1, I32),
    "repetition_type": (3, I32),
    "name": (4, TEXT),
    "num_children": (5, I32),
    "converted_type": (6, I32),
    "logical_type": (10, {"STRING": (1, {})}),
}
FILE_META_DATA: Struct = {
    "version": (1, I32),
    "schema": (2, Many(SCHEMA_ELEMENT)),
    "num_rows": (3, I64),
    "row_groups": (4, Many(ROW_GROUP)),
    "key_value_metadata": (5, Many({"key": (1, TEXT), "value": (2, TEXT)})),
    "created_by": (6, TEXT),
    "column_orders": (7, Many({"TYPE_ORDER": (1, {})})),
}

# ---------------------------------------------------------------------------------------- compact protocol


def uvarint(number: int) -> bytes:
    """A number that is not negative, 7 bits a byte, least significant first."""
    made = []
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def zigzag(number: int) -> int:
    """A signed number of 64 bits as one that is small where it is near zero."""
    return number << 1 ^ number >> 63


def encode(kind: Kind, value: Any) -> bytes:
    """A value as it stands behind its header.

    Args:
        value: an integer, bytes or text, a list; of a struct the names of fields → values, None for fields that are
            not there.
    """
    if kind == TEXT:
        data = value.encode() if isinstance(value, str) else value
        return uvarint(len(data)) + data
    if isinstance(kind, int):
        return uvarint(zigzag(value))
    if isinstance(kind, Many):
        size = bytes([min(len(value), 15) << 4 | _code(kind.of)]) + (uvarint(len(value)) if len(value) >= 15 else b"")
        return b"".join([size, *(encode(kind.of, item) for item in value)])
    made = []
    last = 0
    for name, (number, field) in kind.items():
        if value.get(name) is not None:
            made += [bytes([number - last << 4 | _code(field)]), encode(field, value[name])]
            last = number
    return b"".join([*made, b"\0"])


def _code(kind: Kind) -> int:
    return kind if isinstance(kind, int) else LIST if isinstance(kind, Many) else STRUCT
