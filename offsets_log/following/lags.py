"""Tell how far committed offsets are from the ends of their partitions while both go on, and when that is an alert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.following import alerts
from offsets_log.following.keeping import KeptPartition
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.rows.tables import Row

CLOCKS_DIFFER_MS = 60_000
"""A commit that is so much older than an answer was there before it, whatever the clocks of the machines."""


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """Where the logs of users' partitions ended at a time.

    Attributes:
        asked_ms: when that was looked at, or asked of a cluster.
    """

    logs: CopiedLogs
    asked_ms: int

    def end_of(self, value: OffsetAndMetadata) -> int | None:
        """Return the end of the partition that an offset is of; None where it is not known (``DD-4``)."""
        ends = self.logs.ends_for(value.topic, value.partition, value.topic_id, value.commit_timestamp_ms)
        return None if ends is None else ends.end_offset


@dataclass(slots=True)
class Lags:
    """The alerts about lags of one offsets partition.

    An end that is older than the commit proves nothing: the log may have grown before it. So an offset beyond the end
    counts only if the end was asked for after the commit.
    """

    rules: alerts.Rules
    shows_group: Callable[[str], bool]
    shows_topic: Callable[[str], bool]
    known: KnownEnds | None = None
    found: list[tuple[alerts.Identity, Row]] = field(default_factory=list)
    _suspects: dict[GroupTopicPartition, tuple[int, int]] = field(default_factory=dict)

    def saw(self, known: KnownEnds, kept: KeptPartition, now_ms: int) -> None:
        """Take what is known of the ends by now, and compare all offsets with it."""
        self.known = known
        if not self.rules.keys() & {alerts.BEYOND_END, alerts.LAG}:
            return
        suspects, self._suspects = self._suspects, {}
        served = [one for one in kept.served() if self.shows_group(one.group) and self.shows_topic(one.topic)]
        known.logs.find((one.topic, one.partition) for one in served)
        self.found = [
            (identity, row)
            for value in served
            for identity, row in self._of(value, suspects.get(value.key), known, kept.offsets_partition, now_ms)
        ]

    def _of(
        self,
        value: OffsetAndMetadata,
        suspected: tuple[int, int] | None,
        known: KnownEnds,
        offsets_partition: int | None,
        now_ms: int,
    ) -> Iterator[tuple[alerts.Identity, Row]]:
        end = known.end_of(value)
        if end is None:
            return
        lag = end - value.committed_offset
        if lag < 0 and alerts.BEYOND_END in self.rules:
            since_ms = now_ms if suspected is None or suspected[0] != value.record_offset else suspected[1]
            self._suspects[value.key] = value.record_offset, since_ms
            if known.asked_ms > min(since_ms, value.commit_timestamp_ms + CLOCKS_DIFFER_MS):
                what = f"the committed offset {value.committed_offset} is beyond the end of the log, {end}"
                yield self._alert(alerts.BEYOND_END, what, value, offsets_partition)
        if alerts.LAG in self.rules and lag >= self.rules[alerts.LAG]:
            what = f"the committed offset {value.committed_offset} is {lag} behind the end of the log, {end}"
            yield self._alert(alerts.LAG, what, value, offsets_partition)

    @staticmethod
    def _alert(
        rule: str, what: str, value: OffsetAndMetadata, offsets_partition: int | None
    ) -> tuple[alerts.Identity, Row]:
        row = alerts.alert_row(
            rule, what, group=value.group, topic=value.topic, partition=value.partition,
            offsets_partition=offsets_partition, record_offset=value.record_offset,
        )  # fmt: skip
        return (rule, value.key), row
