"""The earlier of two moments that are compared, and what comparing needs."""

from __future__ import annotations

from dataclasses import dataclass

NEEDS = {
    "offsets": {"committed_offset"},
    "groups": {"state", "members"},
    "members": {"members"},
}
"""Table of differences → columns without which nothing can be compared."""


@dataclass(frozen=True, kw_only=True)
class Since:
    """The earlier of two moments of one log.

    Attributes:
        from_time: epoch ms.
        from_offset: offsets partition, None for any, and the record offset before which the earlier state is.
    """

    from_time: int | None = None
    from_offset: tuple[tuple[int | None, int], ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether there is one; else two copies are compared."""
        return self.from_time is not None or bool(self.from_offset)

    def needs(self, table: str) -> frozenset[str]:
        """Columns without which a table cannot be compared."""
        of_time = {"timestamp_ms"} if self.from_time is not None else set()
        of_offset = {"record_offset"} if self.from_offset else set()
        return frozenset(NEEDS[table] | of_time | of_offset)
