"""ConsumerGroupDescribe (69), versions 0–1: groups of the consumer protocol (KIP-848) with their members.

Version 1 says whether a member is of the classic protocol. A group of another kind is GROUP_ID_NOT_FOUND; clients then
ask DescribeGroups.

References: ``ConsumerGroupDescribeRequest.json``, ``ConsumerGroupDescribeResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT8, INT16, INT32, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

DESCRIBE_REQUEST_FIELDS = (Field("group_ids", ArrayOf(STRING)), Field("include_authorized_operations", BOOL))
"""What a request about groups of any newer kind holds."""

ASSIGNMENT = Struct(
    (
        Field(
            "topic_partitions",
            ArrayOf(
                Struct((Field("topic_id", UUID), Field("topic_name", STRING), Field("partitions", ArrayOf(INT32))))
            ),
        ),
    )
)
_MEMBER = Struct(
    (
        Field("member_id", STRING),
        Field("instance_id", STRING, nullable=True),
        Field("rack_id", STRING, nullable=True),
        Field("member_epoch", INT32),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("subscribed_topic_names", ArrayOf(STRING)),
        Field("subscribed_topic_regex", STRING, nullable=True),
        Field("assignment", ASSIGNMENT),
        Field("target_assignment", ASSIGNMENT),
        Field("member_type", INT8, "1+", default=-1),
    )
)


def described_group(member: Struct) -> Struct:
    """Return the table of a described group: its own fields, and members with the fields of ``member``."""
    return Struct(
        (
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field("group_id", STRING),
            Field("group_state", STRING),
            Field("group_epoch", INT32),
            Field("assignment_epoch", INT32),
            Field("assignor_name", STRING),
            Field("members", ArrayOf(member)),
            Field("authorized_operations", INT32),
        )
    )


CONSUMER_GROUP_DESCRIBE = Api(
    69,
    Message("ConsumerGroupDescribeRequest", DESCRIBE_REQUEST_FIELDS, versions="0-1", flexible="0+"),
    Message(
        "ConsumerGroupDescribeResponse",
        (Field("throttle_time_ms", INT32), Field("groups", ArrayOf(described_group(_MEMBER)))),
        versions="0-1",
        flexible="0+",
    ),
)
