"""Replay in bulk what brokers load of a log's files, where they read them plainly from begin to end.

A load reads every batch once and in order if offsets ascend and the indexes lead to them. Then the files as the broker
has opened them are a log like any other, and `check_logs` tells what a load of it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from offsets_log.broker.bulk import bytes_of
from offsets_log.broker.loading import Loading, ReplayedLoad
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.recovery import OpenLog
from offsets_log.checking.bulk import check_logs, is_loaded_as_read
from offsets_log.checking.bulk_answers import held_by_profiles
from offsets_log.checking.loads import Held
from offsets_log.columnar.folds import inspection
from offsets_log.columnar.folds.replay import replay_logs
from offsets_log.columnar.materialize.values import finish
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.events import EVERYTHING
from offsets_log.log_format.partition_log import NOTHING_TOLD, PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile

Files = tuple[tuple[str, int], ...]
"""The names of an open log's files, and how much of each it holds."""


@dataclass(slots=True)
class BulkLoad:
    """A load that was replayed in bulk: a `ReplayedLoad`.

    Attributes:
        log: the files as they were opened.
        held: what coordinators hold at its end, by rules.
    """

    log: PartitionLog
    release: tuple[int, int] | None
    held: Mapping[Profile, Held]
    end_offset: int
    _finished: dict[Profile, CoordinatorState] = field(default_factory=dict)

    def failure(self, profile: Profile) -> Problem | None:
        """As `ReplayedLoad.failure`."""
        return self.held[profile].failure

    def served(self, profile: Profile) -> Mapping[GroupTopicPartition, int]:
        """As `ReplayedLoad.served`."""
        return self.held[profile].served()

    def finished(self, profile: Profile) -> CoordinatorState:
        """As `ReplayedLoad.finished`."""
        if profile not in self._finished:
            (replayed,) = replay_logs([self.log], profile, note=lambda log: lambda seen: None, release=self.release)
            with Scanner() as scanner:
                self._finished[profile] = finish(replayed.layout, replayed.state, scanner)
        return self._finished[profile]


def replay_loads(loadings: Sequence[Loading]) -> dict[int, ReplayedLoad]:
    """Replay the loads that read their files plainly, and return the replays by ``id`` of the load."""
    profiles = tuple(dict.fromkeys(profile for loading in loadings for profile in loading.profiles))
    made: dict[Files, BulkLoad | None] = {}
    found: dict[int, ReplayedLoad] = {}
    for loading in loadings:
        if loading.until != EVERYTHING or not _is_plain(loading.opened, loading.log):
            continue
        files = tuple((file.file, file.size_bytes) for file in loading.opened.files.values())
        if files not in made:
            made[files] = _loaded(loading, profiles)
        load = made[files]
        if load is not None and load.end_offset == loading.opened.end_offset:
            found[id(loading)] = load
    return found


def _is_plain(opened: OpenLog, log: PartitionLog) -> bool:
    """Whether all of an open log's files are read, each from its beginning, and found by their indexes."""
    files = list(opened.files.values())
    sizes = {segment.file: segment.length for segment in log.segments}
    is_whole = len({file.file for file in files}) == len(files) and all(
        len(file.view) == sizes[file.file] for file in files
    )
    return (
        opened.refusal is None
        and is_whole
        and opened.start_offset <= files[0].base_offset
        and all(map(_has_right_index, files))
    )


def _has_right_index(file: LogFile) -> bool:
    """Whether every entry of the index is of an offset in the batch at its position; batches must be whole."""
    offsets = np.array(file.index.offsets, np.int64) + file.base_offset
    progress, positions = np.zeros(1, np.int64), np.full(len(offsets), -1, np.int64)
    if np.any(np.diff(offsets) <= 0):
        return False
    inspection.locate(bytes_of(file)[: file.size_bytes], offsets, progress, positions)
    return bool(np.array_equal(positions, np.array(file.index.positions, np.int64)))


def _loaded(loading: Loading, profiles: Sequence[Profile]) -> BulkLoad | None:
    """Replay the files of a load by the rules of all releases; None if something in them is not plain."""
    sizes = {file.file: file.size_bytes for file in loading.opened.files.values() if file.size_bytes}
    segments = [
        replace(segment, contents=memoryview(segment.buffer)[: sizes[segment.file]], zeros_behind=0)
        for segment in loading.log.segments
        if segment.file in sizes
    ]
    log = replace(loading.log, segments=tuple(segments), checkpoints=NOTHING_TOLD, beside={})
    if not segments:
        return None
    ((replayed, state),) = check_logs([log], profiles, note=lambda log: lambda seen: None, release=loading.release)
    if not is_loaded_as_read(log, state):
        return None
    return BulkLoad(log, loading.release, held_by_profiles(replayed, state, loading.release), state.end_offset)
