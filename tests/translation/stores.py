"""A store of arrays in memory."""

from __future__ import annotations

from offsets_log.columnar import arrays as a


class InMemory(list[a.Int64s]):
    """See `translation.alignment.Store`."""

    def read(self, number: int) -> a.Int64s:
        return self[number].copy()

    def write(self, number: int, array: a.Int64s) -> None:
        self[number] = array
