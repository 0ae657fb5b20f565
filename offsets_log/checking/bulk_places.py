"""Where in a log the findings of a bulk check are: batches and records found again by their offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from offsets_log.checking.places import FindingPlace, find_places, places_among
from offsets_log.columnar import arrays as a
from offsets_log.columnar.choose.selected import selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds import inspection
from offsets_log.columnar.scan.layout import Layout
from offsets_log.columnar.wire import batches as bt
from offsets_log.events import EVERYTHING, Event, Until, batch_events
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.partition_log import PartitionLog, Segment


class Finder:
    """Finds records of a log that was read in bulk.

    Args:
        is_whole: nothing of it is damaged.
        until, release: what it was read with.
    """

    def __init__(
        self, log: PartitionLog, layout: Layout, *, is_whole: bool, until: Until, release: tuple[int, int] | None
    ) -> None:
        self.log = log
        self.layout = layout
        self.is_whole = is_whole
        self.until = until
        self.release = release

    def places(self, record_offsets: Collection[int]) -> dict[int, FindingPlace]:
        """As `find_places`."""
        if not self.is_whole or self.until != EVERYTHING:
            return find_places(self.log, record_offsets)
        return places_among(self._batches(np.array(sorted(record_offsets), np.int64)), record_offsets)

    def _batches(self, wanted: a.Int64s) -> Iterator[tuple[Segment, RecordBatch]]:
        """Yield the batches that hold record offsets, in log order."""
        for index, data in enumerate(self.layout.data):
            progress, positions = np.zeros(1, np.int64), np.zeros(len(wanted), np.int64)
            inspection.locate(data, wanted, progress, positions)
            for position in np.unique(positions[: progress[0]]).tolist():
                yield self.log.segments[index], self._batch(index, position)
            wanted = wanted[progress[0] :]

    def _batch(self, index: int, position: int) -> RecordBatch:
        data = self.layout.data[index]
        length = int.from_bytes(data[position + bt.LENGTH : position + bt.LOG_OVERHEAD].tobytes(), signed=True)
        return decode_batch_header(data[position : position + bt.LOG_OVERHEAD + length].tobytes(), position)

    def batch_at(self, at: int) -> tuple[Segment, RecordBatch]:
        """Return the batch that begins at a position in the log."""
        index = int(np.searchsorted(self.layout.begins, at, side="right")) - 1
        while not self.layout.sizes[index]:
            index -= 1
        return self.log.segments[index], self._batch(index, at - self.layout.begins[index])

    def record_at(self, at: int, record_offset: int) -> Event:
        """Return a record of a batch."""
        segment, batch = self.batch_at(at)
        events = batch_events(self.log, segment, batch, EVERYTHING, self.release)
        return next(event for event in events if isinstance(event, Event) and event.record.offset == record_offset)

    def of_groups(self, groups: Collection[str]) -> Iterator[Event]:
        """Yield the data records of some groups that can be read."""
        selection = Selection(group=lambda name: name in groups)
        for event in selected_events(self.log, selection, until=self.until, release=self.release):
            if isinstance(event, Event) and event.decoded is not None and event.decoded.group in groups:
                yield event
