"""Define type 2: a classic group, written at each finished rebalance.

Value versions: 0 is written by 0.9 and 0.10.0, 1 from 0.10.1, 2 from 2.1, 3 from 2.3; 4 (flexible) is read but not
written by any release. The bytes ``subscription`` and ``assignment`` belong to the members' own protocol: see
`consumer_protocol`, `connect_protocol`.

References: ``group-coordinator/.../GroupMetadataKey.json``, ``GroupMetadataValue.json``.
"""

from offsets_log.messages.schema import BYTES, INT32, INT64, STRING, ArrayOf, Field, Message, Struct

GROUP_METADATA_KEY = Message("GroupMetadataKey", (Field("group", STRING),))

MEMBER = Struct(
    (
        Field("member_id", STRING),
        Field("group_instance_id", STRING, "3+", nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("rebalance_timeout", INT32, "1+", default=-1),
        Field("session_timeout", INT32),
        Field("subscription", BYTES),
        Field("assignment", BYTES),
    )
)

GROUP_METADATA_VALUE = Message(
    "GroupMetadataValue",
    (
        Field("protocol_type", STRING),
        Field("generation", INT32),
        Field("protocol", STRING, nullable=True),
        Field("leader", STRING, nullable=True),
        Field("current_state_timestamp", INT64, "2+", default=-1),
        Field("members", ArrayOf(MEMBER, is_repeated=True)),
    ),
    versions="0-4",
    flexible="4+",
)
