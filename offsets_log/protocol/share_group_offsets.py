"""AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92): set where share groups start.

Brokers have them since 4.1, all versions flexible. The coordinator of the group is asked (KIP-932).

References: ``AlterShareGroupOffsetsRequest.json``, ``DeleteShareGroupOffsetsRequest.json``, and the responses beside
them.
"""

from offsets_log.messages.schema import INT16, INT32, INT64, STRING, UUID, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_ERROR = (Field("error_code", INT16), Field("error_message", STRING, nullable=True))
_TOPIC = (Field("topic_name", STRING), Field("topic_id", UUID))


def _array(name: str, *fields: Field) -> Field:
    return Field(name, ArrayOf(Struct(fields)))


ALTER_SHARE_GROUP_OFFSETS = Api(
    91,
    Message(
        "AlterShareGroupOffsetsRequest",
        (
            Field("group_id", STRING),
            _array(
                "topics",
                Field("topic_name", STRING),
                _array("partitions", Field("partition_index", INT32), Field("start_offset", INT64)),
            ),
        ),
        flexible="0+",
    ),
    Message(
        "AlterShareGroupOffsetsResponse",
        (
            Field("throttle_time_ms", INT32),
            *_ERROR,
            _array("responses", *_TOPIC, _array("partitions", Field("partition_index", INT32), *_ERROR)),
        ),
        flexible="0+",
    ),
)

DELETE_SHARE_GROUP_OFFSETS = Api(
    92,
    Message(
        "DeleteShareGroupOffsetsRequest",
        (Field("group_id", STRING), _array("topics", Field("topic_name", STRING))),
        flexible="0+",
    ),
    Message(
        "DeleteShareGroupOffsetsResponse",
        (Field("throttle_time_ms", INT32), *_ERROR, _array("responses", *_TOPIC, *_ERROR)),
        flexible="0+",
    ),
)
