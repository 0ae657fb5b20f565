"""StreamsGroupDescribe (89), version 0: streams groups (KIP-1071) with their topology and members.

References: ``StreamsGroupDescribeRequest.json``, ``StreamsGroupDescribeResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, INT64, STRING, UINT16, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api
from offsets_log.protocol.consumer_group_describe import DESCRIBE_REQUEST_FIELDS

_KEY_VALUE = Struct((Field("key", STRING), Field("value", STRING)))
_TOPIC = Struct(
    (
        Field("name", STRING),
        Field("partitions", INT32),
        Field("replication_factor", INT16),
        Field("topic_configs", ArrayOf(_KEY_VALUE)),
    )
)
_SUBTOPOLOGY = Struct(
    (
        Field("subtopology_id", STRING),
        Field("source_topics", ArrayOf(STRING)),
        Field("repartition_sink_topics", ArrayOf(STRING)),
        Field("state_changelog_topics", ArrayOf(_TOPIC)),
        Field("repartition_source_topics", ArrayOf(_TOPIC)),
    )
)
_TOPOLOGY = Struct((Field("epoch", INT32), Field("subtopologies", ArrayOf(_SUBTOPOLOGY), nullable=True)))
_TASKS = ArrayOf(Struct((Field("subtopology_id", STRING), Field("partitions", ArrayOf(INT32)))))
_ASSIGNMENT = Struct((Field("active_tasks", _TASKS), Field("standby_tasks", _TASKS), Field("warmup_tasks", _TASKS)))
_TASK_OFFSETS = ArrayOf(Struct((Field("subtopology_id", STRING), Field("partition", INT32), Field("offset", INT64))))
_MEMBER = Struct(
    (
        Field("member_id", STRING),
        Field("member_epoch", INT32),
        Field("instance_id", STRING, nullable=True),
        Field("rack_id", STRING, nullable=True),
        Field("client_id", STRING),
        Field("client_host", STRING),
        Field("topology_epoch", INT32),
        Field("process_id", STRING),
        Field("user_endpoint", Struct((Field("host", STRING), Field("port", UINT16))), nullable=True),
        Field("client_tags", ArrayOf(_KEY_VALUE)),
        Field("task_offsets", _TASK_OFFSETS),
        Field("task_end_offsets", _TASK_OFFSETS),
        Field("assignment", _ASSIGNMENT),
        Field("target_assignment", _ASSIGNMENT),
        Field("is_classic", BOOL),
    )
)
_GROUP = Struct(
    (
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("group_id", STRING),
        Field("group_state", STRING),
        Field("group_epoch", INT32),
        Field("assignment_epoch", INT32),
        Field("topology", _TOPOLOGY, nullable=True),
        Field("members", ArrayOf(_MEMBER)),
        Field("authorized_operations", INT32),
    )
)

STREAMS_GROUP_DESCRIBE = Api(
    89,
    Message("StreamsGroupDescribeRequest", DESCRIBE_REQUEST_FIELDS, flexible="0+"),
    Message(
        "StreamsGroupDescribeResponse",
        (Field("throttle_time_ms", INT32), Field("groups", ArrayOf(_GROUP))),
        flexible="0+",
    ),
)
