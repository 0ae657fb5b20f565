"""Error codes of the protocol, those that a reader of logs meets.

References: ``clients/.../common/protocol/Errors.java``.
"""

from __future__ import annotations

NO_ERROR = 0
OFFSET_OUT_OF_RANGE = 1
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE = 33, 34
UNSUPPORTED_VERSION = 35

NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    NO_ERROR: "NONE",
    OFFSET_OUT_OF_RANGE: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    13: "NETWORK_EXCEPTION",
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    UNSUPPORTED_SASL_MECHANISM: "UNSUPPORTED_SASL_MECHANISM",
    ILLEGAL_SASL_STATE: "ILLEGAL_SASL_STATE",
    UNSUPPORTED_VERSION: "UNSUPPORTED_VERSION",
    56: "KAFKA_STORAGE_ERROR",
    58: "SASL_AUTHENTICATION_FAILED",
    70: "FETCH_SESSION_ID_NOT_FOUND",
    72: "LISTENER_NOT_FOUND",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    87: "INVALID_RECORD",
    89: "THROTTLING_QUOTA_EXCEEDED",
    100: "UNKNOWN_TOPIC_ID",
}
"""Code → Kafka's name."""

REFUSALS = frozenset({29, 31, UNSUPPORTED_VERSION})
"""Those that asking again does not change."""


def name_of(code: int) -> str:
    """Return Kafka's name of a code; the number of one that is not known here."""
    return NAMES.get(code, f"error {code}")
