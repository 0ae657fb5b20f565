"""Decode records whose bytes a log repeats, such as keys, members and assignments, once while they are remembered."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.log_format.readers import NumberPlace, number_places
from offsets_log.messages.registry import INT16, RECORD_TYPES, CoordinatorRecord, decode_coordinator_record

MOST_BYTES_REMEMBERED = 1 << 24


@dataclass(slots=True)
class _Last:
    """The last record of a key.

    Attributes:
        numbers: where its value has numbers; None before that is asked.
    """

    record: CoordinatorRecord
    value: bytes | None
    numbers: list[NumberPlace] | None = None

    def again(self, value: bytes | None) -> CoordinatorRecord | None:
        """Return the record with another value of the key; None if that differs in more than numbers."""
        known = self.value
        if value == known:
            return self.record
        if value is None or known is None or len(value) != len(known):
            return None
        if self.numbers is None:
            self.numbers = _number_places(self.record, known)
        begin = 0
        for _, code, at in self.numbers:
            if value[begin:at] != known[begin:at]:
                return None
            begin = at + code.size
        if value[begin:] != known[begin:]:
            return None
        last = self.record
        assert last.value is not None
        return CoordinatorRecord(
            record_type=last.record_type,
            key=last.key,
            value_version=last.value_version,
            value=last.value | {name: code.unpack_from(value, at)[0] for name, code, at in self.numbers},
            layout=last.layout,
            key_trailing=last.key_trailing,
            value_trailing=last.value_trailing,
        )


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
