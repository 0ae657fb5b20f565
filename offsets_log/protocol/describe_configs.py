"""DescribeConfigs (32), versions 1–4: the configuration of topics, brokers and groups.

Version 3 adds types and documentation. Configuration keys may be null, for all of them.

References: ``DescribeConfigsRequest.json``, ``DescribeConfigsResponse.json``; ``ConfigResource.java``.
"""

from offsets_log.messages.schema import BOOL, INT8, INT16, INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

TOPIC, BROKER, GROUP = 2, 4, 32
"""Types of resources."""

_ASKED = Struct(
    (
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("configuration_keys", ArrayOf(STRING), nullable=True),
    )
)
_SYNONYM = Struct((Field("name", STRING), Field("value", STRING, nullable=True), Field("source", INT8)))
_CONFIG = Struct(
    (
        Field("name", STRING),
        Field("value", STRING, nullable=True),
        Field("read_only", BOOL),
        Field("config_source", INT8),
        Field("is_sensitive", BOOL),
        Field("synonyms", ArrayOf(_SYNONYM)),
        Field("config_type", INT8, "3+"),
        Field("documentation", STRING, "3+", nullable=True),
    )
)
_RESULT = Struct(
    (
        Field("error_code", INT16),
        Field("error_message", STRING, nullable=True),
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("configs", ArrayOf(_CONFIG)),
    )
)

DESCRIBE_CONFIGS = Api(
    32,
    Message(
        "DescribeConfigsRequest",
        (
            Field("resources", ArrayOf(_ASKED)),
            Field("include_synonyms", BOOL),
            Field("include_documentation", BOOL, "3+"),
        ),
        versions="1-4",
        flexible="4+",
    ),
    Message(
        "DescribeConfigsResponse",
        (Field("throttle_time_ms", INT32), Field("results", ArrayOf(_RESULT))),
        versions="1-4",
        flexible="4+",
    ),
)
