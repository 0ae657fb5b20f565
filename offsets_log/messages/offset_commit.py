"""Define types 0 and 1: what a group committed for one partition of a topic.

Type 0 keys were written by 0.8.2 only; their body is the same (``records:Y2``). Value versions: 0 is written by 0.8.2,
1 by 0.9–2.0 and by any later release for a commit with an explicit retention, 2 by 2.1-IV0, 3 by 2.1–4.0, 4 from 4.1.
The topic id of a commit in a transaction is zero up to 4.3 (``K44-5``).

References: ``group-coordinator/.../OffsetCommitKey.json``, ``OffsetCommitValue.json``, ``LegacyOffsetCommit*.json``.
"""

from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.messages.schema import INT32, INT64, STRING, UUID, Field, Message

OFFSET_COMMIT_KEY = Message(
    "OffsetCommitKey",
    (
        Field("group", STRING),
        Field("topic", STRING),
        Field("partition", INT32),
    ),
)

OFFSET_COMMIT_VALUE = Message(
    "OffsetCommitValue",
    (
        Field("offset", INT64),
        Field("leader_epoch", INT32, "3+", default=-1),
        Field("metadata", STRING),
        Field("commit_timestamp", INT64),
        Field("expire_timestamp", INT64, "1", default=-1),
        Field("topic_id", UUID, "4+", tag=0, since=(4, 1), default=ZERO_UUID),
    ),
    versions="0-4",
    flexible="4+",
)
