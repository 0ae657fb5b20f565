"""Find where a record or a batch lies, and the group that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from offsets_log.errors import OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import LogItem, PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """Where a record or a batch lies; unknown parts are None."""

    file: str | None = None
    position: int | None = None
    record_offset: int | None = None
    group: str | None = None

    def cells(self) -> Row:
        """Return the columns of a row."""
        return {
            "file": self.file,
            "position": self.position,
            "record_offset": self.record_offset,
            "group": self.group,
        }


NOWHERE = FindingPlace()


def place_of(event: Event) -> FindingPlace:
    """Return the place of a record that was read; a control record names no group."""
    group = None
    if not event.batch.is_control:
        group = event.decoded.group if event.decoded is not None else _group_in_key(event.record)
    return FindingPlace(event.segment.file, event.record.position, event.record.offset, group)


def find_places(log: PartitionLog, record_offsets: Collection[int]) -> dict[int, FindingPlace]:
    """Return the places of records, as far as they are in the log; the batch's place if its records lack them."""
    return places_among(iter_log(log), record_offsets)


def places_among(
    batches: Iterable[tuple[Segment, LogItem]], record_offsets: Collection[int]
) -> dict[int, FindingPlace]:
    """Return the places of records among batches that are known to hold them."""
    left = sorted(record_offsets)
    found: dict[int, FindingPlace] = {}
    for segment, batch in batches if left else ():
        if not isinstance(batch, RecordBatch) or batch.last_offset < left[0]:
            continue
        here = [offset for offset in left if offset <= batch.last_offset]
        found |= {offset: FindingPlace(segment.file, batch.position, offset) for offset in here}
        found |= _places_in(segment, batch, set(here))
        left = left[len(here) :]
        if not left:
            break
    return found


def _places_in(segment: Segment, batch: RecordBatch, record_offsets: set[int]) -> dict[int, FindingPlace]:
    return {
        record.offset: FindingPlace(segment.file, record.position, record.offset, _group_in_key(record))
        for record in iter_records(batch)
        if isinstance(record, Record) and record.offset in record_offsets
    }


def _group_in_key(record: Record) -> str | None:
    try:
        return decode_coordinator_record(record.key, None).group
    except OffsetsLogError:
        return None
