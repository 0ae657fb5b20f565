"""The choice of records that a log needs to be answered from as before: a first one, then larger ones as needed.

Of offsets those that some profile answers from, whatever their key's type; of groups the last record of each key
unless it is a tombstone; all of open transactions. That is not always enough, for records act on one another: a
tombstone of a group hides offsets before it (``J-15``), an offset that was cancelled makes a group exist (``B-3``,
``B-17``), a tombstone ends for one profile what stays for another (``L-19``). Where the answers differ, more is kept
of that key or group: in the end all of it, and then it is answered from as before, for nothing else acts on it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from offsets_log.broker.batches import FileBatch
from offsets_log.cleaner.choice import Named
from offsets_log.cleaner.needs import ALL, LAST_OFFSET, TOMBSTONES, VALUES, Needs
from offsets_log.errors import OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format.batch import NO_PRODUCER_ID
from offsets_log.log_format.control_record import ControlRecord, decode_control_record
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.pipeline import iter_events
from offsets_log.replay.partial import GroupTopicPartition


def survivors(log: PartitionLog, needs: Needs, *, in_bulk: bool = False) -> set[int]:
    """Return the offsets of records that stay; they and open transactions are held in memory.

    Args:
        in_bulk: whether kernels find the batches that are asked for.

    Raises:
        OffsetsLogError: a batch or record in the log cannot be read at all.
    """
    found = _Survivors(needs)
    if in_bulk:
        from offsets_log.cleaner.bulk_survivors import asked_for, of_transactions

        for event in asked_for(log, needs):
            found.take_record(event)
        for item in of_transactions(log):
            if isinstance(item, Event):
                found.take_transaction(item)
            else:
                found.take_data(*item)
    else:
        for found_event in iter_events(log):
            if isinstance(found_event, Event):
                found.take_record(found_event)
                found.take_transaction(found_event)
    return found.all()


@dataclass(slots=True)
class _Survivors:
    needs: Needs
    kept: set[int] = field(default_factory=set)
    last: dict[tuple[str, bytes], tuple[int, bool]] = field(default_factory=dict)
    last_offset: dict[str, tuple[GroupTopicPartition, list[int]]] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)

    def take_transaction(self, event: Event) -> None:
        """Take data or the end of a transaction."""
        batch = event.batch
        if batch.is_control:
            if event.control is not None and event.control.ends_transaction and batch.records_count == 1:
                self.open.pop(batch.producer_id, None)
        elif batch.is_transactional:
            self.take_data(batch.producer_id, event.record.offset)

    def take_data(self, producer_id: int, offset: int) -> None:
        """Take a data record of a transaction."""
        self.open.setdefault(producer_id, []).append(offset)

    def take_record(self, event: Event) -> None:
        """Take data that may be asked for."""
        offset, decoded = event.record.offset, event.decoded
        if event.batch.is_control:
            return
        if decoded is None or self.needs.levels.get(decoded.group) == ALL:
            self.kept.add(offset)
        elif decoded.is_offset_commit:
            self._take_offset(decoded, offset)
        else:
            self.last[decoded.group, event.record.key or b""] = offset, decoded.is_tombstone

    def _take_offset(self, record: CoordinatorRecord, offset: int) -> None:
        key = record.group_topic_partition
        if key in self.needs.keys:
            self.kept.add(offset)
        if self.needs.levels.get(record.group) != LAST_OFFSET:
            return
        if not record.is_tombstone:
            self.last_offset[record.group] = key, [offset]
        elif record.group in self.last_offset and self.last_offset[record.group][0] == key:
            self.last_offset[record.group][1].append(offset)

    def all(self) -> set[int]:
        levels = self.needs.levels
        kept = self.kept | self.needs.offsets
        kept |= {
            offset
            for (group, _), (offset, is_tombstone) in self.last.items()
            if not is_tombstone or levels.get(group, VALUES) >= TOMBSTONES
        }
        for offsets in (*(offsets for _, offsets in self.last_offset.values()), *self.open.values()):
            kept.update(offsets)
        return kept


class Surviving:
    """These records, and of control batches those that end a transaction with data among them."""

    def __init__(self, offsets: Set[int]) -> None:
        self._named = Named(offsets, stay=True)

    @property
    def named(self) -> Named:
        """The whole choice by offsets."""
        return self._named

    def end_within(self, batch: FileBatch) -> int | None:
        """Return nothing: the log ends where it ended."""
        return None

    def keeps_all(self, batch: FileBatch) -> bool:
        """Return false: each record is examined."""
        return False

    def keeps_record(self, batch: FileBatch, record: Record) -> bool:
        """Return whether a record stays, by its offset."""
        if record.offset not in self._named.offsets:
            return False
        if batch.producer_id != NO_PRODUCER_ID:
            self._named.with_data.add(batch.producer_id)
        return True

    def keeps_bare(self, batch: FileBatch) -> bool:
        """Return whether a batch stays: also a control batch with other than one marker, on which releases disagree."""
        if not batch.is_control or not batch.records_count:
            return False
        if not _is_marker(batch):
            return True
        has_data = batch.producer_id in self._named.with_data
        self._named.with_data.discard(batch.producer_id)
        return has_data


def _is_marker(batch: FileBatch) -> bool:
    found = list(iter_records(batch.whole()))
    if len(found) != 1 or not isinstance(found[0], Record):
        return False
    try:
        control: ControlRecord = decode_control_record(found[0])
    except OffsetsLogError:
        return False
    return control.ends_transaction
