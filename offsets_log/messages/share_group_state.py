"""Records of ``__share_group_state``, KIP-932: how far a share group has come in a partition of a topic.

A snapshot is the whole state, an update changes it. Keys are not flexible, values are.

References: ``share-coordinator/.../ShareSnapshotKey.json``, ``ShareSnapshotValue.json``, ``ShareUpdateKey.json``,
``ShareUpdateValue.json``.
"""

from offsets_log.messages.schema import INT8, INT16, INT32, INT64, STRING, UUID, ArrayOf, Field, Message, Struct

SHARE_PARTITION_KEY_FIELDS = (Field("group_id", STRING), Field("topic_id", UUID), Field("partition", INT32))
SHARE_SNAPSHOT_KEY = Message("ShareSnapshotKey", SHARE_PARTITION_KEY_FIELDS)
SHARE_UPDATE_KEY = Message("ShareUpdateKey", SHARE_PARTITION_KEY_FIELDS)

STATE_BATCH = Struct(
    (
        Field("first_offset", INT64),
        Field("last_offset", INT64),
        Field("delivery_state", INT8),
        Field("delivery_count", INT16),
    )
)

SHARE_SNAPSHOT_VALUE = Message(
    "ShareSnapshotValue",
    (
        Field("snapshot_epoch", INT32),
        Field("state_epoch", INT32),
        Field("leader_epoch", INT32),
        Field("start_offset", INT64),
        Field("delivery_complete_count", INT32, tag=0, default=-1),
        Field("create_timestamp", INT64),
        Field("write_timestamp", INT64),
        Field("state_batches", ArrayOf(STATE_BATCH)),
    ),
    flexible="0+",
)

SHARE_UPDATE_VALUE = Message(
    "ShareUpdateValue",
    (
        Field("snapshot_epoch", INT32),
        Field("leader_epoch", INT32),
        Field("start_offset", INT64),
        Field("delivery_complete_count", INT32, tag=0, default=-1),
        Field("state_batches", ArrayOf(STATE_BATCH)),
    ),
    flexible="0+",
)

DELIVERY_STATES = {0: "Available", 1: "Acquired", 2: "Acknowledged", 3: "Archiving", 4: "Archived"}
"""``delivery_state`` of a batch → Kafka's name; 1 and 3 are of memory only."""
