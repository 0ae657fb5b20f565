"""Define a cluster to set offsets on: what restoring asks of it, and the values that it answers with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

NO_GROUP = "Dead"
"""The state reported for a group that does not exist."""

TopicPartition = tuple[str, int]


class Committed(NamedTuple):
    """An offset as a client commits and fetches it; ``leader_epoch`` is None if none was sent."""

    committed_offset: int
    leader_epoch: int | None
    metadata: str


Offsets = Mapping[TopicPartition, Committed]
"""The offsets one group has, or is to have."""


class PartitionNow(NamedTuple):
    """A partition as the cluster has it; None for what the cluster does not say, for example without a leader.

    Attributes:
        log_start_offset, log_end_offset: earliest and latest offset of ListOffsets; the latter is the high watermark.
        leader_epoch: epoch of the current leader.
        topic_id: topic id in Kafka's text form.
        is_tiered: whether earlier records may be in remote storage, of which nothing is known.
    """

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    leader_epoch: int | None = None
    topic_id: str | None = None
    is_tiered: bool = False


UNKNOWN = PartitionNow()


class GroupOffsets(Protocol):
    """What groups of a kind have; its methods raise ClusterError, and ClusterLostError once questions are useless."""

    def offsets(self, group: str) -> Offsets:
        """Return what a group has committed."""

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Commit offsets for a group without members; return what was refused → why."""

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Delete offsets of a group; return what was refused → why. Deleting an absent offset is not refused."""


class Target(GroupOffsets, Protocol):
    """A cluster, and what its groups have, other than share groups; its methods raise as those of `GroupOffsets`."""

    @property
    def share_groups(self) -> GroupOffsets:
        """Where share groups start."""

    def cluster_id(self) -> str | None:
        """Return the cluster's own id; None before Kafka 0.10.1."""

    def group_states(self) -> dict[str, str]:
        """Return group → state, for all groups."""

    def topics(self) -> dict[str, int]:
        """Return topic → number of partitions, for all topics."""

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        """Return the present state of partitions, which must exist."""

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where the records of a leader epoch and earlier ones end, per partition; unknown ends are left out."""
