"""Make rows of the entries of `history`."""

from __future__ import annotations

from offsets_log.investigate.history import Entry
from offsets_log.investigate.holders import Holder, TopicIds
from offsets_log.log_format.batch import time_of
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.commit_metadata import decode_commit_metadata
from offsets_log.rows.missing_columns import without_missing_columns
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    TOPIC_PARTITION_COLUMNS,
    Column,
    Row,
    to_base64,
)

HISTORY_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column(
        "event",
        "string",
        "commit, tombstone, transaction_committed, transaction_aborted, transaction_ended (a text does not tell how), "
        "group_gone, group_back",
    ),
    Column("record_offset", "bigint", "offset of the record in the offsets partition"),
    Column("timestamp_ms", "bigint", "time of the record; null if it has none"),
    Column("committed_offset", "bigint", "what the record commits; null if it is no commit"),
    Column("leader_epoch", "int", "leader epoch of the consumed record; null if none was sent"),
    Column("metadata", "string", "the client's own text"),
    Column(
        "metadata_decoded",
        "json",
        "what Kafka Streams or a parallel consumer keeps in the metadata; hex if it is not text",
    ),
    Column("commit_timestamp_ms", "bigint", "when it was committed"),
    Column("producer_id", "bigint", "producer of a transaction; null for a plain record"),
    Column(
        "transaction",
        "string",
        "outcome of the transaction: committed, aborted, open, unknown; null for a plain record",
    ),
    Column("effective_offset", "bigint", "what OffsetFetch answers after this record; null if nothing"),
    Column("effective_record_offset", "bigint", "record offset of the commit that is then served"),
    Column(
        "change", "string", "how the answer changed: new, advanced, rewound, same, deleted; null if it is not affected"
    ),
    Column("member_id", "string", "member that held the partition then; null if none did, or if it is unknown"),
    Column("group_instance_id", "string", "instance id of a static member"),
    Column("client_id", "string", "client id of that member"),
    Column("host", "string", "host of that member"),
    Column("member_epoch", "int", "the generation, or a newer group's member epoch"),
    OFFSETS_PARTITION_COLUMN,
    Column(
        "rewound_by",
        "bigint",
        "by how much less is answered than before, at once or before it was deleted; null if not less",
    ),
)

FOLLOWING = {
    "record_offset": "effective_record_offset",
    "is_transactional": "transaction",
    "generation": "member_epoch",
}
"""A column of other commands that a source lacks → the column here that depends on it."""


def history_row(
    entry: Entry, offsets_partition: int | None, topic_ids: TopicIds, missing_columns: frozenset[str] = frozenset()
) -> Row:
    """Return one row of `HISTORY_COLUMNS`.

    Args:
        missing_columns: columns that the log's source does not have.
    """
    group, topic, partition = entry.key
    value, effective, holder = entry.value, entry.effective, _holder(entry, topic_ids)
    row: Row = {
        "group": group,
        "topic": topic,
        "partition": partition,
        "event": entry.event,
        "record_offset": entry.record_offset,
        "timestamp_ms": time_of(entry.timestamp_ms),
        "committed_offset": value.committed_offset if value else None,
        "leader_epoch": value.leader_epoch if value else None,
        "metadata": value.metadata if value else None,
        "metadata_decoded": decode_commit_metadata(value.metadata, value.committed_offset) if value else None,
        "commit_timestamp_ms": value.commit_timestamp_ms if value else None,
        "producer_id": entry.producer_id,
        "transaction": entry.outcome,
        "effective_offset": effective.committed_offset if effective else None,
        "effective_record_offset": effective.record_offset if effective else None,
        "change": entry.change,
        "member_id": holder.member_id if holder else None,
        "group_instance_id": holder.group_instance_id if holder else None,
        "client_id": holder.client_id if holder else None,
        "host": holder.host if holder else None,
        "member_epoch": holder.epoch if holder else None,
        "offsets_partition": offsets_partition,
        "rewound_by": entry.rewound_by if entry.goes_back else None,
    }
    for name in ("group", "topic", "metadata"):
        if isinstance(text := row[name], MalformedString):
            row[f"{name}_base64"] = to_base64(text.raw)
    return without_missing_columns(
        row, missing_columns | {column for told, column in FOLLOWING.items() if told in missing_columns}
    )


def _holder(entry: Entry, topic_ids: TopicIds) -> Holder | None:
    if entry.value is None:
        return None
    _, topic, partition = entry.key
    own = [bytes(Uuid.from_text(entry.value.topic_id))] if entry.value.topic_id else []
    return entry.holders.of(topic, partition, [*own, *topic_ids.of(topic)], is_plain=entry.producer_id is None)
