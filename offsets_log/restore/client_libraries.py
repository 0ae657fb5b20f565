"""One JSON object group → topic → partition → offset, for a few lines of one's own with a client library.

The calls it is for, with the forms they take:

- Karafka: karafka/karafka, lib/karafka/admin/consumer_groups.rb, ``ConsumerGroups#seek``: topic → partition → offset
  for one group; it carries no metadata.
- kafka-python 3: dpkp/kafka-python, kafka/admin/_groups.py, ``alter_group_offsets``: ``TopicPartition`` →
  ``OffsetAndMetadata`` for one group, metadata carried, a NUL in it too.
- confluent-kafka: confluentinc/confluent-kafka-python, src/confluent_kafka/admin/__init__.py,
  ``_check_alter_consumer_group_offsets_request``: refuses the empty group and negative offsets; its C strings
  (src/confluent_kafka/src/confluent_kafka.c) end at a NUL. Tried: 2.16.1 commits metadata with a NUL behind it.

Leader epochs are left out: those of another cluster keep a consumer waiting (`policy.LEADER_EPOCHS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offsets_log.restore.names import refused_by_all
from offsets_log.restore.rows import Files, by_group, by_topic
from offsets_log.rows.tables import Row, to_json

NAME = "client-libraries"


def refusal(row: Row) -> str | None:
    """Why one of the libraries cannot be given this row."""
    if row["group"] == "":
        return "confluent-kafka and librdkafka refuse the empty group"
    if row["committed_offset"] < 0:
        return "confluent-kafka refuses negative offsets; librdkafka has other meanings for them"
    if "\0" in row["group"]:
        return "librdkafka's strings end at the NUL in the group's name"
    return refused_by_all(row)


def files(rows: Sequence[Row]) -> Files:
    """offsets.json."""
    yield f"{NAME}/offsets.json", _document(rows)


def _document(rows: Sequence[Row]) -> Iterator[str]:
    """One line a group."""
    separator = "{\n"
    for group, own in by_group(rows):
        topics = {topic: {str(row["partition"]): _value(row) for row in some} for topic, some in by_topic(own)}
        yield f"{separator}{to_json(group)}:{to_json(topics)}"
        separator = ",\n"
    yield "{}\n" if separator == "{\n" else "\n}\n"


def _value(row: Row) -> Row:
    return {"offset": row["committed_offset"], "metadata": row["metadata"]}
