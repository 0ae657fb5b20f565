"""DescribeShareGroupOffsets (90), versions 0–1: where share groups are in their partitions.

Topics may be null, for all of a group. Version 1 adds the lag.

References: ``DescribeShareGroupOffsetsRequest.json``, ``DescribeShareGroupOffsetsResponse.json``.
"""

from offsets_log.messages.schema import INT16, INT32, INT64, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_ASKED = Struct((Field("topic_name", STRING), Field("partitions", ArrayOf(INT32))))
_ASKED_GROUP = Struct((Field("group_id", STRING), Field("topics", ArrayOf(_ASKED), nullable=True)))
_PARTITION = Struct(
    (
        Field("partition_index", INT32),
        Field("start_offset", INT64),
        Field("leader_epoch", INT32),
        Field("lag", INT64, "1+", default=-1),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    )
)
_TOPIC = Struct((Field("topic_name", STRING), Field("topic_id", UUID), Field("partitions", ArrayOf(_PARTITION))))
_GROUP = Struct(
    (
        Field("group_id", STRING),
        Field("topics", ArrayOf(_TOPIC)),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    )
)

DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    90,
    Message(
        "DescribeShareGroupOffsetsRequest",
        (Field("groups", ArrayOf(_ASKED_GROUP)),),
        versions="0-1",
        flexible="0+",
    ),
    Message(
        "DescribeShareGroupOffsetsResponse",
        (Field("throttle_time_ms", INT32), Field("groups", ArrayOf(_GROUP))),
        versions="0-1",
        flexible="0+",
    ),
)
