"""Errors that end a round of cleaning early."""

from __future__ import annotations

from offsets_log.errors import OffsetsLogError


class CleaningError(OffsetsLogError):
    """An exception of the cleaner: a broker leaves the partition alone until it is started again (``CL-7``)."""


class SegmentOverflowError(OffsetsLogError):
    """An offset is too far from its segment's base: the round is given up, to be tried again (``CL-39``).

    Attributes:
        base_offset: base offset of the segment that is to be split.
    """

    base_offset: int = 0
