"""Describe a finding: one fact about a partition, how bad it is, where it is, and for which releases.

Severities: ``fails`` ends the load of some releases; ``skipped`` is skipped by some with a warning; ``damage`` is
something Kafka cannot have written; ``doubt`` loads but is not as it should be; ``note`` is normal and good to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offsets_log.checking.places import NOWHERE, FindingPlace
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row

SEVERITIES = FAILS, SKIPPED, DAMAGE, DOUBT, NOTE = "fails", "skipped", "damage", "doubt", "note"

VERDICT_COLUMNS = (
    Column("ok", "boolean", "load: whether the broker starts and the load ends without an error"),
    Column(
        "served",
        "string",
        "load: of `served_of`, the broker serves all, some (or other values) or nothing",
    ),
    Column("starts", "boolean", "load: false if a broker with these files does not start"),
    Column("ends", "boolean", "load: false if the load goes on for ever, and holds up those of other partitions"),
    Column(
        "log_end_offset", "bigint", "load: where the log ends after the broker's recovery; null if it does not start"
    ),
    Column(
        "shutdown",
        "string",
        "load: the kind of stop before, clean or unclean, that this row is about; null if it is about both",
    ),
    Column("rule", "string", "what `offsets-log explain` explains"),
    Column("problem", "string", "what is wrong, in words"),
    Column("file", "string", "where that is"),
    Column("position", "bigint", "byte position in that file"),
    Column("record_offset", "bigint", "offset of the record or batch"),
    Column("group", "string", "the group that it is about"),
    Column("detail", "json", "numbers of a finding, by name; of a load that ends, what clients get instead of offsets"),
    Column(
        "served_of",
        "string",
        "load: everything; or what is left, where some of the log is damaged or missing, so that even all is less than "
        "there was",
    ),
)
CHECK_COLUMNS = (
    Column("kind", "string", "load: a verdict on one partition and release; finding: a fact about a partition"),
    OFFSETS_PARTITION_COLUMN,
    Column(
        "severity",
        "string",
        "fails: ends loads; skipped: passed over by some releases, with a warning; damage: Kafka cannot have written "
        "it; doubt: loads, but is not as it should be; note: normal, and good to know; null for a load that is ok",
    ),
    Column("releases", "array<string>", "those that it is about; null for all"),
    *VERDICT_COLUMNS,
)
"""Columns of both kinds of rows; columns that do not apply are null."""
CHECK_NAMES = tuple(column.name for column in CHECK_COLUMNS)


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
        return dict.fromkeys(CHECK_NAMES) | {
            "kind": "finding",
            "offsets_partition": offsets_partition,
            "severity": self.severity,
            "releases": list(self.releases) or None,
            "rule": self.rule,
            "problem": self.problem,
            **self.place.cells(),
            "detail": self.detail,
        }
