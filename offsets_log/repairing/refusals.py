"""The search for all records that end a load, each as if those before it did not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from offsets_log.events import BatchEnd, BatchStart, LogEvent, decode_event
from offsets_log.log_format.partition_log import NOTHING_TOLD, PartitionLog
from offsets_log.repairing.picked import Picked
from offsets_log.repairing.picking import Picking
from offsets_log.repairing.unloadable import Problems, Unloadable
from offsets_log.repairing.writing import Join
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.fold import replay_into
from offsets_log.replay.partial import PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.refusal import verdict_on
from offsets_log.replay.releases import Release


def find_unloadable(log: PartitionLog, release: Release, *, in_bulk: bool = False, join: Join = b"".join) -> Unloadable:
    """Return what ends the load on a release in a log whose damage was left out.

    The search is repeated without what it has found: batches that had the same offsets may stay then.

    Args:
        in_bulk: by kernels, which is worth their start for a large log.
        join: makes the segments that stay if something else is left out; kernels read these.
    """
    known: dict[int, Problem] = {}
    while True:
        found = _in_bulk(log, release, known, join) if in_bulk else None
        if found is None:
            found = _one_by_one(log, release, known)
        if found.keys() <= known.keys():
            return Unloadable(release, known)
        known = found | known


def _in_bulk(log: PartitionLog, release: Release, known: Problems, join: Join) -> dict[int, Problem] | None:
    from offsets_log.repairing.bulk_refusals import problems_in_bulk

    found = problems_in_bulk(log, release, known, join)
    return None if found is None else _ending({}, found)


def _one_by_one(log: PartitionLog, release: Release, known: Problems) -> dict[int, Problem]:
    """Return what ends the load of what stays without what is known to end it.

    Such a record is left out before the next one is looked at: without it, later records of its group may be sound.
    """
    problems: dict[int, Problem] = {}
    state = PartialState(release.profile)
    start = log.checkpoints.log_start_offset or 0
    picking = Picking(log, Unloadable(release, known))
    replay_into(state, _loaded(picking, release, start, problems), on_damage=lambda damage: None)
    if picking.end_offset < start:  # it makes no sense, and is not repeated
        return _one_by_one(replace(log, checkpoints=NOTHING_TOLD), release, known)
    return _ending(problems, finish(state).problems)


def _ending(problems: dict[int, Problem], found: Iterable[Problem]) -> dict[int, Problem]:
    """Add the problems that end a load where none is known yet."""
    for problem in found:
        if not problem.is_served:
            problems.setdefault(problem.record_offset, problem)
    return problems


def _loaded(picking: Picking, release: Release, start: int, problems: dict[int, Problem]) -> Iterator[LogEvent]:
    """Yield the events of a log from its start, without records that end the load whatever precedes them."""
    for item in picking.items():
        if not isinstance(item, Picked) or item.header.next_offset <= start:
            continue
        yield BatchStart(item.segment, item.header, item.first_offset)
        for record in item.records:
            event = decode_event(
                picking.log, item.segment, item.header, record, None, batch_base_offset=item.first_offset
            )
            if not item.header.is_control:
                error = None if event.damage is None else event.damage.error
                verdict = verdict_on(record, event.decoded, error, release.profile)
                if isinstance(verdict, Problem):
                    problems[record.offset] = verdict
                    continue
            yield event
        yield BatchEnd(item.segment, item.header, item.header.next_offset)
