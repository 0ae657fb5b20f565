"""What lies beside the offsets topic in data directories: other topics' logs, read when what they tell is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from offsets_log.data_directory.identity import topic_id_of
from offsets_log.disk.reader import DiskLogs, open_partitions
from offsets_log.disk.stored import StorePath
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.internal_topics import OFFSETS_TOPIC, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
    from offsets_log.data_directory.decisions import Outcomes
    from offsets_log.data_directory.metadata_copies import ClusterMetadata, Clusters
    from offsets_log.data_directory.share_groups import ShareStates
    from offsets_log.data_directory.stranded import Stranded, Topics
    from offsets_log.data_directory.transactions import TransactionStates
    from offsets_log.disk.packed_partitions import PackedPartition
    from offsets_log.errors import Damage
    from offsets_log.replay.partial import OffsetAndMetadata

STORED_AT_ONCE = 32
"""How many partitions of other topics are looked at in a store at once: each waits for the network."""


def _in_order(partitions: Sequence[CopiedPartition]) -> Callable[..., Iterator[Any]]:
    """Return what is like `map`, for what is read of partitions."""
    if any(isinstance(one, UserPartition) and isinstance(one.path, StorePath) for one in partitions):
        return ThreadPoolExecutor(STORED_AT_ONCE).map
    return map


_ABOVE = re.compile(r"(.*)[/!][^/!]+/[^/]*", re.DOTALL)
"""A segment's file: the data directory, or the archive that is one, and the partition in it."""


class Beside:
    """The data directories of opened logs.

    Attributes:
        logs: those of the offsets topic.
    """

    def __init__(self, opened: DiskLogs) -> None:
        self.logs = opened.logs
        self._opened = opened

    @property
    def topic_ids(self) -> dict[bytes, str]:
        """Topic id → name, from the folders of other topics beside the partitions, else from the cluster's metadata."""
        return self._opened.topic_ids

    @property
    def clusters(self) -> Clusters:
        """The clusters of the data directories, with what their metadata says."""
        return self._opened.clusters

    @property
    def metadata(self) -> ClusterMetadata | None:
        """The state in the cluster's metadata log in the data directories; None if there is none to trust."""
        return self.clusters.metadata

    @cached_property
    def offsets_topic_id(self) -> tuple[str, str] | None:
        """The offsets topic's id, and who tells it; None where nobody does.

        That is the cluster's metadata where it is here and read whole, else all folders that have an id if it is one.
        """
        metadata = self.clusters.sure_metadata
        topic = None if metadata is None else metadata.image.topic_named(OFFSETS_TOPIC)
        if topic is not None:
            return str(topic.topic_id), "the cluster's metadata has"
        told = {topic_id_of(log.beside) for log in self.logs} - {None}
        return (str(told.pop()), "the topic's other folders have") if len(told) == 1 else None

    @property
    def user_partitions(self) -> list[UserPartition | PackedPartition]:
        """The directories of partitions in the data directories, of all topics."""
        return self._opened.user_partitions

    @cached_property
    def copied_logs(self) -> CopiedLogs:
        """The logs of other topics beside the partitions, for their ends."""
        from offsets_log.data_directory.copied_logs import CopiedLogs
        from offsets_log.data_directory.metadata_copies import leader_copies

        partitions = self._opened.user_partitions
        leaders = leader_copies(partitions, lambda: self.metadata)
        return CopiedLogs(
            partitions, leaders, self._opened.told_ends, _in_order(partitions), made=self.clusters.topics_made
        )

    def iter_stranded(self, offsets: Iterable[OffsetAndMetadata]) -> Iterator[Stranded]:
        """Yield the given offsets that lead to no record in the other topics' logs."""
        from offsets_log.data_directory.stranded import find_stranded

        return find_stranded(self.copied_logs, self.topics, offsets)

    @cached_property
    def topics(self) -> Topics:
        """Which topics and partitions there are, as far as the cluster's metadata tells."""
        from offsets_log.data_directory.stranded import Topics

        return Topics(self.copied_logs, None if self.metadata is None else self.metadata.replay)

    @cached_property
    def transaction_states(self) -> TransactionStates:
        """The states of transactional ids in ``__transaction_state`` beside the partitions."""
        from offsets_log.data_directory.transactions import replay_transaction_log

        with open_partitions(self.copied_logs.chosen(TRANSACTION_STATE)) as logs:
            missing = [*self.copied_logs.short(TRANSACTION_STATE), *self.lacking(TRANSACTION_STATE)]
            still_homes = frozenset[str]() if missing else self._still_homes()
            return replay_transaction_log(logs, home_of=self.home_of, still_homes=still_homes, missing=missing)

    def outcomes(self, now_ms: int | None) -> Outcomes | None:
        """Return what tells outcomes of transactions; None where no ``__transaction_state`` is here or should be.

        Args:
            now_ms: as of `Outcomes`.
        """
        from offsets_log.data_directory.decisions import Outcomes

        if not self.has_or_lacks(TRANSACTION_STATE):
            return None
        return Outcomes(self.transaction_states, now_ms, self.home_of)

    @cached_property
    def share_states(self) -> ShareStates:
        """The states of share groups in ``__share_group_state`` beside the partitions."""
        from offsets_log.data_directory.share_groups import replay_share_group_log

        with open_partitions(self.copied_logs.chosen(SHARE_GROUP_STATE)) as logs:
            states = replay_share_group_log(logs)
        states.damages += [*self.copied_logs.short(SHARE_GROUP_STATE), *self.lacking(SHARE_GROUP_STATE)]
        return states

    def lacking(self, topic: str) -> list[Damage]:
        """Return the logs of a coordinators' topic that should be here and are not."""
        from offsets_log.data_directory.lacking import iter_lacking

        directories = [identity.directory for identity in self.clusters.identities]
        return list(iter_lacking(topic, directories, self.user_partitions, self.copied_logs))

    def has_or_lacks(self, topic: str) -> bool:
        """Whether logs of a coordinators' topic are here, or should be."""
        return bool(self.copied_logs.partition_count(topic) or self.lacking(topic))

    @property
    def has_all_partitions(self) -> bool:
        """Whether all offsets partitions are here, as far as their numbers and checkpoints tell."""
        partitions = {log.offsets_partition for log in self.logs}
        return not self._opened.absent and partitions == set(range(len(partitions)))

    def home_of(self, log: PartitionLog) -> str:
        """Return the broker whose copy a log is, by its ``meta.properties``; without one, the data directory."""
        match = _ABOVE.match(log.segments[0].file)
        directory = match[1] if match else ""
        return self._homes.get(directory, directory)

    @cached_property
    def _homes(self) -> dict[str, str]:
        """Map data directories to their brokers."""
        return {one.directory.shown_path.rstrip("/"): one.home for one in self.clusters.identities}

    def _still_homes(self) -> frozenset[str]:
        """Return the brokers that had stopped in order, by all of their directories."""
        from offsets_log.log_format.file_names import CLEAN_SHUTDOWN

        found = self.clusters.identities
        running = {one.home for one in found if CLEAN_SHUTDOWN not in one.directory.files}
        return frozenset(one.home for one in found) - running
