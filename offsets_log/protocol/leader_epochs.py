"""OffsetForLeaderEpoch (23), versions 2–4: where the records of a leader epoch end in the leader's log.

From version 3 on a client that is no replica may ask, who says so by its replica id.

References: ``OffsetForLeaderEpochRequest.json``, ``OffsetForLeaderEpochResponse.json``.
"""

from offsets_log.messages.schema import INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_ASKED = Struct((Field("partition", INT32), Field("current_leader_epoch", INT32), Field("leader_epoch", INT32)))
_ANSWERED = Struct(
    (Field("error_code", INT16), Field("partition", INT32), Field("leader_epoch", INT32), Field("end_offset", INT64))
)

OFFSET_FOR_LEADER_EPOCH = Api(
    23,
    Message(
        "OffsetForLeaderEpochRequest",
        (
            Field("replica_id", INT32, "3+"),
            Field("topics", ArrayOf(Struct((Field("topic", STRING), Field("partitions", ArrayOf(_ASKED)))))),
        ),
        versions="2-4",
        flexible="4+",
    ),
    Message(
        "OffsetForLeaderEpochResponse",
        (
            Field("throttle_time_ms", INT32),
            Field("topics", ArrayOf(Struct((Field("topic", STRING), Field("partitions", ArrayOf(_ANSWERED)))))),
        ),
        versions="2-4",
        flexible="4+",
    ),
)
