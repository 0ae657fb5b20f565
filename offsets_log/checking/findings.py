"""Describe a finding: one fact about a partition, how bad it is, where it is, and for which releases.

Severities: ``fails`` ends the load of some releases; ``skipped`` is skipped by some with a warning; ``damage`` is
something Kafka cannot have written; ``doubt`` loads but is not as it should be; ``note`` is normal and good to know.
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
"""Columns of both kinds of rows, ``load`` and ``finding``; columns that do not apply are null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fact about a partition.

    Attributes:
        releases: names of the releases it concerns, as the user gave them; empty for all.
        detail: numbers, by name.
    """

    severity: str
    rule: str | None
    problem: str
    place: FindingPlace = NOWHERE
    releases: tuple[str, ...] = ()
    detail: dict[str, Any] | None = None

    def row(self, offsets_partition: int | None) -> Row:
        """Return one row of `CHECK_COLUMNS`."""
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
