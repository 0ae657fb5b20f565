"""DescribeLogDirs (35), versions 1–5: a broker's directories and how large the logs in them are.

Topics may be null, for all of them. Version 3 adds an error of the whole answer, 4 the sizes of volumes, 5 whether a
directory takes no new logs.

References: ``DescribeLogDirsRequest.json``, ``DescribeLogDirsResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_ASKED = Struct((Field("topic", STRING), Field("partitions", ArrayOf(INT32))))
_PARTITION = Struct(
    (
        Field("partition_index", INT32),
        Field("partition_size", INT64),
        Field("offset_lag", INT64),
        Field("is_future_key", BOOL),
    )
)
_RESULT = Struct(
    (
        Field("error_code", INT16),
        Field("log_dir", STRING),
        Field("topics", ArrayOf(Struct((Field("name", STRING), Field("partitions", ArrayOf(_PARTITION)))))),
        Field("total_bytes", INT64, "4+", default=-1),
        Field("usable_bytes", INT64, "4+", default=-1),
        Field("is_cordoned", BOOL, "5+"),
    )
)

DESCRIBE_LOG_DIRS = Api(
    35,
    Message(
        "DescribeLogDirsRequest",
        (Field("topics", ArrayOf(_ASKED), nullable=True),),
        versions="1-5",
        flexible="2+",
    ),
    Message(
        "DescribeLogDirsResponse",
        (
            Field("throttle_time_ms", INT32),
            Field("error_code", INT16, "3+"),
            Field("results", ArrayOf(_RESULT)),
        ),
        versions="1-5",
        flexible="2+",
    ),
)
