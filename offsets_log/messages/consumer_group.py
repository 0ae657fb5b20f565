"""Define types 3–8 and 16: consumer groups of the newer protocol, KIP-848.

All values have version 0. 3.7, the first preview, wrote types 4, 5, 7 and 8 with other fields under that same
number: those tables end in ``_3_7``.

References: ``group-coordinator/.../ConsumerGroup*.json`` of 4.3.0, 4.0.0 and 3.7.2.
"""

from offsets_log.messages.schema import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    ZEROS,
    ArrayOf,
    Field,
    Message,
    Struct,
)

SINCE_3_8 = ((3, 8), None)
ONLY_3_7 = (None, (3, 7))

GROUP_KEY = Message("GroupKey", (Field("group_id", STRING),))
GROUP_MEMBER_KEY = Message("GroupMemberKey", (Field("group_id", STRING), Field("member_id", STRING)))
GROUP_REGULAR_EXPRESSION_KEY = Message(
    "ConsumerGroupRegularExpressionKey", (Field("group_id", STRING), Field("regular_expression", STRING))
)

TOPIC_PARTITIONS = Struct((Field("topic_id", UUID), Field("partitions", ArrayOf(INT32))))

TOPIC_METADATA = Struct(
    (
        Field("topic_id", UUID),
        Field("topic_name", STRING),
        Field("num_partitions", INT32),
        Field(
            "partition_metadata",
            ArrayOf(Struct((Field("partition", INT32), Field("racks", ArrayOf(STRING))))),
        ),
    )
)

CONSUMER_GROUP_METADATA_VALUE = Message(
    "ConsumerGroupMetadataValue",
    (
        Field("epoch", INT32),
        Field("metadata_hash", INT64, tag=0, since=(4, 1), default=0),
    ),
    flexible="0+",
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE = Message(
    "ConsumerGroupPartitionMetadataValue",
    (Field("topics", ArrayOf(TOPIC_METADATA)),),
    flexible="0+",
    releases=SINCE_3_8,
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE_3_7 = Message(
    "ConsumerGroupPartitionMetadataValue",
    (
        Field("epoch", INT32),
        Field("topics", ArrayOf(TOPIC_METADATA)),
    ),
    flexible="0+",
    releases=ONLY_3_7,
)

CLASSIC_MEMBER_METADATA = Struct(
    (
        Field("session_timeout_ms", INT32),
        Field("supported_protocols", ArrayOf(Struct((Field("name", STRING), Field("metadata", BYTES))))),
    )
)

MEMBER_FIELDS = (
    Field("instance_id", STRING, nullable=True),
    Field("rack_id", STRING, nullable=True),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", ArrayOf(STRING)),
    Field("subscribed_topic_regex", STRING, nullable=True),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("server_assignor", STRING, nullable=True),
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE = Message(
    "ConsumerGroupMemberMetadataValue",
    (
        *MEMBER_FIELDS,
        Field("classic_member_metadata", CLASSIC_MEMBER_METADATA, nullable=True, tag=0, since=(3, 8), default=ZEROS),
    ),
    flexible="0+",
    releases=SINCE_3_8,
)

ASSIGNOR_3_7 = Struct(
    (
        Field("name", STRING),
        Field("minimum_version", INT16),
        Field("maximum_version", INT16),
        Field("reason", INT8),
        Field("version", INT16),
        Field("metadata", BYTES),
    )
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE_3_7 = Message(
    "ConsumerGroupMemberMetadataValue",
    (*MEMBER_FIELDS, Field("assignors", ArrayOf(ASSIGNOR_3_7))),
    flexible="0+",
    releases=ONLY_3_7,
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "ConsumerGroupTargetAssignmentMetadataValue",
    (
        Field("assignment_epoch", INT32),
        Field("assignment_timestamp", INT64, tag=0, since=(4, 3), default=0),
    ),
    flexible="0+",
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "ConsumerGroupTargetAssignmentMemberValue",
    (Field("topic_partitions", ArrayOf(TOPIC_PARTITIONS)),),
    flexible="0+",
    releases=SINCE_3_8,
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_3_7 = Message(
    "ConsumerGroupTargetAssignmentMemberValue",
    (
        Field("error", INT8),
        Field("topic_partitions", ArrayOf(TOPIC_PARTITIONS)),
        Field("metadata_version", INT16),
        Field("metadata_bytes", BYTES),
    ),
    flexible="0+",
    releases=ONLY_3_7,
)

CURRENT_TOPIC_PARTITIONS = Struct(
    (
        *TOPIC_PARTITIONS.fields,
        Field("assignment_epochs", ArrayOf(INT32), nullable=True, tag=0, since=(4, 3), default=()),
    )
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "ConsumerGroupCurrentMemberAssignmentValue",
    (
        Field("member_epoch", INT32),
        Field("previous_member_epoch", INT32),
        Field("state", INT8),
        Field("assigned_partitions", ArrayOf(CURRENT_TOPIC_PARTITIONS, is_repeated=True)),
        Field("partitions_pending_revocation", ArrayOf(CURRENT_TOPIC_PARTITIONS)),
    ),
    flexible="0+",
    releases=SINCE_3_8,
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_3_7 = Message(
    "ConsumerGroupCurrentMemberAssignmentValue",
    (
        Field("member_epoch", INT32),
        Field("previous_member_epoch", INT32),
        Field("target_member_epoch", INT32),
        Field("assigned_partitions", ArrayOf(TOPIC_PARTITIONS)),
        Field("partitions_pending_revocation", ArrayOf(TOPIC_PARTITIONS)),
        Field("partitions_pending_assignment", ArrayOf(TOPIC_PARTITIONS)),
        Field("error", INT8),
        Field("metadata_version", INT16),
        Field("metadata_bytes", BYTES),
    ),
    flexible="0+",
    releases=ONLY_3_7,
)

CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = Message(
    "ConsumerGroupRegularExpressionValue",
    (
        Field("topics", ArrayOf(STRING)),
        Field("version", INT64),
        Field("timestamp", INT64),
    ),
    flexible="0+",
)
