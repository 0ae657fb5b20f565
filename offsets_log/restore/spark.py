"""Write one JSON object for each group, for the option ``startingOffsets`` of Spark's Kafka source.

The form comes from apache/spark, connector/kafka-0-10-sql/src/main/scala/org/apache/spark/sql/kafka010/JsonUtils.scala,
``partitionOffsets``: topic → partition → offset. −1 stands for the end of a partition and −2 for its start. The source
needs every partition of the topics it subscribes to: partitions the group never committed have to be added by hand.
Spark keeps its own checkpoint: the option has an effect only for a query without one.
"""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.restore.names import file_name, refused_by_all
from offsets_log.restore.rows import Files, by_group, by_topic, offsets_by_partition
from offsets_log.rows.tables import Row, to_json

NAME = "spark"


def refusal(row: Row) -> str | None:
    """Return why the source cannot take this row; None if it can."""
    if row["committed_offset"] < 0:
        return "to Spark -1 means the end of the partition and -2 its start"
    return refused_by_all(row)


def files(rows: Sequence[Row]) -> Files:
    """Yield one file for each group."""
    for group, own in by_group(rows):
        topics = {topic: offsets_by_partition(some) for topic, some in by_topic(own)}
        yield f"{NAME}/{file_name(group)}.json", (to_json(topics), "\n")
