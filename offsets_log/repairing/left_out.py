"""The parts of a log that are left out, with reasons."""

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
"""Reasons for which something is left out."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A piece of a file, or a record of a batch.

    Attributes:
        damage: the error and the bytes.
        size_bytes: how much smaller the log becomes.
        records: how many of its records could be read.
    """

    reason: str
    damage: Damage
    size_bytes: int
    records: int = 0

    @property
    def is_told_as_damage(self) -> bool:
        """Whether it is reported as damage: not a torn tail, nor what is readable and only ends a load."""
        return self.reason not in (TORN, UNLOADABLE)


@dataclass(slots=True)
class Sum:
    """The sum of what is left out for one reason."""

    pieces: int = 0
    records: int = 0
    size_bytes: int = 0

    def add(self, left_out: LeftOut) -> None:
        """Add one piece."""
        self.pieces += 1
        self.records += left_out.records
        self.size_bytes += left_out.size_bytes
