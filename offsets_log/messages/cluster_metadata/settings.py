"""Configurations, features, quotas, and the marks of metadata transactions.

References: ``metadata/.../ConfigRecord.json``, ``FeatureLevelRecord.json``, ``ClientQuotaRecord.json``,
``ZkMigrationRecord.json``, ``NoOpRecord.json``, ``BeginTransactionRecord.json``, ``EndTransactionRecord.json``,
``AbortTransactionRecord.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offsets_log.messages.cluster_metadata.config_names import is_sensitive
from offsets_log.messages.schema import BOOL, FLOAT64, INT8, INT16, STRING, ArrayOf, Field, Message, Struct


def _has_sensitive_name(config: Mapping[str, Any]) -> bool:
    return is_sensitive(config["name"])


CONFIG_RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
"""``resource_type`` → what it is; a broker without a name means all brokers."""

CONFIG_RECORD = Message(
    "ConfigRecord",
    (
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("name", STRING),
        Field("value", STRING, nullable=True, secret=_has_sensitive_name),
    ),
    flexible="0+",
)
"""A null value is the default again."""

FEATURE_LEVEL_RECORD = Message(
    "FeatureLevelRecord", (Field("name", STRING), Field("feature_level", INT16)), flexible="0+"
)

QUOTA_ENTITY = Struct((Field("entity_type", STRING), Field("entity_name", STRING, nullable=True)))

CLIENT_QUOTA_RECORD = Message(
    "ClientQuotaRecord",
    (Field("entity", ArrayOf(QUOTA_ENTITY)), Field("key", STRING), Field("value", FLOAT64), Field("remove", BOOL)),
    flexible="0+",
)

ZK_MIGRATION_STATE_RECORD = Message("ZkMigrationStateRecord", (Field("zk_migration_state", INT8),), flexible="0+")

NO_OP_RECORD = Message("NoOpRecord", (), flexible="0+")

BEGIN_TRANSACTION_RECORD = Message(
    "BeginTransactionRecord", (Field("name", STRING, nullable=True, tag=0),), flexible="0+"
)

END_TRANSACTION_RECORD = Message("EndTransactionRecord", (), flexible="0+")

ABORT_TRANSACTION_RECORD = Message(
    "AbortTransactionRecord", (Field("reason", STRING, nullable=True, tag=0),), flexible="0+"
)
