"""Topics and their partitions.

References: ``metadata/.../TopicRecord.json``, ``PartitionRecord.json``, ``PartitionChangeRecord.json``,
``RemoveTopicRecord.json``, ``ClearElrRecord.json``.
"""

from offsets_log.messages.schema import INT8, INT32, STRING, UUID, ArrayOf, Field, Message

UNCHANGED_LEADER = -2
"""Leader of a change that leaves it as it is."""
UNCHANGED_RECOVERY = -1

TOPIC_RECORD = Message("TopicRecord", (Field("name", STRING), Field("topic_id", UUID)), flexible="0+")

PARTITION_RECORD = Message(
    "PartitionRecord",
    (
        Field("partition_id", INT32),
        Field("topic_id", UUID),
        Field("replicas", ArrayOf(INT32)),
        Field("isr", ArrayOf(INT32)),
        Field("removing_replicas", ArrayOf(INT32)),
        Field("adding_replicas", ArrayOf(INT32)),
        Field("leader", INT32),
        Field("leader_recovery_state", INT8, tag=0, default=0),
        Field("leader_epoch", INT32),
        Field("partition_epoch", INT32),
        Field("directories", ArrayOf(UUID), "1+"),
        Field("eligible_leader_replicas", ArrayOf(INT32), "2+", nullable=True, tag=1),
        Field("last_known_elr", ArrayOf(INT32), "2+", nullable=True, tag=2),
    ),
    versions="0-2",
    flexible="0+",
)

PARTITION_CHANGE_RECORD = Message(
    "PartitionChangeRecord",
    (
        Field("partition_id", INT32),
        Field("topic_id", UUID),
        Field("isr", ArrayOf(INT32), nullable=True, tag=0),
        Field("leader", INT32, tag=1, default=UNCHANGED_LEADER),
        Field("replicas", ArrayOf(INT32), nullable=True, tag=2),
        Field("removing_replicas", ArrayOf(INT32), nullable=True, tag=3),
        Field("adding_replicas", ArrayOf(INT32), nullable=True, tag=4),
        Field("leader_recovery_state", INT8, tag=5, default=UNCHANGED_RECOVERY),
        Field("directories", ArrayOf(UUID), "1+", nullable=True, tag=8),
        Field("eligible_leader_replicas", ArrayOf(INT32), "2+", nullable=True, tag=6),
        Field("last_known_elr", ArrayOf(INT32), "2+", nullable=True, tag=7),
    ),
    versions="0-2",
    flexible="0+",
)
"""Null, or the default, is what did not change."""

REMOVE_TOPIC_RECORD = Message("RemoveTopicRecord", (Field("topic_id", UUID),), flexible="0+")

CLEAR_ELR_RECORD = Message("ClearElrRecord", (Field("topic_name", STRING),), flexible="0+")
