"""Write one JSON object group → topic → partition → offset, for a short program with a client library.

It is meant for these calls, which take these forms:

- Karafka: karafka/karafka, lib/karafka/admin/consumer_groups.rb, ``ConsumerGroups#seek``: topic → partition → offset
  for one group; it carries no metadata.
- kafka-python 3: dpkp/kafka-python, kafka/admin/_groups.py, ``alter_group_offsets``: ``TopicPartition`` →
  ``OffsetAndMetadata`` for one group, metadata included, even with a NUL in it.
- confluent-kafka: confluentinc/confluent-kafka-python, src/confluent_kafka/admin/__init__.py,
  ``_check_alter_consumer_group_offsets_request``: refuses the empty group and negative offsets; its C strings
  (src/confluent_kafka/src/confluent_kafka.c) end at a NUL. Tested: 2.16.1 commits metadata with a NUL appended.

Leader epochs are left out: a consumer waits forever for an epoch that its cluster never had (`policy.LEADER_EPOCHS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.restore.names import refused_by_all
from offsets_log.restore.rows import Files, by_group, by_topic
from offsets_log.rows.tables import Row, to_json

NAME = "client-libraries"


def refusal(row: Row) -> str | None:
    """Return why one of the libraries cannot take this row; None if all can."""
    if row["group"] == "":
        return "confluent-kafka and librdkafka refuse the empty group"
    if row["committed_offset"] < 0:
        return "confluent-kafka refuses negative offsets; librdkafka has other meanings for them"
    if "\0" in row["group"]:
        return "librdkafka's strings end at the NUL in the group's name"
    return refused_by_all(row)


def files(rows: Sequence[Row]) -> Files:
    """Yield offsets.json."""
    yield f"{NAME}/offsets.json", _document(rows)


def _document(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the JSON document with one line for each group."""
    separator = "{\n"
    for group, own in by_group(rows):
        topics = {topic: {str(row["partition"]): _value(row) for row in some} for topic, some in by_topic(own)}
        yield f"{separator}{to_json(group)}:{to_json(topics)}"
        separator = ",\n"
    yield "{}\n" if separator == "{\n" else "\n}\n"


def _value(row: Row) -> Row:
    return {"offset": row["committed_offset"], "metadata": row["metadata"]}
