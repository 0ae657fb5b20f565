"""StreamsGroupDescribe (89), versions 0–1: streams groups (KIP-1071) with their topology and members.

Version 1 names the assignor, and has the description of the topology if it is asked for: the broker's plugin keeps it,
not the log (``K44-51``).

References: ``StreamsGroupDescribeRequest.json``, ``StreamsGroupDescribeResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api
from offsets_log.protocol.consumer_group_describe import DESCRIBE_REQUEST_FIELDS

NOT_REQUESTED, NOT_STORED, FAILED, AVAILABLE = range(4)
"""Whether the description of a topology is there; ``FAILED`` if one is stored and could not be fetched."""

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
_NODE = Struct(
    (
        Field("name", STRING),
        Field("node_type", INT8),
        Field("source_topics", ArrayOf(STRING)),
        Field("sink_topic", STRING, nullable=True),
        Field("stores", ArrayOf(STRING)),
        Field("successors", ArrayOf(STRING)),
    )
)
_DESCRIBED_SUBTOPOLOGY = Struct((Field("subtopology_id", STRING), Field("nodes", ArrayOf(_NODE))))
_GLOBAL_STORE = Struct((Field("source", _NODE), Field("processor", _NODE)))
_DESCRIPTION = Struct(
    (Field("subtopologies", ArrayOf(_DESCRIBED_SUBTOPOLOGY)), Field("global_stores", ArrayOf(_GLOBAL_STORE)))
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
        Field("topology_description", _DESCRIPTION, "1+", nullable=True),
        Field("topology_description_status", INT8, "1+"),
        Field("assignor_name", STRING, "1+", nullable=True),
    )
)

STREAMS_GROUP_DESCRIBE = Api(
    89,
    Message(
        "StreamsGroupDescribeRequest",
        (*DESCRIBE_REQUEST_FIELDS, Field("include_topology_description", BOOL, "1+")),
        versions="0-1",
        flexible="0+",
    ),
    Message(
        "StreamsGroupDescribeResponse",
        (Field("throttle_time_ms", INT32), Field("groups", ArrayOf(_GROUP))),
        versions="0-1",
        flexible="0+",
    ),
)
