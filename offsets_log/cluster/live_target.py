"""A live cluster that is to get translated offsets: which partitions it has, and where times are in them. Read only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from offsets_log.cluster.reader import ClusterReader, by_leader
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.errors import ClusterError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from offsets_log.translation.answers import Untold
from offsets_log.translation.by_time import Found

FETCH_BYTES = 1 << 16
"""A broker sends the first batch whole, however large."""


class LiveTarget:
    """A cluster, as it is when this is made. Raises ClusterLostError: no broker answers."""

    def __init__(self, reader: ClusterReader) -> None:
        self._reader = reader
        self._now = reader.metadata()

    @property
    def topics(self) -> Collection[str]:
        """All that are shown to this user."""
        return self._now.topics

    def partitions(self, topic: str) -> Collection[int]:
        """Return the partitions of a topic, none if there is no such one."""
        return self._now.topics[topic].leaders if topic in self._now.topics else ()

    def first_at(
        self, asked: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, dict[int, Found | Untold]]:
        """Return, for each partition and time, its first record of that time or a later one.

        Raises:
            ClusterLostError: no broker answers any more.
        """
        found: dict[TopicPartition, dict[int, Found | Untold]] = {key: {} for key in asked}
        left = {key: sorted(times) for key, times in asked.items() if times}
        while left:  # a request may ask for one time of a partition
            times = {key: some.pop() for key, some in left.items()}
            answers, refused = self._reader.list_times(times)
            there = {key: answer[0] for key, answer in answers.items() if answer[0] >= 0 and answer[1] == times[key]}
            kinds = self._are_producers(there)
            for key, time_ms in times.items():
                if key in answers:
                    found[key][time_ms] = Found(*answers[key], kinds.get(key))
                else:
                    found[key][time_ms] = Untold(f"the target answers nothing of it: {refused[key]}")
            left = {key: some for key, some in left.items() if some}
        return found

    def _are_producers(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, bool]:
        """Return whether producers gave the records at these offsets their times, where the record can be fetched."""
        found: dict[TopicPartition, bool] = {}
        leaders = by_leader(self._reader.metadata(), offsets) if offsets else {}
        for node_id, key in ((node_id, key) for node_id, keys in leaders.items() for key in keys):
            try:
                answers, _ = self._reader.fetch(node_id, {key: (-1, offsets[key])}, FETCH_BYTES, "")
            except (OSError, ClusterError):
                continue
            batch = next(iter_batches(answers[key]["records"] or b""), None) if key in answers else None
            if isinstance(batch, RecordBatch) and batch.base_offset <= offsets[key] <= batch.last_offset:
                found[key] = batch.timestamp_type == "create"
        return found
