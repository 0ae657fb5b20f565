"""DescribeTopicPartitions (75), version 0: topics with their partitions and leaders, page by page.

Clients ask it before Metadata, and only go back to Metadata where it is not offered. An answer that does not fit into
``response_partition_limit`` partitions ends with the cursor to ask from.

References: ``DescribeTopicPartitionsRequest.json``, ``DescribeTopicPartitionsResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_CURSOR = Struct((Field("topic_name", STRING), Field("partition_index", INT32)))
_PARTITION = Struct(
    (
        Field("error_code", INT16),
        Field("partition_index", INT32),
        Field("leader_id", INT32),
        Field("leader_epoch", INT32, default=-1),
        Field("replica_nodes", ArrayOf(INT32)),
        Field("isr_nodes", ArrayOf(INT32)),
        Field("eligible_leader_replicas", ArrayOf(INT32), nullable=True),
        Field("last_known_elr", ArrayOf(INT32), nullable=True),
        Field("offline_replicas", ArrayOf(INT32)),
    )
)
_TOPIC = Struct(
    (
        Field("error_code", INT16),
        Field("name", STRING, nullable=True),
        Field("topic_id", UUID),
        Field("is_internal", BOOL),
        Field("partitions", ArrayOf(_PARTITION)),
        Field("topic_authorized_operations", INT32),
    )
)

DESCRIBE_TOPIC_PARTITIONS = Api(
    75,
    Message(
        "DescribeTopicPartitionsRequest",
        (
            Field("topics", ArrayOf(Struct((Field("name", STRING),)))),
            Field("response_partition_limit", INT32),
            Field("cursor", _CURSOR, nullable=True),
        ),
        flexible="0+",
    ),
    Message(
        "DescribeTopicPartitionsResponse",
        (
            Field("throttle_time_ms", INT32),
            Field("topics", ArrayOf(_TOPIC)),
            Field("next_cursor", _CURSOR, nullable=True),
        ),
        flexible="0+",
    ),
)
