"""The events that `survivors` asks for, found by kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from offsets_log.cleaner.answers import undamaged
from offsets_log.cleaner.needs import Needs
from offsets_log.columnar import arrays as a
from offsets_log.columnar.choose.selected import selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.cleaning.whole import of_producers
from offsets_log.columnar.scan.layout import Layout
from offsets_log.events import EVERYTHING, Event, batch_events
from offsets_log.log_format.batch import LOG_OVERHEAD, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import OFFSET_COMMIT_TYPES

ROOM = 1 << 12
_GROUP_TYPES = frozenset(range(a.KEY_TYPES)) - OFFSET_COMMIT_TYPES


def asked_for(log: PartitionLog, needs: Needs) -> Iterator[Event]:
    """Yield groups' records, and offsets of those groups of which more than the first choice is kept, in log order.

    Raises:
        OffsetsLogError: a batch or record in the log cannot be read at all.
    """
    groups = {group for group, _, _ in needs.keys} | needs.levels.keys()
    for event in _events(log, Selection(lambda group: True, record_types=_GROUP_TYPES)):
        if event.decoded is None or not event.decoded.is_offset_commit:
            yield event
    for event in _events(log, Selection(groups.__contains__)) if groups else ():
        if event.decoded is not None and event.decoded.group in groups:
            yield event


def _events(log: PartitionLog, selection: Selection) -> Iterator[Event]:
    """Yield events, some of which nobody asked for."""
    return (event for event in undamaged(selected_events(log, selection)) if isinstance(event, Event))


def of_transactions(log: PartitionLog) -> Iterator[Event | tuple[int, int]]:
    """Return markers, and producer and offset of each transactional record, in the order of an undamaged log."""
    layout, found = Layout(log), np.zeros(ROOM, np.int64)
    for segment, data in zip(log.segments, layout.data, strict=True):
        at = 0
        while at < len(data):
            found[:] = -1
            at = int(of_producers(data, at, found))
            for position in found[found >= 0].tolist():
                size = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD].tobytes()) + LOG_OVERHEAD
                batch = decode_batch_header(data[position : position + size].tobytes(), position)
                if batch.is_control:
                    events = batch_events(log, segment, batch, EVERYTHING, None)
                    yield from (event for event in events if isinstance(event, Event))
                else:
                    items = iter_records(batch)
                    yield from ((batch.producer_id, item.offset) for item in items if isinstance(item, Record))
