"""OffsetFetch (9), versions 1–10: the offsets that groups have committed.

Version 0 read them from ZooKeeper. From version 2 on topics may be null, for all of them, and the answer has an error
of the whole group; 5 adds leader epochs, 7 asks for stable offsets. From version 8 on a request holds many groups, from
9 on a member may say who it is; version 10 names topics by their ids.

References: ``OffsetFetchRequest.json``, ``OffsetFetchResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, INT64, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

WITH_MANY_GROUPS = 8
"""The version from which on a request holds many groups."""
WITH_NAMES = 9
"""The last version that names topics."""

_PARTITION = Struct(
    (
        Field("partition_index", INT32),
        Field("committed_offset", INT64),
        Field("committed_leader_epoch", INT32, "5+", default=-1),
        Field("metadata", STRING, nullable=True),
        Field("error_code", INT16),
    )
)


def _topics(partitions: Field) -> ArrayOf:
    return ArrayOf(Struct((Field("name", STRING, "0-9"), Field("topic_id", UUID, "10+"), partitions)))


_ASKED = _topics(Field("partition_indexes", ArrayOf(INT32)))
_ANSWERED = _topics(Field("partitions", ArrayOf(_PARTITION)))
_ASKED_GROUP = Struct(
    (
        Field("group_id", STRING),
        Field("member_id", STRING, "9+", nullable=True),
        Field("member_epoch", INT32, "9+", default=-1),
        Field("topics", _ASKED, nullable=True),
    )
)
_ANSWERED_GROUP = Struct((Field("group_id", STRING), Field("topics", _ANSWERED), Field("error_code", INT16)))

OFFSET_FETCH = Api(
    9,
    Message(
        "OffsetFetchRequest",
        (
            Field("group_id", STRING, "0-7"),
            Field("topics", _ASKED, "0-1"),
            Field("topics", _ASKED, "2-7", nullable=True),
            Field("groups", ArrayOf(_ASKED_GROUP), "8+"),
            Field("require_stable", BOOL, "7+"),
        ),
        versions="1-10",
        flexible="6+",
    ),
    Message(
        "OffsetFetchResponse",
        (
            Field("throttle_time_ms", INT32, "3+"),
            Field("topics", _ANSWERED, "0-7"),
            Field("error_code", INT16, "2-7"),
            Field("groups", ArrayOf(_ANSWERED_GROUP), "8+"),
        ),
        versions="1-10",
        flexible="6+",
    ),
)
