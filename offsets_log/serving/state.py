"""What is served: the memory of a coordinator at one moment, the topics it has offsets in, and where these end.

A broker may know less: of partitions whose load would end early, all that can be read is served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.protocol.error_codes import UNKNOWN_SERVER_ERROR
from offsets_log.replay.group import Group
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.tables import Row
from offsets_log.serving.log_reader import ServedLogs
from offsets_log.serving.offsets import CommittedOffsets

NO_NODE = 1
"""The id of the one broker where the copy does not tell whose it is."""
NO_CLUSTER = "offsets-log"


class Ends(NamedTuple):
    """Where the log of a partition begins and ends for consumers, and its leader epoch, −1 where unknown."""

    start_offset: int
    end_offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that offsets were committed in, that the copy has logs of, or that its metadata names.

    Attributes:
        partitions: numbers, rising; quick to ask for one.
        ends: where each partition ends, as far as that is known.
        configs: what was set for it, without defaults.
    """

    name: str
    partitions: Collection[int]
    ends: Mapping[int, Ends]
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The broker and the cluster that the copy is of.

    Attributes:
        directory: the data directory, to show.
    """

    node_id: int = NO_NODE
    cluster_id: str = NO_CLUSTER
    directory: str = ""


@dataclass(frozen=True, slots=True)
class OffsetsPartitions:
    """Which partitions of the offsets topic are in the copy.

    Attributes:
        count: how many it has; None where that is not known.
        present: the partitions that were read.
    """

    count: int | None = None
    present: Collection[int] = ()

    def absent(self) -> Iterator[int]:
        """Yield those that are not, rising."""
        return (number for number in range(self.count or 0) if number not in self.present)

    def lack(self, group_id: str) -> int | None:
        """Return the partition of a group if that is not in the copy, so that nobody can tell whether it exists."""
        number = partition_for(group_id, self.count) if self.count else None
        return None if number in self.present else number


Asked = tuple[bytes, bytes, object]
"""API key and version, the message, and for what address."""


class Answered:
    """Frames that were answered, by what was asked: the same question has the same answer.

    The oldest go where they are too many or too large together.
    """

    MOST_BYTES = 128 << 20
    BYTES_BESIDE = 500
    """So much room a small one takes beside its bytes."""

    def __init__(self) -> None:
        self._frames: dict[Asked, bytes] = {}
        self._bytes = 0

    def get(self, asked: Asked) -> bytes | None:
        """Return the frame; None if there was none, or it is gone."""
        return self._frames.get(asked)

    def keep(self, asked: Asked, frame: bytes) -> None:
        """Keep a frame."""
        self._frames[asked] = frame
        self._bytes += self._size(asked, frame)
        while self._bytes > self.MOST_BYTES:
            oldest = next(iter(self._frames))
            self._bytes -= self._size(oldest, self._frames.pop(oldest))

    def _size(self, asked: Asked, frame: bytes) -> int:
        return len(asked[1]) + len(frame) + self.BYTES_BESIDE


@dataclass(frozen=True)
class Served:
    """The state at one moment; nothing changes it.

    Attributes:
        groups: the groups that exist, by id, rising.
        pending: offsets of open transactions.
        topics: the topics by name, rising.
        offsets_partitions: the partitions that groups were read from.
        share_offsets: rows of `data_directory.share_offsets` of initialized partitions, by group.
        has_share_states: whether the copy tells where share groups are at that moment.
        group_configs: what was set for groups, by their ids, without defaults.
        names: topic id → name.
        logs: the copy's logs, for those who read records.
        answered: what was answered before.
    """

    profile: Profile
    groups: Mapping[str, Group]
    offsets: CommittedOffsets
    pending: frozenset[GroupTopicPartition]
    topics: Mapping[str, Topic]
    names: TopicNames
    cluster: Cluster = Cluster()
    offsets_partitions: OffsetsPartitions = OffsetsPartitions()
    share_offsets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    has_share_states: bool = False
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    logs: ServedLogs = field(default_factory=ServedLogs)
    answered: Answered = field(default_factory=Answered)

    def refusal(self, group_id: str) -> dict[str, Any] | None:
        """Return the error of a group that cannot be known; None where what the copy tells is all there is of it.

        It is none that clients ask again for, as no coordinator will come.
        """
        partition = None if group_id in self.groups else self.offsets_partitions.lack(group_id)
        if partition is None:
            return None
        message = f"Group {group_id} belongs to offsets partition {partition}, which is not in this copy."
        return {"error_code": UNKNOWN_SERVER_ERROR, "error_message": message}
