"""Decode values that a log repeats, such as assignments, once while they are remembered."""

from __future__ import annotations

from offsets_log.messages.registry import DecodedValue, RecordType, decode_value

MOST_BYTES_REMEMBERED = 1 << 24


class RepeatedValues:
    """Decodes like `registry.decode_value`. Fields of equal values are the same objects, and not to be changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, tuple[int, int] | None], DecodedValue] = {}
        self._size_bytes = 0

    def decode(self, row: RecordType, value: bytes, release: tuple[int, int] | None = None) -> DecodedValue:
        """Return what a value says. Raises as `registry.decode_value`."""
        what = row.number, value, release
        found = self._known.get(what)
        if found is None:
            found = decode_value(row, value, release)
            self._size_bytes += len(value)
            if self._size_bytes > MOST_BYTES_REMEMBERED:
                self._known.clear()
                self._size_bytes = len(value)
            self._known[what] = found
        return found
