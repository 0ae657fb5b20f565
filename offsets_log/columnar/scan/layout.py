"""Hold a partition's segments as arrays, and the buffers with which one thread reads them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.staging import FLUSH_AT
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.libraries import Library
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import LogWalk, PartitionLog, Segment

STAGED = 1 << 12
WINDOW = 1 << 20
WINDOW_BATCHES = 1 << 13
MOST_WINDOW = 1 << 25
"""Maximum number of bytes that one batch may decompress to in a kernel; a larger one is read on the slow path."""


def read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the same bytes as a read-only array, like mapped files."""
    view = array.view()
    view.flags.writeable = False
    return view


class Data(Sequence[a.Bytes]):
    """The bytes of a log's segments."""

    def __init__(self, log: PartitionLog) -> None:
        self._segments = log.segments
        self._here = [None if one.is_fetched else _array(one) for one in log.segments]

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: Any) -> Any:
        here = self._here[index]
        return _array(self._segments[index]) if here is None else here


def _array(segment: Segment) -> a.Bytes:
    return read_only(np.frombuffer(segment.buffer, np.uint8))


class Layout:
    """The segments of a log, one after the other.

    Attributes:
        data: bytes of each segment; those of a store are there while somebody holds them.
        sizes: their lengths.
        begins: where each begins in the log.
    """

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.walk = LogWalk(log)
        self.data = Data(log)
        self.sizes = [segment.length for segment in log.segments]
        self.begins = np.cumsum([0, *self.sizes])[:-1].tolist()


class Scanner:
    """The buffers of one thread. A context manager; not to be shared.

    Attributes:
        staged: records of batches on their way into the state; replaced by a larger table if a batch needs it.
        window, table: decompressed batches, see `decompressed`.
    """

    def __init__(self) -> None:
        self.staged = Table(a.Staged, STAGED)
        self._made = np.zeros(WINDOW, np.uint8)
        self.window = read_only(self._made)
        self.table = np.zeros((WINDOW_BATCHES, dp.COLUMNS), np.int64)
        self._library = Library()

    @property
    def buffers(self) -> a.Buffers:
        """The buffers together, as kernels take them."""
        return a.Buffers(self.staged, self.window, self.table)

    def fill_window(self, data: a.Bytes, position: int, stop: int) -> int:
        """Decompress the run of compressed batches from a position on; return how many, at least one."""
        reach = min(stop, position + len(self._made))  # the window has no room for more
        return self._fill(data, dp.plan(data, position, reach, self.table))

    def _fill(self, data: a.Bytes, planned: int) -> int:
        while not (count := dp.fill(data, self._made, self.table, planned, self._library.addresses)):
            if not self._more_window():
                self.table[0, [dp.BEGIN, dp.END]] = 0, oc.NOT_PLAIN
                return 1
        return int(count)

    def _more_window(self) -> bool:
        size = 2 * len(self._made)
        if size > MOST_WINDOW:
            return False
        self._made = np.zeros(size, np.uint8)
        self.window = read_only(self._made)
        return True

    def more_records(self, count: int) -> None:
        """Make room for a batch of that many records in addition to those staged."""
        self.staged = self.staged.grown(2 * (count + FLUSH_AT))

    def gather(self, layout: Layout, places: a.Int64s) -> tuple[a.Bytes, a.Int64s]:
        """Copy the records at places of a log, int64[n, 2] of (batch, index); return their bytes and `gather.COLUMNS`.

        Raises:
            InputError: a file was changed since it was read.
        """
        order = np.lexsort((places[:, 1], places[:, 0]))
        ordered = places[order]
        table = np.zeros((len(places), ga.COLUMNS), np.int64)
        copied = np.zeros(max(1 << 12, 128 * len(places)), np.uint8)
        bounds = np.searchsorted(ordered[:, 0], [*layout.begins, np.iinfo(np.int64).max])
        used = 0
        for i in np.flatnonzero(np.diff(bounds)).tolist():
            data, part = layout.data[i], slice(bounds[i], bounds[i + 1])
            progress = np.array([0, used, 0, 0], np.int64)
            while progress[0] < part.stop - part.start:
                outcome = ga.gather(data, layout.begins[i], ordered[part], progress, self.buffers, copied, table[part])
                if outcome == oc.NEEDS_ROOM:
                    copied = np.concatenate([copied, np.zeros_like(copied)])
                elif outcome == oc.NEEDS_RECORDS:
                    self.more_records(2 * len(self.staged))
                elif outcome == oc.NEEDS_WINDOW:
                    batches = np.unique(ordered[part][progress[0] :, 0])[: len(self.table)] - layout.begins[i]
                    self.table[: len(batches), dp.BATCH_AT] = batches
                    progress[2:] = self._fill(data, len(batches)), 0
                elif outcome == oc.LOST:
                    raise InputError(
                        "the file was changed while it was read: copy it, and read the copy",
                        file=layout.log.segments[i].file,
                    )
            used = int(progress[1])
        unordered = np.empty_like(table)
        unordered[order] = table
        return copied, unordered

    def __enter__(self) -> Self:
        self._library.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._library.__exit__(kind, error, trace)
