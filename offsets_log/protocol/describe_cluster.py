"""DescribeCluster (60), versions 0–2: the cluster's id, its controller and its brokers.

Version 1 asks for brokers (1) or controllers (2); version 2 says which brokers are fenced.

References: ``DescribeClusterRequest.json``, ``DescribeClusterResponse.json``.
"""

from offsets_log.messages.schema import BOOL, INT8, INT16, INT32, STRING, ArrayOf, Field, Message, Struct
from offsets_log.protocol.api import Api

_BROKER = Struct(
    (
        Field("broker_id", INT32),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, nullable=True),
        Field("is_fenced", BOOL, "2+"),
    )
)

DESCRIBE_CLUSTER = Api(
    60,
    Message(
        "DescribeClusterRequest",
        (
            Field("include_cluster_authorized_operations", BOOL),
            Field("endpoint_type", INT8, "1+"),
            Field("include_fenced_brokers", BOOL, "2+"),
        ),
        versions="0-2",
        flexible="0+",
    ),
    Message(
        "DescribeClusterResponse",
        (
            Field("throttle_time_ms", INT32),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field("endpoint_type", INT8, "1+"),
            Field("cluster_id", STRING),
            Field("controller_id", INT32),
            Field("brokers", ArrayOf(_BROKER)),
            Field("cluster_authorized_operations", INT32),
        ),
        versions="0-2",
        flexible="0+",
    ),
)
