"""Show one key, one value, or both, that somebody has as hexadecimal digits: without a log around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.log_format.control_record import marker_in
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import (
    OFFSET_COMMIT_TYPES,
    RECORD_TYPES,
    CoordinatorRecord,
    decode_coordinator_record,
    decode_key,
    decode_value,
)
from offsets_log.rows.tables import Row, control_json, decoded_columns

COLUMNS = ("record_type", "name", "key", "value_version", "value", "control")
OF_VALUES = ("value_version", "value")
BETWEEN = re.compile(r"0x|[\s:,]+", re.IGNORECASE)
"""What stands before and between digits, as programs print bytes."""
ESCAPED = re.compile(r"\\x([0-9a-f]{2})", re.IGNORECASE)


def bytes_of_hex(text: str) -> bytes:
    """Return bytes from digits, also as ``0x00``, ``00 01`` or ``00:01``, or with letters as in ``\\x00\\x05group``.

    Raises:
        InputError: it is neither.
    """
    try:
        if "\\x" in text:
            return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")
        return bytes.fromhex(BETWEEN.sub("", text))
    except ValueError:
        raise InputError(f"{text[:60]!r} is not hexadecimal, with two digits for each byte") from None


def rows_of(key: bytes | None, value: bytes | None) -> list[Row]:
    """Return what a key and a value say; None for one that is not given.

    A value alone does not tell its type: there is a row for each that fits all its bytes.

    Raises:
        OffsetsLogError: they cannot be decoded.
    """
    if key is None:
        found = [*_of_value(value or b"")]
        if not found:
            raise InputError("no record type has a value of these bytes; with its key more can be told")
        return found
    marker = marker_in(Record(offset=0, key=key, value=value))
    if marker is not None:
        return [{"record_type": None, "name": None, "control": control_json(marker)}]
    if value is not None:
        return [decoded_columns(decode_coordinator_record(key, value))]
    row, fields, trailing = decode_key(key)
    told = decoded_columns(CoordinatorRecord(record_type=row.number, key=fields, key_trailing=trailing))
    return [{name: told[name] for name in told if name not in OF_VALUES}]


def _of_value(value: bytes) -> Iterator[Row]:
    for row in RECORD_TYPES.values():
        if row.number == min(OFFSET_COMMIT_TYPES):
            continue  # the same values as of the other type of commits
        try:
            version, fields, layout, trailing = decode_value(row, value)
        except OffsetsLogError:
            continue
        if not trailing:
            made = CoordinatorRecord(record_type=row.number, key={}, value_version=version, value=fields, layout=layout)
            told = {"value_version": version, "value": made.value_json()}
            yield {"record_type": row.number, "name": row.name, **told}
