"""A finding: one thing to know about a partition, how bad it is, where it is, and for which releases.

Severities: ``fails`` ends the load of some releases; ``skipped`` is passed over by some with a warning; ``damage`` is
what Kafka cannot have written; ``doubt`` loads but is not as it should be; ``note`` is normal and good to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offsets_log.checking.places import NOWHERE, FindingPlace
from offsets_log.rows.tables import Row

SEVERITIES = FAILS, SKIPPED, DAMAGE, DOUBT, NOTE = "fails", "skipped", "damage", "doubt", "note"

VERDICT_COLUMNS = (
    "ok", "served", "starts", "ends", "log_end_offset", "shutdown", "rule", "problem", "file", "position",
    "record_offset", "group", "detail",
)  # fmt: skip
CHECK_COLUMNS = ("kind", "offsets_partition", "severity", "releases", *VERDICT_COLUMNS)
"""Of both kinds of rows, ``load`` and ``finding``; what does not apply is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to know about a partition.

    Attributes:
        releases: names of those it concerns, as they were asked for; empty for all.
        detail: numbers, by name.
    """

    severity: str
    rule: str | None
    problem: str
    place: FindingPlace = NOWHERE
    releases: tuple[str, ...] = ()
    detail: dict[str, Any] | None = None

    def row(self, offsets_partition: int | None) -> Row:
        """One row of `CHECK_COLUMNS`."""
        return dict.fromkeys(CHECK_COLUMNS) | {
            "kind": "finding",
            "offsets_partition": offsets_partition,
            "severity": self.severity,
            "releases": list(self.releases) or None,
            "rule": self.rule,
            "problem": self.problem,
            **self.place.cells(),
            "detail": self.detail,
        }


def counted(count: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
