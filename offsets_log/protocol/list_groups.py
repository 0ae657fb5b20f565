"""ListGroups (16), versions 0–5: the groups of a broker.

Version 4 adds states, version 5 types of groups; an empty filter lets all pass.

References: ``ListGroupsRequest.json``, ``ListGroupsResponse.json``.
"""

from offsets_log.messages.schema import INT16, INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_GROUP = Struct(
    (
        Field("group_id", STRING),
        Field("protocol_type", STRING),
        Field("group_state", STRING, "4+"),
        Field("group_type", STRING, "5+"),
    )
)

LIST_GROUPS = Api(
    16,
    Message(
        "ListGroupsRequest",
        (Field("states_filter", ArrayOf(STRING), "4+"), Field("types_filter", ArrayOf(STRING), "5+")),
        versions="0-5",
        flexible="3+",
    ),
    Message(
        "ListGroupsResponse",
        (Field("throttle_time_ms", INT32, "1+"), Field("error_code", INT16), Field("groups", ArrayOf(_GROUP))),
        versions="0-5",
        flexible="3+",
    ),
)
