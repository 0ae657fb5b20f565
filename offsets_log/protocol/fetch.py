"""Fetch (1), versions 4–12: record batches as they stand in the leader's segments.

From version 4 (Kafka 0.11) on batches of every magic come as they are. Version 12 is the last with names of topics. The
first batch of a partition comes whole, however large; the last may be cut off. The first may begin before the offset
that was asked for.

References: ``FetchRequest.json``, ``FetchResponse.json``.
"""

from offsets_log.messages.schema import BYTES, INT8, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

CONSUMER = -1
"""Replica id of those that are no replica: they read up to the high watermark."""
READ_UNCOMMITTED = 0
NO_SESSION, NO_SESSION_EPOCH = 0, -1

_ASKED = Struct(
    (
        Field("partition", INT32),
        Field("current_leader_epoch", INT32, "9+", default=-1),
        Field("fetch_offset", INT64),
        Field("last_fetched_epoch", INT32, "12+", default=-1),
        Field("log_start_offset", INT64, "5+", default=-1),
        Field("partition_max_bytes", INT32),
    )
)
_FORGOTTEN = Struct((Field("topic", STRING), Field("partitions", ArrayOf(INT32))))
NO_EPOCH = {"epoch": -1, "end_offset": -1}
_PARTITION = Struct(
    (
        Field("partition_index", INT32),
        Field("error_code", INT16),
        Field("high_watermark", INT64),
        Field("last_stable_offset", INT64, default=-1),
        Field("log_start_offset", INT64, "5+", default=-1),
        Field(
            "diverging_epoch",
            Struct((Field("epoch", INT32), Field("end_offset", INT64))),
            "12+",
            tag=0,
            default=NO_EPOCH,
        ),
        Field(
            "current_leader",
            Struct((Field("leader_id", INT32), Field("leader_epoch", INT32))),
            "12+",
            tag=1,
            default={"leader_id": -1, "leader_epoch": -1},
        ),
        Field(
            "snapshot_id",
            Struct((Field("end_offset", INT64), Field("epoch", INT32))),
            "12+",
            tag=2,
            default=NO_EPOCH,
        ),
        Field(
            "aborted_transactions",
            ArrayOf(Struct((Field("producer_id", INT64), Field("first_offset", INT64)))),
            nullable=True,
        ),
        Field("preferred_read_replica", INT32, "11+", default=-1),
        Field("records", BYTES, nullable=True),
    )
)

FETCH = Api(
    1,
    Message(
        "FetchRequest",
        (
            Field("cluster_id", STRING, "12+", nullable=True, tag=0),
            Field("replica_id", INT32),
            Field("max_wait_ms", INT32),
            Field("min_bytes", INT32),
            Field("max_bytes", INT32),
            Field("isolation_level", INT8),
            Field("session_id", INT32, "7+"),
            Field("session_epoch", INT32, "7+"),
            Field("topics", ArrayOf(Struct((Field("topic", STRING), Field("partitions", ArrayOf(_ASKED)))))),
            Field("forgotten_topics_data", ArrayOf(_FORGOTTEN), "7+"),
            Field("rack_id", STRING, "11+", default=""),
        ),
        versions="4-12",
        flexible="12+",
    ),
    Message(
        "FetchResponse",
        (
            Field("throttle_time_ms", INT32),
            Field("error_code", INT16, "7+", default=0),
            Field("session_id", INT32, "7+"),
            Field("responses", ArrayOf(Struct((Field("topic", STRING), Field("partitions", ArrayOf(_PARTITION)))))),
        ),
        versions="4-12",
        flexible="12+",
    ),
)
