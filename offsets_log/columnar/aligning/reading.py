"""Read the logs of topics that users write to as rows of `records`, in chunks: by the kernel, else record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.jit.records import Rows, Table
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.columnar.wire import batches as bt
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Buffer

ROWS = 1 << 16
"""Rows of a chunk, unless one batch has more."""

RELEASED_AT_ONCE = 1 << 24

BEGINNING = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Headers:
    """Which headers tell a record's offset in another cluster, and its partition there.

    Attributes:
        asked: (name, form) of the header with the offset and of the one with the partition; the forms are those of
            `records`.
    """

    asked: Sequence[tuple[bytes, int]] = ((b"x-original-offset", r.ANY_FORM), (b"x-source-partition", r.ANY_FORM))

    def arrays(self) -> tuple[a.Bytes, Table[r.Header]]:
        """Return them as the kernel takes them."""
        names = b"".join(name for name, _ in self.asked)
        begins = np.cumsum([0, *(len(name) for name, _ in self.asked)])[:-1]
        rows = [(at, len(name), form) for at, (name, form) in zip(begins, self.asked, strict=True)]
        return np.frombuffer(names, np.uint8), Table(r.Header, np.array(rows, r.Header.dtype))


NO_HEADERS = Headers()


@dataclass(slots=True)
class RowReader:
    """Reads logs with the buffers of one thread.

    Args:
        seed: of the hashes; both sides of a comparison need the same.
        on_damage: takes what could not be read.
        release: told of bytes of a segment that are not looked at any more: where they begin and end.
    """

    scanner: Scanner
    seed: int
    headers: Headers = NO_HEADERS
    on_damage: Callable[[Damage], None] = lambda damage: None
    release: Callable[[Buffer, int, int], None] = lambda buffer, begin, end: None
    _rows: Table[r.Noted] = field(default_factory=lambda: Table(r.Noted, ROWS))

    def chunks(self, log: PartitionLog, *, least: int = 0, since: int = BEGINNING) -> Iterator[Rows]:
        """Yield the rows of a log in chunks, in the order of offsets.

        Args:
            least: no batch that ends below this offset is read.
            since: nor those before the first batch that has a record of this time, or times of the log's own.
        """
        layout = Layout(log.since(least))
        asked = r.Asked(self.seed, *self.headers.arrays())
        state = r.ReadingState()
        state.least, state.since, state.last_offset = least, since, -1
        for index, data in enumerate(layout.data):
            state.at = state.window_count = state.window_next = 0
            released = 0
            while state.at < len(data):
                if state.at - released > RELEASED_AT_ONCE:
                    self.release(layout.log.segments[index].buffer, released, int(state.at))
                    released = int(state.at)
                outcome = r.note(state, data, self.scanner.window, self.scanner.table, asked, self._rows)
                match outcome:
                    case oc.NEEDS_WINDOW:
                        state.window_count = self.scanner.fill_window(data, int(state.at), len(data))
                        state.window_next = 0
                    case oc.NEEDS_RECORDS:
                        self._rows = Table(r.Noted, int(state.needed))
                    case oc.FULL:
                        yield self._taken(state)
                    case oc.NOT_PLAIN:
                        if state.count:
                            yield self._taken(state)
                        yield from self._slow_path(layout, index, state)
            self.release(layout.log.segments[index].buffer, released, len(data))
        if state.count:
            yield self._taken(state)

    def _taken(self, state: r.ReadingState) -> Rows:
        rows = self._rows.up_to(state.count).copy().rows
        state.count = 0
        return rows

    def _slow_path(self, layout: Layout, index: int, state: r.ReadingState) -> Iterator[Rows]:
        """Read one batch with `log_format`, or go on behind what is damaged."""
        begin = int(state.at)
        for item, last_offset in layout.walk.items(index, begin, int(state.last_offset)):
            if isinstance(item, Damage):
                self.on_damage(item)
            elif isinstance(item, RecordBatch) and item.position > begin:
                state.at = item.position
                return
            elif isinstance(item, RecordBatch):
                state.at, state.last_offset = item.position + item.size_bytes, last_offset
                if last_offset >= state.least:
                    state.since = BEGINNING
                    yield from self._rows_of(item, layout.log.segments[index].file)
                return
        state.at = len(layout.data[index])

    def _rows_of(self, batch: RecordBatch, file: str) -> Iterator[Rows]:
        """Yield the rows of one batch: its records are written again, plainly, for the kernel."""
        if batch.is_control:
            yield np.array([(batch.base_offset, -1, -1, r.IS_CONTROL | r.IS_TRANSACTIONAL, -1, -1)], r.Noted.dtype)
            return
        records = []
        for item in iter_records(batch):
            if isinstance(item, Damage):
                item.error.at(file=file)
                self.on_damage(item)
            else:
                records.append(item)
        if not records:
            return
        flags = r.IS_TRANSACTIONAL * batch.is_transactional + r.IS_APPEND_TIME * (batch.timestamp_type == "log_append")
        plain = RowReader(self.scanner, self.seed, self.headers)
        for rows in plain.chunks(_log_of(records)):
            rows["flags"] |= flags
            yield rows


def _log_of(records: Sequence[Record]) -> PartitionLog:
    """Return records as a log of uncompressed batches, which the kernel takes."""
    return PartitionLog(None, (Segment("", None, b"".join(build_batch([record]) for record in records)),))


def no_times(rows: Rows) -> bool:
    """Whether some record of a chunk has no time of its producer."""
    data = rows["flags"] & r.IS_CONTROL == 0
    return bool((data & ((rows["time"] == bt.NO_TIME) | (rows["flags"] & r.IS_APPEND_TIME != 0))).any())
