"""Read the records of ``__transaction_state`` and ``__share_group_state``, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterator

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.state_topics import StateRecord, decode_state_record


def iter_state_records(
    log: PartitionLog, topic: str, damages: list[Damage]
) -> Iterator[tuple[Record, StateRecord | None]]:
    """Yield each data record and what it says; None for one that cannot be decoded.

    Args:
        topic: of `state_topics.STATE_RECORD_TYPES`.
        damages: takes what could not be read.
    """
    for segment, item in iter_log(log):
        if isinstance(item, Damage):
            damages.append(item)
        elif isinstance(item, RecordBatch) and not item.is_control:
            for record in iter_records(item):
                if isinstance(record, Damage):
                    record.error.at(file=segment.file)
                    damages.append(record)
                    continue
                try:
                    decoded = decode_state_record(topic, record.key, record.value)
                except OffsetsLogError as error:
                    error.at(file=segment.file, position=record.position, record_offset=record.offset)
                    damages.append(Damage(error, b""))
                    yield record, None
                else:
                    yield record, decoded
