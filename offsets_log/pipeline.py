"""Start reading here: the whole way from bytes to answers, on one screen.

    bytes ─► segments ─► batches ─► records ─► typed keys and values ─► partial states ─► what the broker would serve
    disk     log_format.partition_log  …record     messages.registry        replay.partial      replay.coordinator_state

`iter_events` walks one offsets partition and gives every record with all that is known of it (`events` has what comes
out); `replay` folds the same events into a partial state (`replay.fold` says how), which
`coordinator_state.finish` turns into the coordinator's memory. What cannot be read comes out of both as a `Damage`, in
its place, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, LogEnd, LogEvent, TailFound, Until, Wants, batch_events
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing, missing_before, missing_behind, missing_between
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.segment import Tail
from offsets_log.replay.fold import OnDamage, replay_into
from offsets_log.replay.partial import PartialState
from offsets_log.replay.profile import Profile


def iter_events(
    log: PartitionLog,
    *,
    start: int = 0,
    until: Until = EVERYTHING,
    release: tuple[int, int] | None = None,
    wants: Wants | None = None,
) -> Iterator[LogEvent]:
    """Yield everything in one offsets partition, in log order.

    Args:
        start: only batches that reach this record offset.
        until: where to stop.
        release: the Kafka release that wrote the log, where layouts share a version number.
        wants: whether to decode a data record; one that is not wanted comes undecoded, right or wrong.
    """
    reading = log.since(start) if start else log
    entered = reading.segments[0] if reading.segments else None
    next_offset, is_broken = (entered and entered.base_offset) or 0, False
    if not start:
        yield from missing_before(log, until.record_offset)
    for segment, item in iter_log(reading):
        if segment is not entered:
            yield from missing_between(
                reading, segment, next_offset, is_broken=is_broken, until_offset=until.record_offset
            )
            entered = segment
        match item:
            case Damage():
                is_broken = True
                yield item
            case Tail():
                yield tail_found(log, segment, item, next_offset, until)
            case RecordBatch():
                if until.stops_before(item):
                    return
                next_offset, is_broken = item.next_offset, False
                if next_offset > start:
                    yield from batch_events(log, segment, item, until, release, wants)
    if entered is not None:
        yield from log_end(reading, entered, next_offset, until, is_broken=is_broken)


def tail_found(log: PartitionLog, segment: Segment, tail: Tail, next_offset: int, until: Until) -> TailFound:
    """Return a tail, and how much log is missing behind the offset where the log goes on."""
    behind = missing_behind(log, next_offset, until_offset=until.record_offset)
    return TailFound(segment, tail, sum(missing.count for missing in behind if missing.is_lost))


def log_end(
    log: PartitionLog, entered: Segment, next_offset: int, until: Until, *, is_broken: bool
) -> Iterator[Missing | LogEnd]:
    """Yield what is to be told where all batches of a partition were read.

    Args:
        entered: the last segment that holds anything.
        next_offset, is_broken: as of `missing_between`.
    """
    last, until_offset = log.segments[-1], until.record_offset
    if last is not entered:
        yield from missing_between(log, last, next_offset, is_broken=is_broken, until_offset=until_offset)
    yield from missing_behind(log, next_offset, is_broken=is_broken, until_offset=until_offset)
    if until_offset is None:
        yield LogEnd(last.base_offset or 0)


def replay(events: Iterable[LogEvent], profile: Profile, *, on_damage: OnDamage) -> PartialState:
    """Fold the events of one offsets partition, or of a piece of one, into a partial state.

    Args:
        on_damage: called for every piece that could not be read, in log order.
    """
    state = PartialState(profile)
    replay_into(state, events, on_damage=on_damage)
    return state
