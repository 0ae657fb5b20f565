"""A cluster to judge by a copy of it: its topics' logs, and its groups where its offsets topic is in the copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.stranded import Topics
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.profile import Profile
from offsets_log.restore.judging import Denied
from offsets_log.restore.target import Committed, Offsets, PartitionNow, TopicPartition


class CopiedOffsets:
    """What groups of a kind have in a copy.

    Attributes:
        by_group: group → its offsets.
    """

    def __init__(self, by_group: dict[str, dict[TopicPartition, Committed]]) -> None:
        self.by_group = by_group

    def offsets(self, group: str) -> Offsets:
        """Return what a group has committed, or where a share group starts."""
        return self.by_group.get(group, {})


class CopiedTarget(CopiedOffsets):
    """A `Judged` without a network; nobody's rights are known of it."""

    def __init__(
        self,
        cluster_id: str | None,
        topics: Topics,
        logs: CopiedLogs,
        states: Iterable[CoordinatorState],
        profile: Profile,
        share_starts: Iterable[tuple[str, TopicPartition, int]] = (),
    ) -> None:
        """Args:
        states: what clients are answered from each of its offsets partitions.
        share_starts: where share groups start: group, partition, offset.
        """
        self._cluster_id, self._topics, self._logs = cluster_id, topics, logs
        self._groups: dict[str, str] = {}
        super().__init__({})
        self.share_groups = CopiedOffsets({})
        for group, key, start in share_starts:
            self.share_groups.by_group.setdefault(group, {})[key] = Committed(start, None, "")
        for state in states:
            self._groups |= {group.group_id: group.state(profile) or "" for group in state.groups.values()}
            for value in state.iter_served():
                offset = Committed(value.committed_offset, value.leader_epoch, value.metadata)
                self.by_group.setdefault(value.group, {})[value.topic, value.partition] = offset

    def cluster_id(self) -> str | None:
        """Return the id in the copy's ``meta.properties``."""
        return self._cluster_id

    def group_states(self) -> dict[str, str]:
        """Return group → state, as far as the copy has the offsets topic."""
        return self._groups

    def topics(self) -> dict[str, int]:
        """Return topic → number of partitions."""
        return self._topics.partition_counts()

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        """Return where the logs begin and end; nothing of those that are not in the copy."""
        self._logs.find(wanted)
        return {key: self._partition(*key) for key in wanted}

    def _partition(self, topic: str, partition: int) -> PartitionNow:
        topic_id = self._topics.topic_id(topic, partition)
        ends = self._logs.ends_for(topic, partition, topic_id)
        if ends is None:
            return PartitionNow(topic_id=topic_id)
        is_tiered = self._topics.is_tiered(topic)
        return PartitionNow(ends.log_start_offset, ends.end_offset, topic_id=topic_id, is_tiered=is_tiered)

    def denied(self, groups: Sequence[str], topics: Sequence[str]) -> Denied:
        """Return that nothing is known to be denied."""
        return Denied()
