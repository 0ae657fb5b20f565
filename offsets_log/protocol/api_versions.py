"""ApiVersions (18), versions 0–5: which versions of each API a broker takes.

A broker that does not know the request's version answers in version 0, with UNSUPPORTED_VERSION and its own range.
Version 4 differs from 3 in a minimum of a feature alone; in version 5 a client says which cluster and broker it takes
this one for (KIP-1242). The response's header never has tagged fields.

References: ``ApiVersionsRequest.json``, ``ApiVersionsResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_API_VERSION = Struct((Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16)))
_SUPPORTED_FEATURE = Struct((Field("name", STRING), Field("min_version", INT16), Field("max_version", INT16)))
_FINALIZED_FEATURE = Struct(
    (Field("name", STRING), Field("max_version_level", INT16), Field("min_version_level", INT16))
)

API_VERSIONS = Api(
    18,
    Message(
        "ApiVersionsRequest",
        (
            Field("client_software_name", STRING, "3+"),
            Field("client_software_version", STRING, "3+"),
            Field("cluster_id", STRING, "5+", nullable=True),
            Field("node_id", INT32, "5+", default=-1),
        ),
        versions="0-5",
        flexible="3+",
    ),
    Message(
        "ApiVersionsResponse",
        (
            Field("error_code", INT16),
            Field("api_keys", ArrayOf(_API_VERSION)),
            Field("throttle_time_ms", INT32, "1+"),
            Field("supported_features", ArrayOf(_SUPPORTED_FEATURE), "3+", tag=0, default=()),
            Field("finalized_features_epoch", INT64, "3+", tag=1, default=-1),
            Field("finalized_features", ArrayOf(_FINALIZED_FEATURE), "3+", tag=2, default=()),
            Field("zk_migration_ready", BOOL, "3+", tag=3, default=False),
        ),
        versions="0-5",
        flexible="3+",
    ),
    always_plain_header=True,
)
