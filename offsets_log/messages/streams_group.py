"""Define types 17 and 19–23: streams groups, KIP-1071.

All values have version 0. Member states of type 22 are numbered differently from those of type 8. The epochs of
descriptions came with 4.4 (``K44-1``).

References: ``group-coordinator/.../StreamsGroup*.json`` of 4.4.0.
"""

from offsets_log.messages.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    ArrayOf,
    Field,
    Message,
    Struct,
)

KEY_VALUE = Struct((Field("key", STRING), Field("value", STRING)))

STREAMS_GROUP_METADATA_VALUE = Message(
    "StreamsGroupMetadataValue",
    (
        Field("epoch", INT32),
        Field("metadata_hash", INT64),
        Field("validated_topology_epoch", INT32, tag=0, since=(4, 2), default=-1),
        Field("last_assignment_configs", ArrayOf(KEY_VALUE), nullable=True, tag=1, since=(4, 2), default=()),
        Field("stored_description_topology_epoch", INT32, tag=2, since=(4, 4), default=-1),
        Field("failed_description_topology_epoch", INT32, tag=3, since=(4, 4), default=-1),
    ),
    flexible="0+",
)
DESCRIPTIONS = ("stored_description_topology_epoch", "failed_description_topology_epoch")
"""Fields that came after the value version (``K44-1``)."""
DESCRIPTIONS_SINCE = max(row.since or () for row in STREAMS_GROUP_METADATA_VALUE.fields if row.name in DESCRIPTIONS)
"""The first release that has them; static members of streams groups came with the same (``K44-7``)."""

STREAMS_GROUP_MEMBER_METADATA_VALUE = Message(
    "StreamsGroupMemberMetadataValue",
    (
        Field("instance_id", STRING, nullable=True),
        Field("rack_id", STRING, nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("rebalance_timeout_ms", INT32, default=-1),
        Field("topology_epoch", INT32),
        Field("process_id", STRING),
        Field("user_endpoint", Struct((Field("host", STRING), Field("port", UINT16))), nullable=True),
        Field("client_tags", ArrayOf(KEY_VALUE)),
    ),
    flexible="0+",
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = Message(
    "StreamsGroupTargetAssignmentMetadataValue",
    (
        Field("assignment_epoch", INT32),
        Field("assignment_timestamp", INT64, tag=0, since=(4, 3), default=0),
    ),
    flexible="0+",
)

TASK_IDS = Struct((Field("subtopology_id", STRING), Field("partitions", ArrayOf(INT32))))
CURRENT_TASK_IDS = Struct(
    (
        *TASK_IDS.fields,
        Field("assignment_epochs", ArrayOf(INT32), nullable=True, tag=0, since=(4, 2), default=()),
    )
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = Message(
    "StreamsGroupTargetAssignmentMemberValue",
    (
        Field("active_tasks", ArrayOf(TASK_IDS)),
        Field("standby_tasks", ArrayOf(TASK_IDS)),
        Field("warmup_tasks", ArrayOf(TASK_IDS)),
    ),
    flexible="0+",
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = Message(
    "StreamsGroupCurrentMemberAssignmentValue",
    (
        Field("member_epoch", INT32),
        Field("previous_member_epoch", INT32),
        Field("state", INT8),
        Field("active_tasks", ArrayOf(CURRENT_TASK_IDS, is_repeated=True)),
        Field("standby_tasks", ArrayOf(CURRENT_TASK_IDS)),
        Field("warmup_tasks", ArrayOf(CURRENT_TASK_IDS)),
        Field("active_tasks_pending_revocation", ArrayOf(CURRENT_TASK_IDS)),
        Field("standby_tasks_pending_revocation", ArrayOf(CURRENT_TASK_IDS)),
        Field("warmup_tasks_pending_revocation", ArrayOf(CURRENT_TASK_IDS)),
    ),
    flexible="0+",
)

TOPIC_INFO = Struct(
    (
        Field("name", STRING),
        Field("partitions", INT32),
        Field("replication_factor", INT16),
        Field("topic_configs", ArrayOf(KEY_VALUE)),
    )
)

COPARTITION_GROUP = Struct(
    (
        Field("source_topics", ArrayOf(INT16)),
        Field("source_topic_regex", ArrayOf(INT16)),
        Field("repartition_source_topics", ArrayOf(INT16)),
    )
)

SUBTOPOLOGY = Struct(
    (
        Field("subtopology_id", STRING),
        Field("source_topics", ArrayOf(STRING)),
        Field("source_topic_regex", ArrayOf(STRING)),
        Field("state_changelog_topics", ArrayOf(TOPIC_INFO)),
        Field("repartition_sink_topics", ArrayOf(STRING)),
        Field("repartition_source_topics", ArrayOf(TOPIC_INFO)),
        Field("copartition_groups", ArrayOf(COPARTITION_GROUP)),
    )
)

STREAMS_GROUP_TOPOLOGY_VALUE = Message(
    "StreamsGroupTopologyValue",
    (
        Field("epoch", INT32),
        Field("subtopologies", ArrayOf(SUBTOPOLOGY)),
    ),
    flexible="0+",
)
