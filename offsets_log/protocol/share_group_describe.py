"""ShareGroupDescribe (77), version 1: share groups (KIP-932) with their members.

Version 0 was never stable.

References: ``ShareGroupDescribeRequest.json``, ``ShareGroupDescribeResponse.json``.
"""

from offsets_log.messages.schema import INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api
from offsets_log.protocol.consumer_group_describe import ASSIGNMENT, DESCRIBE_REQUEST_FIELDS, described_group

_MEMBER = Struct(
    (
        Field("member_id", STRING),
        Field("rack_id", STRING, nullable=True),
        Field("member_epoch", INT32),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("subscribed_topic_names", ArrayOf(STRING)),
        Field("assignment", ASSIGNMENT),
    )
)

SHARE_GROUP_DESCRIBE = Api(
    77,
    Message("ShareGroupDescribeRequest", DESCRIBE_REQUEST_FIELDS, versions="1", flexible="0+"),
    Message(
        "ShareGroupDescribeResponse",
        (Field("throttle_time_ms", INT32), Field("groups", ArrayOf(described_group(_MEMBER)))),
        versions="1",
        flexible="0+",
    ),
)
