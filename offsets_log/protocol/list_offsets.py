"""ListOffsets (2), versions 1–11: where the log of a partition begins and ends, and where a time is in it.

Version 7 may ask for the largest timestamp, 8 for the first offset on the broker's own disk, 9 for the last that is in
tiered storage; version 10 says how long to wait for that.

References: ``ListOffsetsRequest.json``, ``ListOffsetsResponse.json``.
"""

from offsets_log.messages.schema import INT8, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""Timestamps that ask for the high watermark, for the log's start, for the record with the largest timestamp, and for
the ends of what is on the broker's own disk and in tiered storage."""

_ASKED = Struct(
    (
        Field("partition_index", INT32),
        Field("current_leader_epoch", INT32, "4+", default=-1),
        Field("timestamp", INT64),
    )
)
_ANSWERED = Struct(
    (
        Field("partition_index", INT32),
        Field("error_code", INT16),
        Field("timestamp", INT64),
        Field("offset", INT64),
        Field("leader_epoch", INT32, "4+", default=-1),
    )
)

LIST_OFFSETS = Api(
    2,
    Message(
        "ListOffsetsRequest",
        (
            Field("replica_id", INT32),
            Field("isolation_level", INT8, "2+"),
            Field("topics", ArrayOf(Struct((Field("name", STRING), Field("partitions", ArrayOf(_ASKED)))))),
            Field("timeout_ms", INT32, "10+"),
        ),
        versions="1-11",
        flexible="6+",
    ),
    Message(
        "ListOffsetsResponse",
        (
            Field("throttle_time_ms", INT32, "2+"),
            Field("topics", ArrayOf(Struct((Field("name", STRING), Field("partitions", ArrayOf(_ANSWERED)))))),
        ),
        versions="1-11",
        flexible="6+",
    ),
)
