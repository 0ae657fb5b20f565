"""What is asked of committed offsets, and what is counted of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.rows.tables import Column, Row
from offsets_log.session.scope import BrokerOptions

if TYPE_CHECKING:
    from offsets_log.replay.partial import OffsetAndMetadata

UNSTABLE = Column("unstable", "boolean", "under an open transaction")
DOUBTFUL = Column("doubtful", "string", "why it may not be the latest; null if nothing says so")
NEEDS = frozenset({"committed_offset"})
"""Columns without which nothing can be answered."""


@dataclass(frozen=True, kw_only=True)
class OffsetsAsked:
    """What is asked of the offsets.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        orphans: whether offsets whose group does not exist are shown too.
        unstable: whether a column marks offsets under an open transaction.
        lag: whether rows have `LAG_COLUMNS`; None where the copy has the logs for it.
        now_ms: the time to which ages count; None for that of the newest record.
        decide: whether open transactions whose outcome is certain are ended.
        doubtful: whether the last column says which offsets may not be the latest.
        broker: whether the answer is that of a broker which starts with these files.
    """

    profile: str | None = None
    orphans: bool = False
    unstable: bool = False
    lag: bool | None = None
    now_ms: int | None = None
    decide: bool = False
    doubtful: bool = False
    broker: BrokerOptions = field(default_factory=BrokerOptions)


@dataclass(slots=True)
class Counts:
    """What was counted of the answer.

    Attributes:
        unknown: rows whose offset cannot be known.
        unstable: offsets under an open transaction.
        alone: keys that have an offset in an open transaction, and no row.
        partitions: offsets partitions that the rows are of.
    """

    rows: int = 0
    groups: int = 0
    unknown: int = 0
    unstable: int = 0
    alone: int = 0
    partitions: set[int | None] = field(default_factory=set)


def count_alone(pending: Iterable[OffsetAndMetadata], rows: Iterable[Row]) -> int:
    """Return how many keys have a pending offset and no row."""
    shown = {(row["group"], row["topic"], row["partition"]) for row in rows}
    return len({value.key for value in pending} - shown)
