"""Define what a broker's storage throws while it opens or reads a log, as far as callers treat it differently."""

from __future__ import annotations

from offsets_log.errors import OffsetsLogError


class BrokerError(OffsetsLogError):
    """An exception in the broker's code; it is not caught unless a subclass says so.

    Attributes:
        rule: the fact that shows it, such as ``D-8``.
    """

    def __init__(self, problem: str, *, rule: str, file: str | None = None, position: int | None = None) -> None:
        super().__init__(problem, file=file, position=position)
        self.rule = rule


class InvalidBatchError(BrokerError):
    """``CorruptRecordException``, ``InvalidRecordException``: recovery cuts the segment here (``D-2``)."""


class InvalidOffsetError(BrokerError):
    """``InvalidOffsetException`` of an index: recovery of the log empties the segment."""


class OffsetOverflowError(BrokerError):
    """``LogSegmentOffsetOverflowException``: an offset is too far from its segment's base (``D-8``)."""
