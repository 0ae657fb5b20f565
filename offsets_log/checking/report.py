"""Combine the checks of all partitions to one document or to rows: what `check` answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from offsets_log.checking.findings import DAMAGE, DOUBT, Finding
from offsets_log.checking.layout import missing_finding
from offsets_log.checking.loads import verdict_in
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.log_format.completeness import Missing
from offsets_log.replay.partition_count import PartitionCount, count_of_groups, doubt_in_words
from offsets_log.replay.releases import Release
from offsets_log.rows.tables import Row, partition_name


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in all partitions.

    Attributes:
        loads, findings: rows of `CHECK_COLUMNS`, by partition.
    """

    releases: tuple[Release, ...]
    partitions: PartitionCount
    loads: list[Row]
    findings: list[Row]

    def document(self) -> Row:
        """Return the whole answer."""
        return {
            "releases": {release.name: release.rules for release in self.releases},
            "partitions": {"count": self.partitions.number, "source": self.partitions.source},
            "loads": self._verdicts(),
            "findings": self.findings,
        }

    def _verdicts(self) -> Row:
        """Return offsets partition → release → verdict; a different one after an unclean shutdown is nested in it."""
        verdicts: dict[str, Row] = {}
        for row in self.loads:
            of_partition = verdicts.setdefault(partition_name(row["offsets_partition"]), {})
            name, verdict = row["releases"][0], verdict_in(row)
            if name in of_partition:
                of_partition[name]["after_unclean_shutdown"] = verdict
            else:
                of_partition[name] = verdict
        return verdicts

    def failing(self, releases: Collection[str]) -> list[Row]:
        """Return loads that fail on one of these releases."""
        return [row for row in self.loads if not row["ok"] and row["releases"][0] in releases]

    def wrong(self, releases: Collection[str]) -> list[Row]:
        """Return findings of damage or doubt that concern one of these releases."""
        return [
            row
            for row in self.findings
            if row["severity"] in (DAMAGE, DOUBT) and set(releases).intersection(row["releases"] or releases)
        ]


MISSING, TAIL = "D-10", "records:T6"
"""The rules of findings of missing log, and of what follows the last whole batch of a file."""
EVERYTHING, WHAT_IS_LEFT = "everything", "what is left"
"""What a load may serve."""


def is_unexplained(finding: Row) -> bool:
    """Whether a finding is of missing log, and nothing explains that."""
    return finding["rule"] == MISSING and finding["detail"]["explained_by"] is None


def _is_lost(finding: Row) -> bool:
    """Whether something that was in the log cannot be read."""
    is_torn = finding["rule"] == TAIL and finding["severity"] == DOUBT
    return finding["severity"] == DAMAGE or is_torn or is_unexplained(finding)


STARTS = "ST-"
"""How rules of a broker's start begin."""


def _joined(findings: Iterable[Row]) -> list[Row]:
    """Return findings with those of several partitions about one file, which a broker's start meets once, as one."""
    joined: dict[Hashable, list[Row]] = {}
    for place, row in enumerate(findings):
        is_of_start = str(row["rule"]).startswith(STARTS)
        about = (row["rule"], row["file"], row["problem"], tuple(row["releases"] or ())) if is_of_start else place
        joined.setdefault(about, []).append(row)
    return [
        rows[0]
        | {"offsets_partition": None, "detail": {"offsets_partitions": [row["offsets_partition"] for row in rows]}}
        if len(rows) > 1
        else rows[0]
        for rows in joined.values()
    ]


def report(
    checks: Sequence[PartitionCheck],
    releases: tuple[Release, ...],
    *,
    partitions: PartitionCount | None = None,
    now_ms: int | None = None,
    outcomes: Outcomes | None = None,
    keep_group: Callable[[str], bool] = lambda group: True,
    absent: Sequence[Missing] = (),
    more: Iterable[Row] = (),
) -> Report:
    """Combine what was read.

    Args:
        partitions: how many partitions `__consumer_offsets` has; None for what the groups suggest.
        now_ms: the time at which ages of open transactions are taken, in epoch milliseconds; None for the newest
            record's.
        outcomes: tells what becomes of open transactions; None if nothing does.
        keep_group: whether findings of a group are shown.
        absent: partitions of which no segment was found.
        more: findings of others, as rows.
    """
    places = [(check.log.offsets_partition, check.groups) for check in checks]
    count = partitions or count_of_groups(places)
    words = doubt_in_words(count, places) if count.source == "contradicted" else ""
    if now_ms is None:
        now_ms = max((check.newest_ms for check in checks), default=-1)
    findings = [
        *_joined(
            finding.row(check.log.offsets_partition)
            for check in checks
            for finding in check.findings(count, now_ms, outcomes)
            if finding.place.group is None or keep_group(finding.place.group)
        ),
        *([Finding(severity=DOUBT, rule="records:H1", problem=words).row(None)] if words else []),
        *(missing_finding(missing).row(missing.offsets_partition) for missing in absent),
        *(row for row in more if row["group"] is None or keep_group(row["group"])),
    ]
    lacking = {row["offsets_partition"] for row in findings if _is_lost(row)}
    loads = [load.row(check.log.offsets_partition) for check in checks for load in check.loads]
    for load in loads:
        load["served_of"] = WHAT_IS_LEFT if load["offsets_partition"] in lacking else EVERYTHING
    return Report(releases, count, loads, findings)
