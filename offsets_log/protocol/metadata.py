"""Metadata (3), versions 0–13: the brokers, the topics with their ids, and who leads each partition.

Null stands for all topics and no name for none, but in version 0, where no name stands for all. From version 4 (Kafka
0.11) on a request can forbid that a topic is created by being asked about; earlier versions are never sent. Leader
epochs come from version 7 on, topic ids from version 10 on, an error of the whole answer with version 13.

References: ``MetadataRequest.json``, ``MetadataResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_ASKED = Struct(
    (Field("topic_id", UUID, "10+"), Field("name", STRING, "0-9"), Field("name", STRING, "10+", nullable=True))
)
_BROKER = Struct(
    (Field("node_id", INT32), Field("host", STRING), Field("port", INT32), Field("rack", STRING, "1+", nullable=True))
)
_PARTITION = Struct(
    (
        Field("error_code", INT16),
        Field("partition_index", INT32),
        Field("leader_id", INT32),
        Field("leader_epoch", INT32, "7+", default=-1),
        Field("replica_nodes", ArrayOf(INT32)),
        Field("isr_nodes", ArrayOf(INT32)),
        Field("offline_replicas", ArrayOf(INT32), "5+"),
    )
)
_TOPIC = Struct(
    (
        Field("error_code", INT16),
        Field("name", STRING, "0-11"),
        Field("name", STRING, "12+", nullable=True),
        Field("topic_id", UUID, "10+"),
        Field("is_internal", BOOL, "1+"),
        Field("partitions", ArrayOf(_PARTITION)),
        Field("topic_authorized_operations", INT32, "8+"),
    )
)

METADATA = Api(
    3,
    Message(
        "MetadataRequest",
        (
            Field("topics", ArrayOf(_ASKED), "0"),
            Field("topics", ArrayOf(_ASKED), "1+", nullable=True),
            Field("allow_auto_topic_creation", BOOL, "4+"),
            Field("include_cluster_authorized_operations", BOOL, "8-10"),
            Field("include_topic_authorized_operations", BOOL, "8+"),
        ),
        versions="0-13",
        flexible="9+",
    ),
    Message(
        "MetadataResponse",
        (
            Field("throttle_time_ms", INT32, "3+"),
            Field("brokers", ArrayOf(_BROKER)),
            Field("cluster_id", STRING, "2+", nullable=True),
            Field("controller_id", INT32, "1+"),
            Field("topics", ArrayOf(_TOPIC)),
            Field("cluster_authorized_operations", INT32, "8-10"),
            Field("error_code", INT16, "13+"),
        ),
        versions="0-13",
        flexible="9+",
    ),
    asked_from=4,
)
NO_TOPIC = {
    "topics": [],
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}
"""A request about brokers alone."""

ALL_TOPICS = NO_TOPIC | {"topics": None}
"""A request about all topics that the user may see; nothing is made by it."""
