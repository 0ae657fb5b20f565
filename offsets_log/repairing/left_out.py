"""What does not stay of a log, and why."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.errors import Damage

NO_BATCH = "no batch"
CHECKSUM = "wrong checksum"
UNREADABLE = "records that cannot be read"
OVERLAP = "offsets that were read already"
MISPLACED = "offsets out of place"
TORN = "torn tail"
MARKER = "a marker that cannot be read"
REFUSED = "refused at a broker's start"
UNLOADABLE = "ends the load"
"""Reasons."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A piece of a file, or a record of a batch.

    Attributes:
        damage: what is wrong, and the bytes.
        size_bytes: by which the log becomes smaller.
        records: that could be read.
    """

    reason: str
    damage: Damage
    size_bytes: int
    records: int = 0

    @property
    def is_told_as_damage(self) -> bool:
        """Whether it could not be read; a torn tail, and what only a load stumbles over, could."""
        return self.reason not in (TORN, UNLOADABLE)


@dataclass(slots=True)
class Sum:
    """Of what is left out for one reason."""

    pieces: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, left_out: LeftOut) -> None:
        """One more piece."""
        self.pieces += 1
        self.records += left_out.records
        self.size_bytes += left_out.size_bytes
