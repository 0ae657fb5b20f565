"""What a broker's storage throws while it opens or reads a log, as far as somebody catches it differently."""

from __future__ import annotations

from offsets_log.errors import OffsetsLogError


class BrokerError(OffsetsLogError):
    """The broker's code ends with an exception here; nobody catches it but where it says so below.

    Attributes:
        rule: the fact that tells, such as ``D-8``.
    """

    def __init__(self, problem: str, *, rule: str, file: str | None = None, position: int | None = None) -> None:
        super().__init__(problem, file=file, position=position)
        self.rule = rule


class InvalidBatchError(BrokerError):
    """``CorruptRecordException``, ``InvalidRecordException``: recovery cuts the segment here (``D-2``)."""


class InvalidOffsetError(BrokerError):
    """``InvalidOffsetException`` of an index: recovery of the log empties the segment."""


class OffsetOverflowError(BrokerError):
    """``LogSegmentOffsetOverflowException``: an offset that is too far from its segment's base (``D-8``)."""
