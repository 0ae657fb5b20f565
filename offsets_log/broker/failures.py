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


ENDS_START, TAKES_OFFLINE, SERVES_NOTHING = "ends the start", "takes the directory offline", "serves nothing"
"""What comes of a `StartError`. Where the directory is the broker's only one, the second ends the start too."""


class StartError(BrokerError):
    """Why a broker serves nothing of a partition, by what it meets at its start before it opens the log (``ST-1`` …).

    Attributes:
        effect: `ENDS_START`, `TAKES_OFFLINE`, or `SERVES_NOTHING` where the broker starts all the same.
        do: what to do about it.
    """

    def __init__(self, problem: str, *, rule: str, file: str, do: str, effect: str = ENDS_START) -> None:
        super().__init__(problem, rule=rule, file=file)
        self.effect, self.do = effect, do

    @property
    def starts(self) -> bool:
        """Whether the broker starts, and serves an empty partition in place of this one, or none."""
        return self.effect == SERVES_NOTHING

    def with_effect(self, effect: str) -> StartError:
        """Return the same with another effect."""
        return StartError(self.problem, rule=self.rule, file=self.file or "", do=self.do, effect=effect)
