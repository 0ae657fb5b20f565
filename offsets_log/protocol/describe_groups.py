"""DescribeGroups (15), versions 0–6: classic groups with their members.

Version 4 adds static members' ids. Up to version 5 a group that there is not is a dead one without an error; from
version 6 on it is GROUP_ID_NOT_FOUND. Members' bytes are there only while the group is stable.

References: ``DescribeGroupsRequest.json``, ``DescribeGroupsResponse.json``.
"""

from offsets_log.messages.schema import BOOL, BYTES, INT16, INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_MEMBER = Struct(
    (
        Field("member_id", STRING),
        Field("group_instance_id", STRING, "4+", nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("member_metadata", BYTES),
        Field("member_assignment", BYTES),
    )
)
_GROUP = Struct(
    (
        Field("error_code", INT16),
        Field("error_message", STRING, "6+", nullable=True),
        Field("group_id", STRING),
        Field("group_state", STRING),
        Field("protocol_type", STRING),
        Field("protocol_data", STRING),
        Field("members", ArrayOf(_MEMBER)),
        Field("authorized_operations", INT32, "3+"),
    )
)

DESCRIBE_GROUPS = Api(
    15,
    Message(
        "DescribeGroupsRequest",
        (Field("groups", ArrayOf(STRING)), Field("include_authorized_operations", BOOL, "3+")),
        versions="0-6",
        flexible="5+",
    ),
    Message(
        "DescribeGroupsResponse",
        (Field("throttle_time_ms", INT32, "1+"), Field("groups", ArrayOf(_GROUP))),
        versions="0-6",
        flexible="5+",
    ),
)
