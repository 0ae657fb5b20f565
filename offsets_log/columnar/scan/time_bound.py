"""Where a bound by time ends the reading of a log, and which batches behind that place are of times within it again.

A replay up to a time stops at the first batch that is later: what was appended before it is the state of that moment.
Where a clock jumped, or a time is corrupt, that leaves out batches that are not later at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.batch_rows import BatchRow, Found, batch_rows
from offsets_log.events import Until
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import INT64_MAX, INT64_MIN


@dataclass(frozen=True, slots=True)
class Stop:
    """The batch that ends the reading, and those behind it that are within the bound.

    Attributes:
        record_offset, time_ms: where the batch begins, and its max timestamp.
        batches: how many of those behind it are not later than the bound, usually none.
        end_offset: behind the last of these; without any it is where the batch begins.
    """

    record_offset: int
    time_ms: int
    batches: int
    end_offset: int


@dataclass(slots=True)
class TimeBound:
    """What is known of a run of batches, by their headers.

    Attributes:
        first_later: (offset, time) of the first batch that is later than the bound; None while there is none.
        within: how many batches are not later.
        within_before: of these, those before the first later one.
        end_offset: behind the last of them.
    """

    time_ms: int
    first_later: tuple[int, int] | None = None
    within: int = 0
    within_before: int = 0
    end_offset: int = 0

    def add(self, found: Found) -> None:
        """Add what follows; a batch without a time is neither later nor within, and damage is left out."""
        if not isinstance(found, Table) or not len(found):
            return
        times = found.column(BatchRow.max_timestamp_ms)
        bound = max(INT64_MIN, min(self.time_ms, INT64_MAX))
        is_within = (times <= bound) & (times != NO_TIMESTAMP)
        later = np.flatnonzero(times > bound)
        if self.first_later is None and len(later):
            first = int(later[0])
            self.first_later = int(found[first].base_offset), int(times[first])
            self.within_before = self.within + int(is_within[:first].sum())
        if is_within.any():
            self.within += int(is_within.sum())
            self.end_offset = int(found.column(BatchRow.last_offset)[is_within][-1]) + 1

    @property
    def stop(self) -> Stop | None:
        """Where the reading ends; None where no batch is later than the bound."""
        if self.first_later is None:
            return None
        offset, time_ms = self.first_later
        batches = self.within - self.within_before
        return Stop(offset, time_ms, batches, self.end_offset if batches else offset)


def find_stop(log: PartitionLog, time_ms: int, until_offset: int | None = None, *, in_bulk: bool) -> Stop | None:
    """Return where a bound by time ends the reading of a log; None if it does not.

    Args:
        until_offset: only batches that begin below it are asked about.
        in_bulk: what it is in `batch_rows`.
    """
    bound = TimeBound(time_ms)
    for found in batch_rows(log, Until(until_offset), in_bulk=in_bulk):
        bound.add(found)
    return bound.stop
