"""Brokers and controllers.

References: ``metadata/.../RegisterBrokerRecord.json``, ``UnregisterBrokerRecord.json``, ``FenceBrokerRecord.json``,
``UnfenceBrokerRecord.json``, ``BrokerRegistrationChangeRecord.json``, ``RegisterControllerRecord.json``,
``ProducerIdsRecord.json``.
"""

from offsets_log.messages.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    ArrayOf,
    Field,
    Message,
    Struct,
)

END_POINT = Struct(
    (Field("name", STRING), Field("host", STRING), Field("port", UINT16), Field("security_protocol", INT16))
)
FEATURE = Struct((Field("name", STRING), Field("min_supported_version", INT16), Field("max_supported_version", INT16)))

REGISTER_BROKER_RECORD = Message(
    "RegisterBrokerRecord",
    (
        Field("broker_id", INT32),
        Field("is_migrating_zk_broker", BOOL, "2+"),
        Field("incarnation_id", UUID),
        Field("broker_epoch", INT64),
        Field("end_points", ArrayOf(END_POINT)),
        Field("features", ArrayOf(FEATURE)),
        Field("rack", STRING, nullable=True),
        Field("fenced", BOOL),
        Field("in_controlled_shutdown", BOOL, "1+"),
        Field("log_dirs", ArrayOf(UUID), "3+", tag=0, default=()),
        Field("cordoned_log_dirs", ArrayOf(UUID), "4+", nullable=True, tag=1),
    ),
    versions="0-4",
    flexible="0+",
)

UNREGISTER_BROKER_RECORD = Message(
    "UnregisterBrokerRecord", (Field("broker_id", INT32), Field("broker_epoch", INT64)), flexible="0+"
)

FENCE_BROKER_RECORD = Message("FenceBrokerRecord", (Field("id", INT32), Field("epoch", INT64)), flexible="0+")

UNFENCE_BROKER_RECORD = Message("UnfenceBrokerRecord", (Field("id", INT32), Field("epoch", INT64)), flexible="0+")

BROKER_REGISTRATION_CHANGE_RECORD = Message(
    "BrokerRegistrationChangeRecord",
    (
        Field("broker_id", INT32),
        Field("broker_epoch", INT64),
        Field("fenced", INT8, tag=0, default=0),
        Field("in_controlled_shutdown", INT8, "1+", tag=1, default=0),
        Field("log_dirs", ArrayOf(UUID), "2+", tag=2, default=()),
        Field("cordoned_log_dirs", ArrayOf(UUID), "3+", nullable=True, tag=3),
    ),
    versions="0-3",
    flexible="0+",
)
"""``fenced`` is 1 for fenced now, −1 for unfenced, 0 for no change."""

REGISTER_CONTROLLER_RECORD = Message(
    "RegisterControllerRecord",
    (
        Field("controller_id", INT32),
        Field("incarnation_id", UUID),
        Field("zk_migration_ready", BOOL),
        Field("end_points", ArrayOf(END_POINT)),
        Field("features", ArrayOf(FEATURE)),
    ),
    flexible="0+",
)

UNREGISTER_CONTROLLER_RECORD = Message("UnregisterControllerRecord", (Field("controller_id", INT32),), flexible="0+")
"""Since 4.4, with metadata.version 33 (``K44-56``)."""

PRODUCER_IDS_RECORD = Message(
    "ProducerIdsRecord",
    (Field("broker_id", INT32), Field("broker_epoch", INT64), Field("next_producer_id", INT64)),
    flexible="0+",
)
