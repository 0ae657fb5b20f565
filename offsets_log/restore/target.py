"""A cluster to set offsets on: what restoring asks of it, and the values that it answers with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

NO_GROUP = "Dead"
"""The state of a group that does not exist."""

TopicPartition = tuple[str, int]


class Committed(NamedTuple):
    """An offset as a client commits and fetches it; ``leader_epoch`` is None if none was sent."""

    committed_offset: int
    leader_epoch: int | None
    metadata: str


Offsets = Mapping[TopicPartition, Committed]
"""What one group has, or is to have."""


class PartitionNow(NamedTuple):
    """A partition as the cluster has it; None for what it does not tell, as of a partition without a leader.

    Attributes:
        log_start_offset, log_end_offset: ListOffsets' earliest and latest; the end is the high watermark.
        leader_epoch: that of the present leader.
        topic_id: Kafka's text of it.
    """

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    leader_epoch: int | None = None
    topic_id: str | None = None


UNKNOWN = PartitionNow()


class Target(Protocol):
    """A cluster; its methods raise ClusterError, and ClusterLostError once it is of no use to ask on."""

    def cluster_id(self) -> str | None:
        """The cluster's own id; None before Kafka 0.10.1."""

    def group_states(self) -> dict[str, str]:
        """Group → state, of all groups there are."""

    def topics(self) -> dict[str, int]:
        """Topic → number of partitions, of all topics there are."""

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        """What these partitions, which exist, are now."""

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where each partition's records of a leader epoch, and of those before, end; without those not known."""

    def offsets(self, group: str) -> Offsets:
        """What a group has committed."""

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Commit for a group without members; what was refused → why."""

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Delete offsets of a group; what was refused → why. What is not there is no refusal."""
