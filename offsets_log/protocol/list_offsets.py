"""ListOffsets (2), versions 1–9: where the log of a partition begins and ends.

References: ``ListOffsetsRequest.json``, ``ListOffsetsResponse.json``.
"""

from offsets_log.messages.schema import INT8, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

LATEST, EARLIEST = -1, -2
"""Timestamps that ask for the high watermark and for the log's start."""

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
        ),
        versions="1-9",
        flexible="6+",
    ),
    Message(
        "ListOffsetsResponse",
        (
            Field("throttle_time_ms", INT32, "2+"),
            Field("topics", ArrayOf(Struct((Field("name", STRING), Field("partitions", ArrayOf(_ANSWERED)))))),
        ),
        versions="1-9",
        flexible="6+",
    ),
)
