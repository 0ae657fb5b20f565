"""Look at the keys of a log's first records: is it one of ``__consumer_offsets`` at all, and which groups are in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from offsets_log.errors import OffsetsLogError, UnknownRecordTypeError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import decode_key, record_type_of

RECORDS_LOOKED_AT = 100
BATCHES_LOOKED_AT = 10_000
RECORDS_FOR_GROUPS = 1000
LARGEST_TYPE_TO_COME = 127
"""Largest number that a future record type may have; keys that are texts begin with much larger numbers."""


def is_of_another_topic(log: PartitionLog) -> bool:
    """Whether the log has records, but none of the first ones has a key that a group coordinator writes."""
    keys = list(islice(_keys(log), RECORDS_LOOKED_AT))
    return bool(keys) and not any(map(may_be_coordinators, keys))


def first_groups(log: PartitionLog, records: int = RECORDS_FOR_GROUPS) -> set[str]:
    """Return the groups that the keys of the first records name."""
    groups = set()
    for key in set(islice(_keys(log), records)):
        with suppress(OffsetsLogError):
            _, fields, _ = decode_key(key)
            groups.add(fields["group"] if "group" in fields else fields["group_id"])
    return groups


def may_be_coordinators(key: bytes | None) -> bool:
    """Whether a group coordinator of this or a newer release may write such a key: no bytes are left over in it."""
    try:
        _, _, trailing = decode_key(key)
    except UnknownRecordTypeError:
        return 0 <= (record_type_of(key) or 0) <= LARGEST_TYPE_TO_COME
    except OffsetsLogError:
        return False
    return not trailing


def _keys(log: PartitionLog) -> Iterator[bytes | None]:
    batches = (item for _, item in islice(iter_log(log), BATCHES_LOOKED_AT) if isinstance(item, RecordBatch))
    for batch in batches:
        if not batch.is_control:
            yield from (record.key for record in iter_records(batch) if isinstance(record, Record))
