"""The search for records that end a load, by kernels: only groups of which one is refused are replayed in Python."""

from __future__ import annotations

from collections.abc import Iterator, Set

from offsets_log.broker.bulk import ANY_EPOCH
from offsets_log.cleaner.folder import FolderFile
from offsets_log.columnar.choose.selected import selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds.replay import Replayed, replay_logs
from offsets_log.columnar.materialize.timelines import timelines
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.repairing.bulk import items_in_bulk
from offsets_log.repairing.left_out import LeftOut
from offsets_log.repairing.picking import Picking
from offsets_log.repairing.unloadable import Problems, Unloadable
from offsets_log.repairing.writing import Join, repair
from offsets_log.replay.coordinator_state import finish, settle_groups
from offsets_log.replay.fold import replay_into
from offsets_log.replay.partial import PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.refusal import verdict_on
from offsets_log.replay.releases import Release


def problems_in_bulk(
    log: PartitionLog, release: Release, known: Problems, join: Join = b"".join
) -> list[Problem] | None:
    """Return what ends the load of what stays without what is known to end it.

    None if the log begins behind the beginning of its first segment.

    A record that is refused though it can be decoded changes its group in a replay, but not in a log without it.

    Args:
        join: makes the segments that stay if something is left out for another reason.
    """
    if (log.checkpoints.log_start_offset or 0) > (log.segments[0].base_offset or 0):
        return None
    profile, unloadable = release.profile, Unloadable(release, known)
    picking = Picking(log, unloadable, leader_epoch=ANY_EPOCH)
    if any(isinstance(item, LeftOut) for item in items_in_bulk(picking)):
        log = _left(log, unloadable, join)
    (replayed,) = replay_logs([log], profile, note=lambda log: lambda seen: None)
    refused = replayed.state.problems
    groups = {problem.group for problem in refused if problem.group is not None}
    others = [problem for problem in _of_groups(replayed) if problem.group not in groups]
    return [*refused, *others, *(_of_refused(log, groups, profile) if groups else ())]


def _left(log: PartitionLog, unloadable: Unloadable, join: Join) -> PartitionLog:
    """Return what stays of a log."""
    segments: list[Segment] = []

    def emit(file: FolderFile) -> None:
        if file.name.endswith(".log"):
            segments.append(Segment(file.name, int(file.name[:20]), join(file.pieces)))

    repair(log, emit, unloadable=unloadable, in_bulk=True)
    return PartitionLog(log.offsets_partition, tuple(segments))


def _of_groups(replayed: Replayed) -> list[Problem]:
    """Return the problems of groups that lie in the order of their records."""
    state = replayed.state
    with Scanner() as scanner:
        found = dict(timelines(replayed.layout, state, scanner, whole_groups=True))
    return settle_groups(state.profile, found, committed=set(), pending=set(), end_offset=state.end_offset)[1]


def _of_refused(log: PartitionLog, groups: Set[str], profile: Profile) -> list[Problem]:
    """Return the problems of groups without the records that are refused whatever precedes them."""
    state = PartialState(profile)
    replay_into(state, _taken(log, groups, profile), on_damage=lambda damage: None)
    return [problem for problem in finish(state).problems if problem.group in groups]


def _taken(log: PartitionLog, groups: Set[str], profile: Profile) -> Iterator[LogEvent]:
    for event in selected_events(log, Selection(groups.__contains__)):
        if isinstance(event, Event) and event.decoded is not None and not event.batch.is_control:
            verdict = verdict_on(event.record, event.decoded, None, profile)
            if event.decoded.group in groups and not isinstance(verdict, Problem):
                yield event
