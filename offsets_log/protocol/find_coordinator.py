"""FindCoordinator (10), versions 0–6: which broker answers for a group, a transactional id or a share partition.

Version 1 says of what kind the key is. From version 4 on a request holds many keys, and the answer a row for each.
Version 6 adds share partitions, whose key is ``group:topicId:partition``.

References: ``FindCoordinatorRequest.json``, ``FindCoordinatorResponse.json``.
"""

from offsets_log.messages.schema import INT8, INT16, INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

GROUP, TRANSACTION, SHARE = 0, 1, 2
"""Kinds of keys."""

_COORDINATOR = Struct(
    (
        Field("key", STRING),
        Field("node_id", INT32),
        Field("host", STRING),
        Field("port", INT32),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
    )
)

FIND_COORDINATOR = Api(
    10,
    Message(
        "FindCoordinatorRequest",
        (
            Field("key", STRING, "0-3"),
            Field("key_type", INT8, "1+", default=GROUP),
            Field("coordinator_keys", ArrayOf(STRING), "4+"),
        ),
        versions="0-6",
        flexible="3+",
    ),
    Message(
        "FindCoordinatorResponse",
        (
            Field("throttle_time_ms", INT32, "1+"),
            Field("error_code", INT16, "0-3"),
            Field("error_message", STRING, "1-3", nullable=True),
            Field("node_id", INT32, "0-3"),
            Field("host", STRING, "0-3"),
            Field("port", INT32, "0-3"),
            Field("coordinators", ArrayOf(_COORDINATOR), "4+"),
        ),
        versions="0-6",
        flexible="3+",
    ),
)
