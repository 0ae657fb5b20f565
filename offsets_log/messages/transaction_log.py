"""Records of ``__transaction_state``: what a transaction coordinator knows of each transactional id.

Value version 0 is not flexible; version 1 is written once the feature ``transaction.version`` is 1 or more. Its tagged
fields stand in the schema among the others, on the wire behind all of them.

References: ``transaction-coordinator/.../TransactionLogKey.json``, ``TransactionLogValue.json``,
``TransactionLog.java``, ``TransactionState.java``.
"""

from offsets_log.messages.schema import INT8, INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct

TRANSACTION_LOG_KEY = Message("TransactionLogKey", (Field("transactional_id", STRING),))

PARTITIONS_SCHEMA = Struct((Field("topic", STRING), Field("partition_ids", ArrayOf(INT32))))

TRANSACTION_LOG_VALUE = Message(
    "TransactionLogValue",
    (
        Field("producer_id", INT64),
        Field("previous_producer_id", INT64, "1+", tag=0, default=-1),
        Field("next_producer_id", INT64, "1+", tag=1, default=-1),
        Field("producer_epoch", INT16),
        Field("next_producer_epoch", INT16, "1+", tag=3, default=-1),
        Field("transaction_timeout_ms", INT32),
        Field("transaction_status", INT8),
        Field("transaction_partitions", ArrayOf(PARTITIONS_SCHEMA), nullable=True),
        Field("transaction_last_update_timestamp_ms", INT64),
        Field("transaction_start_timestamp_ms", INT64),
        Field("client_transaction_version", INT16, "1+", tag=2, default=0),
    ),
    versions="0-1",
    flexible="1+",
)

TRANSACTION_STATES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
"""``transaction_status`` → Kafka's name."""
