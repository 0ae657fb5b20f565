"""``log-ends.json``: where the partitions of a live cluster began and ended, as it answered while a copy was pulled.

It stands in the place of the logs of users' topics, which such a copy does not hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.log_ends import LogEnds
from offsets_log.data_directory.texts import json_object, refused
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.segment import Buffer

LOG_ENDS = "log-ends.json"
VERSION = 1


@dataclass(slots=True)
class ToldEnds:
    """What a cluster answered.

    Attributes:
        spans: partition → its log's start, and its high watermark.
        topic_ids: topic → id, of those that have one.
        asked_ms: when.
    """

    spans: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    asked_ms: int | None = None

    def __bool__(self) -> bool:
        return bool(self.spans)

    def ends(self, topic: str, partition: int) -> LogEnds | None:
        """Return where a log begins and ends; None where that was not answered."""
        if (topic, partition) not in self.spans:
            return None
        start, end = self.spans[topic, partition]
        return LogEnds(log_start_offset=start, log_end_offset=end, high_watermark=end, is_clean=True)

    def add(self, other: ToldEnds) -> None:
        """Add what another file says; what this one says stays."""
        if other.asked_ms is not None:
            self.asked_ms = min(other.asked_ms, other.asked_ms if self.asked_ms is None else self.asked_ms)
        self.spans = other.spans | self.spans
        self.topic_ids = other.topic_ids | self.topic_ids

    def encode(self) -> bytes:
        """Return the file's contents."""
        topics: dict[str, list[list[int]]] = {topic: [] for topic in sorted(self.topic_ids)}
        for (topic, partition), span in sorted(self.spans.items()):
            topics.setdefault(topic, []).append([partition, *span])
        ids = {topic: str(topic_id) for topic, topic_id in self.topic_ids.items()}
        rows = [{"topic": name, "topic_id": ids.get(name), "partitions": some} for name, some in topics.items()]
        lines = ",\n".join(json.dumps(row) for row in rows)
        return f'{{"version": {VERSION}, "asked_ms": {json.dumps(self.asked_ms)}, "topics": [\n{lines}\n]}}\n'.encode()


def decode_told_ends(data: Buffer, file: str) -> ToldEnds:
    """Parse the file.

    Raises:
        CorruptFileError: it is not of that form.
    """
    found = json_object(data, file)
    if found.get("version") != VERSION:
        raise refused(f"the version is {found.get('version')!r}, not {VERSION}", file)
    told = ToldEnds()
    try:
        for row in found["topics"]:
            topic, topic_id = str(row["topic"]), row["topic_id"]
            if topic_id is not None:
                told.topic_ids[topic] = Uuid.from_text(topic_id)
            for partition, start, end in row["partitions"]:
                told.spans[topic, int(partition)] = int(start), int(end)
        told.asked_ms = None if found.get("asked_ms") is None else int(found["asked_ms"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refused(f"topics is no list of topics with their partitions: {error!r}", file) from None
    return told
