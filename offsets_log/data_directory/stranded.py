"""Committed offsets that lead to no record: of what the brokers' logs no longer or do not yet have, or never had.

References: ``ConsumerGroupCommand.java`` (``checkOffsetsRange``), ``OffsetFetchRequest.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from offsets_log.data_directory.cluster_image import TopicImage
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.metadata_log import MetadataReplay
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.words import counted

BEYOND, BELOW, ABSENT, FORMER = "DD-1", "DD-2", "DD-3", "DD-4"

WHAT = {
    BEYOND: "beyond the log end",
    BELOW: "below the log start, where the records are gone",
    ABSENT: "of partitions that the cluster does not have",
    FORMER: "of a former topic of the same name",
}
"""Rule → what is so of offsets, in words."""

NAMED = 3
"""Offsets that a sentence names."""


@dataclass(frozen=True, slots=True)
class Stranded:
    """One offset.

    Attributes:
        words: how it stands to its log, with numbers.
        detail: the same numbers, by name.
    """

    rule: str
    value: OffsetAndMetadata
    words: str
    detail: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.value.topic}-{self.value.partition} at {self.value.committed_offset}, {self.words}"


class Topics:
    """Which topics and partitions there are, as far as the cluster's metadata in the copy tells.

    Where it was not read whole it says nothing: what is absent there may be there all the same.
    """

    def __init__(self, logs: CopiedLogs, metadata: MetadataReplay | None) -> None:
        self._logs = logs
        is_whole = metadata is not None and not metadata.is_partial and not metadata.damages
        self._metadata = metadata if is_whole else None
        self._by_name = {topic.name: topic for topic in self._metadata.image.topics.values()} if self._metadata else {}

    def absence(self, topic: str, partition: int) -> str | None:
        """Return why there is no such partition; None where there is one, or nothing is known."""
        if self._metadata is None:
            return None
        found = self._by_name.get(topic)
        if found is not None and partition in found.partitions:
            return None
        if self._is_newer(self._copied_id(topic, partition)):
            return None
        return "the cluster has no such topic" if found is None else f"the topic has {_partitions(found)}"

    def partition_counts(self) -> dict[str, int]:
        """Return topic → number of partitions, by the metadata and by copies and told ends of which it is not told."""
        counts = {name: len(topic.partitions) for name, topic in self._by_name.items()}
        for topic, partition in self._logs.partitions():
            if self.absence(topic, partition) is None:
                counts[topic] = max(counts.get(topic, 0), partition + 1)
        return counts

    def topic_id(self, topic: str, partition: int) -> str | None:
        """Return the id of the topic that has this name now: by the metadata, or by the copy of the partition.

        The copy's counts where the metadata does not know it: then that is the older of the two.
        """
        found = self._by_name.get(topic)
        copied = self._copied_id(topic, partition)
        if found is None or self._is_newer(copied):
            return None if copied is None else str(copied)
        return str(found.topic_id)

    def is_tiered(self, topic: str) -> bool:
        """Whether the begin of a topic's logs is in remote storage by its configuration, and not on any disk."""
        configs = {} if self._metadata is None else self._metadata.image.configs.get(("topic", topic), {})
        return configs.get("remote.storage.enable") == "true"

    def made_after(self, value: OffsetAndMetadata) -> int | None:
        """Return when the topic that has this name now was made, if that was after an offset was committed."""
        found = self._by_name.get(value.topic)
        copied = self._copied_id(value.topic, value.partition)
        own = copied if found is None or self._is_newer(copied) else found.topic_id
        return self._logs.made_after(value.topic, value.partition, value.commit_timestamp_ms, own)

    def _copied_id(self, topic: str, partition: int) -> Uuid | None:
        return self._logs.topic_id(topic, partition)

    def _is_newer(self, copied: Uuid | None) -> bool:
        """Whether a copy is of a topic of which the metadata does not know yet."""
        if copied is None or self._metadata is None:
            return False
        return copied not in self._metadata.image.topics and copied not in self._metadata.former_topics


def _partitions(topic: TopicImage) -> str:
    return counted(len(topic.partitions), "partition")


def find_stranded(logs: CopiedLogs, topics: Topics, offsets: Iterable[OffsetAndMetadata]) -> Iterator[Stranded]:
    """Yield the offsets that lead to no record (``DD-1`` … ``DD-4``), each for the first reason that holds."""
    for value in offsets:
        found = _of_topic(topics, value) or _of_range(logs, value)
        if found is not None and not (found.rule == BELOW and topics.is_tiered(value.topic)):
            yield found


def _of_topic(topics: Topics, value: OffsetAndMetadata) -> Stranded | None:
    place = {"committed_offset": value.committed_offset}
    if (why := topics.absence(value.topic, value.partition)) is not None:
        return Stranded(ABSENT, value, why, place)
    if value.topic_id is None:
        made_ms = topics.made_after(value)
        if made_ms is None:
            return None
        words = f"committed {made_ms - value.commit_timestamp_ms} ms before the topic of that name was made"
        times = {"commit_timestamp_ms": value.commit_timestamp_ms, "topic_made_ms": made_ms}
        return Stranded(FORMER, value, words, place | times)
    now = topics.topic_id(value.topic, value.partition)
    if now is None or now == value.topic_id:
        return None
    words = f"committed for topic id {value.topic_id}, the topic's id is {now}"
    return Stranded(FORMER, value, words, place | {"topic_id": value.topic_id, "topic_id_now": now})


def _of_range(logs: CopiedLogs, value: OffsetAndMetadata) -> Stranded | None:
    ends = logs.ends_for(value.topic, value.partition, value.topic_id, value.commit_timestamp_ms)
    if ends is None:
        return None
    start, end, committed = ends.log_start_offset, ends.end_offset, value.committed_offset
    numbers = {"committed_offset": committed, "log_start_offset": start, "log_end_offset": end}
    if committed > end:
        return Stranded(BEYOND, value, f"the log ends at {end}: {committed - end} beyond", numbers)
    if committed < start:
        return Stranded(BELOW, value, f"the log starts at {start}: {start - committed} offsets are gone", numbers)
    return None


def in_words(rule: str, found: list[Stranded]) -> str:
    """Return offsets of one rule in one sentence: how many, and the first of them."""
    some = "; ".join(map(str, found[:NAMED])) + (f"; and {len(found) - NAMED} more" if len(found) > NAMED else "")
    return f"{counted(len(found), 'offset')} {WHAT[rule]}: {some}"
