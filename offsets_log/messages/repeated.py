"""Decode records whose bytes a log repeats, such as keys, members and assignments, once while they are remembered."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from offsets_log.log_format.readers import NumberPlace, number_places
from offsets_log.messages.registry import INT16, RECORD_TYPES, CoordinatorRecord, decode_coordinator_record

MOST_BYTES_REMEMBERED = 1 << 24


@dataclass(slots=True)
class _Last:
    """The last record of a key.

    Attributes:
        cut: the value as its own numbers, and what is between them; None before that is asked.
    """

    record: CoordinatorRecord
    value: bytes | None
    cut: _Cut | None = None

    def numbers(self, value: bytes | None) -> dict[str, int] | None:
        """Return the own numbers of another value of the key; None if that differs in more than numbers."""
        known = self.value
        if value is None or known is None or len(value) != len(known):
            return None
        if self.cut is None:
            self.cut = _cut(known, _number_places(self.record, known))
        found = self.cut.code.unpack(value)
        return dict(zip(self.cut.names, found[1::2], strict=True)) if found[::2] == self.cut.between else None

    def again(self, value: bytes | None) -> CoordinatorRecord | None:
        """Return the record with another value of the key; None if that differs in more than numbers."""
        last = self.record
        if value == self.value:
            return last
        if (numbers := self.numbers(value)) is None or last.value is None:
            return None
        return CoordinatorRecord(
            record_type=last.record_type,
            key=last.key,
            value_version=last.value_version,
            value=last.value | numbers,
            layout=last.layout,
            key_trailing=last.key_trailing,
            value_trailing=last.value_trailing,
        )


class _Cut(NamedTuple):
    """A value cut at its own numbers.

    Attributes:
        code: reads what is before the first number, that number, what is before the next, and so on to the end.
        names: of the numbers.
        between: what is between them.
    """

    code: struct.Struct
    names: tuple[str, ...]
    between: tuple[bytes, ...]


def _cut(value: bytes, places: list[NumberPlace]) -> _Cut:
    form, begin = ">", 0
    for _, code, at in places:
        form += f"{at - begin}s{code.format[1:]}"
        begin = at + code.size
    made = struct.Struct(f"{form}{len(value) - begin}s")
    return _Cut(made, tuple(name for name, _, _ in places), made.unpack(value)[::2])


def _number_places(record: CoordinatorRecord, value: bytes) -> list[NumberPlace]:
    """Return where a value has numbers of its own; none where these may decide which of several layouts it has."""
    version = record.value_version
    assert version is not None
    layouts = list(RECORD_TYPES[record.record_type].layouts(version))
    return number_places(layouts[0].struct(version), value, INT16.size) if len(layouts) == 1 else []


class RepeatedRecords:
    """Decodes like `registry.decode_coordinator_record`.

    A value that differs from the last one of its key only in numbers of its own, such as a generation and a time, takes
    all else from that. Fields of records may be the same objects, and not to be changed.
    """

    def __init__(self, release: tuple[int, int] | None = None) -> None:
        self._release = release
        self._known: dict[bytes, _Last] = {}
        self._size_bytes = 0

    def numbers(self, key: bytes, value: bytes | None) -> dict[str, int] | None:
        """Return the own numbers of a value that says all else as the last one of its key that was decoded.

        None if it does not, or if that is not remembered.
        """
        last = self._known.get(key)
        return None if last is None else last.numbers(value)

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord:
        """Return what a record says. Raises as `registry.decode_coordinator_record`."""
        last = self._known.get(key)
        record = last.again(value) if last is not None else None
        if record is None:
            record = decode_coordinator_record(key, value, self._release)
            self._size_bytes += len(key) + len(value or b"")
            if self._size_bytes > MOST_BYTES_REMEMBERED:
                self._known.clear()
                self._size_bytes = len(key) + len(value or b"")
            self._known[key] = _Last(record, value)
        return record
