"""A cluster that is none: it keeps what is committed, and fails when it is told to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.judging import Denied
from offsets_log.restore.target import Committed, Offsets, PartitionNow, TopicPartition

LOG = PartitionNow(log_start_offset=0, log_end_offset=100, leader_epoch=0, topic_id="here")


class FakeCluster:
    """Topic ``orders`` has three partitions, each with a log from 0 to 100 under leader epoch 0.

    Attributes:
        refuses: partition → why it takes no commit.
        lost_after: commits and deletions that it still takes; the next one is lost, with or without effect.
        loses: the effect of what is lost.
        share_groups: where share groups start; the same cluster unless it is given another.
    """

    def __init__(self, states: Mapping[str, str] = {}, **offsets: dict[TopicPartition, Committed]) -> None:
        self.id = "one"
        self.states = dict(states)
        self.groups: dict[str, dict[TopicPartition, Committed]] = dict(offsets)
        self.logs = {("orders", partition): LOG for partition in range(3)}
        self.ends_of_epochs: dict[tuple[TopicPartition, int], int] = {}
        self.refuses: dict[TopicPartition, str] = {}
        self.lost_after: int | None = None
        self.loses = True
        self.calls = 0
        self.share_groups = self

    def cluster_id(self) -> str:
        return self.id

    def group_states(self) -> dict[str, str]:
        return dict(self.states)

    def topics(self) -> dict[str, int]:
        return {"orders": 3}

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        return {key: self.logs[key] for key in wanted}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            key: self.ends_of_epochs[key, epoch] for key, epoch in epochs.items() if (key, epoch) in self.ends_of_epochs
        }

    def offsets(self, group: str) -> Offsets:
        if group == "secret":
            raise ClusterError("not allowed")
        return dict(self.groups.get(group, {}))

    def denied(self, groups: Sequence[str], topics: Sequence[str]) -> Denied:
        return Denied(groups={"secret", "locked"} & {*groups}, topics={"hidden"} & {*topics})

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        assert None not in offsets.values(), "what is to be deleted cannot be committed"
        if not offsets:
            return {}
        if group == "breaks":
            raise ClusterError("the connection broke")
        if not self._is_lost():
            taken = {key: value for key, value in offsets.items() if key not in self.refuses}
            if group == "forgets":
                taken = {key: value._replace(metadata="") for key, value in taken.items()}
            self.groups.setdefault(group, {}).update(taken)
        self._tell_if_lost()
        return {key: why for key, why in self.refuses.items() if key in offsets}

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        if not partitions:
            return {}
        if not self._is_lost():
            for key in partitions:
                self.groups.get(group, {}).pop(key, None)
        self._tell_if_lost()
        return {}

    def _is_lost(self) -> bool:
        self.calls += 1
        return self.lost_after is not None and self.calls > self.lost_after and self.loses

    def _tell_if_lost(self) -> None:
        if self.lost_after is not None and self.calls > self.lost_after:
            raise ClusterLostError("h:1: no answer for 60 s")

    def close(self) -> None:
        pass
