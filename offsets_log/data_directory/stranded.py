"""Committed offsets that lead to no record: of what the brokers' logs no longer or do not yet have, or never had.

References: ``ConsumerGroupCommand.java`` (``checkOffsetsRange``), ``OffsetFetchRequest.json``, ``data-dir.md`` §3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.metadata_log import MetadataReplay
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
        """Why there is no such partition; None where there is one, or nothing is known."""
        if self._metadata is None or self._by_name.get(topic) is None:
            return None if self._metadata is None else "the cluster has no such topic"
        count = len(self._by_name[topic].partitions)
        return None if partition in self._by_name[topic].partitions else f"the topic has {counted(count, 'partition')}"

    def topic_id(self, topic: str, partition: int) -> str | None:
        """The id of the topic that has this name now: by the metadata, or by the copy of the partition."""
        if topic in self._by_name:
            return str(self._by_name[topic].topic_id)
        found = self._logs.topic_id(topic, partition)
        return None if found is None else str(found)


def find_stranded(logs: CopiedLogs, topics: Topics, offsets: Iterable[OffsetAndMetadata]) -> Iterator[Stranded]:
    """Those of offsets that lead to no record (``DD-1`` … ``DD-4``), each for the first reason that holds."""
    for value in offsets:
        found = _of_topic(topics, value) or _of_range(logs, value)
        if found is not None:
            yield found


def _of_topic(topics: Topics, value: OffsetAndMetadata) -> Stranded | None:
    place = {"committed_offset": value.committed_offset}
    if (why := topics.absence(value.topic, value.partition)) is not None:
        return Stranded(ABSENT, value, why, place)
    now = topics.topic_id(value.topic, value.partition) if value.topic_id is not None else None
    if now is None or now == value.topic_id:
        return None
    words = f"committed for topic id {value.topic_id}, the topic's id is {now}"
    return Stranded(FORMER, value, words, place | {"topic_id": value.topic_id, "topic_id_now": now})


def _of_range(logs: CopiedLogs, value: OffsetAndMetadata) -> Stranded | None:
    ends = logs.ends_for(value.topic, value.partition, value.topic_id)
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
    """Offsets of one rule in one sentence: how many, and the first of them."""
    some = "; ".join(map(str, found[:NAMED])) + (f"; and {len(found) - NAMED} more" if len(found) > NAMED else "")
    return f"{counted(len(found), 'offset')} {WHAT[rule]}: {some}"
