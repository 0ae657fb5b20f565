"""What a bound by time leaves out though it is within it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import partition_name
from offsets_log.serving.log_reader import AHEAD_MS
from offsets_log.words import counted, shown_time

if TYPE_CHECKING:
    from offsets_log.columnar.scan.time_bound import Stop


def is_of_wrong_clock(stop: Stop, end_ms: int | None) -> bool:
    """Whether the batch that ends the reading is of a time that the logs' end speaks against."""
    return end_ms is not None and stop.time_ms > end_ms + AHEAD_MS


def of_unread(
    stops: Iterable[tuple[PartitionLog, Stop]],
    option: str = "--until-offset",
    end_ms: int | None = None,
    is_told: Callable[[PartitionLog, Stop], bool] = lambda log, stop: False,
) -> Iterator[str]:
    """Yield a sentence for each log of which a bound by time leaves out batches that are within it, then what helps.

    Args:
        option: what bounds by record offset instead.
        end_ms: when the logs end, epoch ms: what is far behind it has the time of a wrong clock; None if not known.
        is_told: of which nothing is to be said again.
    """
    bounds, is_said = [], False
    for log, stop in stops:
        partition = log.offsets_partition
        bounds.append(f"{option} {'' if partition is None else f'{partition}:'}{stop.end_offset}")
        if stop.batches and not is_told(log, stop):
            is_said = True
            yield (
                f"offsets partition {partition_name(partition)} is read only below record offset {stop.record_offset}, "
                f"where a batch has the time {shown_time(stop.time_ms)}; "
                f"{counted(stop.batches, 'later batch', 'later batches')}, the last of which ends with record offset "
                f"{stop.end_offset - 1}, {'is of a time' if stop.batches == 1 else 'are of times'} before the bound "
                "again and not read"
            )
        elif is_of_wrong_clock(stop, end_ms):
            yield (
                f"offsets partition {partition_name(partition)} is read only below record offset {stop.record_offset}, "
                f"where a batch has the time {shown_time(stop.time_ms)}, long after the logs' end: a clock was wrong, "
                f"and no bound by time reads it; {option} does"
            )
    if is_said:
        yield f"instead of the time, {' '.join(bounds)} reads them, too"
