"""When the logs ended, where some record is of a time that a clock far ahead wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import batches_of
from offsets_log.rows.tables import partition_name
from offsets_log.words import counted, shown_span, shown_time

if TYPE_CHECKING:
    from offsets_log.session.inputs import Inputs

AHEAD_MS = 900_000
"""How far beyond the logs' end a record's time may be; ages up to ``transaction.max.timeout.ms`` stay what they are."""

Newest = Mapping[int | None, int | None]
"""Offsets partition → the latest time of its records, in epoch milliseconds; None or −1 without one."""


def newest_ms(inputs: Inputs, newest: Newest) -> int:
    """Return the latest time of a record, −1 without one; where it is far beyond the logs' end, when they end."""
    latest = max((one for one in newest.values() if one is not None), default=NO_TIMESTAMP)
    end = _end_ms(inputs)
    return latest if end is None or latest <= end + AHEAD_MS else end


def iter_ahead(inputs: Inputs, newest: Newest) -> Iterator[str]:
    """Yield a sentence for each log with records of times far beyond the logs' end. Raises OffsetsLogError."""
    if (end := _end_ms(inputs)) is None:
        return
    for log in inputs.logs:
        if (newest.get(log.offsets_partition) or NO_TIMESTAMP) <= end + AHEAD_MS:
            continue
        ahead = [batch for batch in batches_of(log) if batch.max_timestamp_ms > end + AHEAD_MS]
        if ahead:
            last_ms = max(batch.max_timestamp_ms for batch in ahead)
            batches = counted(len(ahead), "batch", "batches")
            yield (
                f"offsets partition {partition_name(log.offsets_partition)}: {batches}, the first at record offset "
                f"{ahead[0].base_offset}, of times up to {shown_time(last_ms)}, {shown_span(last_ms - end)} after the "
                f"logs' end: a clock was wrong; ages are counted to the logs' end, {shown_time(end)}"
            )


def _end_ms(inputs: Inputs) -> int | None:
    """Return the time of the logs' last batches, as ``end-30s`` has it; None where that is not known."""
    return inputs.newest_ms if inputs.are_open else None
