"""Define types 9–15: share groups, KIP-932.

All values have version 0. 4.1 changed types 11 and 15 under that same number and dropped type 9, which 3.9 and 4.0
wrote with different fields. Share-partition offsets are not here: they are kept in ``__share_group_state``.

References: ``group-coordinator/.../ShareGroup*.json`` of 4.3.0, 4.0.0 and 3.9.1.
"""

from offsets_log.messages.consumer_group import TOPIC_METADATA, TOPIC_PARTITIONS
from offsets_log.messages.schema import INT8, INT32, INT64, STRING, UUID, ArrayOf, Field, Message, Struct

SINCE_4_1 = ((4, 1), None)
UNTIL_4_0 = (None, (4, 0))

NAMED_TOPIC = Struct((Field("topic_id", UUID), Field("topic_name", STRING)))
NAMED_TOPIC_PARTITIONS = Struct((*NAMED_TOPIC.fields, Field("partitions", ArrayOf(INT32))))

SHARE_GROUP_PARTITION_METADATA_VALUE_4_0 = Message(
    "ShareGroupPartitionMetadataValue",
    (Field("topics", ArrayOf(TOPIC_METADATA)),),
    flexible="0+",
    releases=((4, 0), (4, 0)),
)

STATE_PARTITION_FIELDS_4_0 = (
    Field("initialized_topics", ArrayOf(NAMED_TOPIC_PARTITIONS)),
    Field("deleting_topics", ArrayOf(NAMED_TOPIC)),
)

SHARE_GROUP_PARTITION_METADATA_VALUE_3_9 = Message(
    "ShareGroupPartitionMetadataValue",
    STATE_PARTITION_FIELDS_4_0,
    flexible="0+",
    releases=(None, (3, 9)),
)

SHARE_GROUP_MEMBER_METADATA_VALUE = Message(
    "ShareGroupMemberMetadataValue",
    (
        Field("rack_id", STRING, nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("subscribed_topic_names", ArrayOf(STRING)),
    ),
    flexible="0+",
)

SHARE_GROUP_METADATA_VALUE = Message(
    "ShareGroupMetadataValue",
    (
        Field("epoch", INT32),
        Field("metadata_hash", INT64),
    ),
    flexible="0+",
    releases=SINCE_4_1,
)

SHARE_GROUP_METADATA_VALUE_4_0 = Message(
    "ShareGroupMetadataValue",
    (Field("epoch", INT32),),
    flexible="0+",
    releases=UNTIL_4_0,
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "ShareGroupTargetAssignmentMetadataValue",
    (
        Field("assignment_epoch", INT32),
        Field("assignment_timestamp", INT64, tag=0, since=(4, 3), default=0),
    ),
    flexible="0+",
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "ShareGroupTargetAssignmentMemberValue",
    (Field("topic_partitions", ArrayOf(TOPIC_PARTITIONS)),),
    flexible="0+",
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "ShareGroupCurrentMemberAssignmentValue",
    (
        Field("member_epoch", INT32),
        Field("previous_member_epoch", INT32),
        Field("state", INT8),
        Field("assigned_partitions", ArrayOf(TOPIC_PARTITIONS, is_repeated=True)),
    ),
    flexible="0+",
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = Message(
    "ShareGroupStatePartitionMetadataValue",
    (
        Field("initializing_topics", ArrayOf(NAMED_TOPIC_PARTITIONS)),
        Field("initialized_topics", ArrayOf(NAMED_TOPIC_PARTITIONS)),
        Field("deleting_topics", ArrayOf(NAMED_TOPIC)),
    ),
    flexible="0+",
    releases=SINCE_4_1,
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_4_0 = Message(
    "ShareGroupStatePartitionMetadataValue",
    STATE_PARTITION_FIELDS_4_0,
    flexible="0+",
    releases=UNTIL_4_0,
)
