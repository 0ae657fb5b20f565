"""Pieces of a log as bytes, joined where the log is another's: the same as one replay of the whole log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.materialize.values import finish as finish_bulk
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.packed import Carried, join, pack, unpack
from offsets_log.errors import Damage
from offsets_log.events import TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.profile import PROFILES, Profile
from tests.columnar.test_equal_engines import EACH_PROFILE, STEPS, build
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many


def pieces_of(log: PartitionLog, profile: Profile, count: int) -> list[bytes]:
    """Each read by a replay of its own, as in a process of its own."""
    made = []
    for number in range(len(Replay(log, profile, pieces=count).cuts)):
        alone = Replay(log, profile, pieces=count)
        part = alone.replay_piece(alone.cuts[number], alone.ends[number], lambda size_bytes: None)
        made.append(pack(part, alone.order.layout))
    return made


def told(seen: Seen) -> tuple[Any, ...]:
    match seen:
        case Damage(error, raw):
            return type(error), str(error), raw
        case TailFound(segment, tail, lost):
            return segment.file, tail, lost
        case Missing():
            return (seen,)


def joined(log: PartitionLog, profile: Profile, count: int) -> tuple[CoordinatorState, list[tuple[Any, ...]]]:
    seen: list[Seen] = []
    whole = Replay(log, profile, pieces=count)
    replayed = join(pieces_of(log, profile, count), whole, seen.append)
    with replayed.scanner() as carried:
        return finish_bulk(replayed.layout, replayed.state, carried), [*map(told, seen)]


def plain(state: CoordinatorState) -> tuple[Any, ...]:
    return (
        sorted(state.committed), sorted(state.pending), state.groups, sorted(map(repr, state.problems)),
        state.topic_names, state.end_offset,
    )  # fmt: skip


def check(log: PartitionLog, profile: Profile, count: int) -> None:
    expected = finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
    found, seen = joined(log, profile, count)
    assert plain(found) == plain(expected)
    notes: list[Seen] = []
    alone = Replay(log, profile)
    alone.join([unpack(data, alone) for data in pieces_of(log, profile, 1)], notes.append)
    assert seen == [*map(told, notes)]


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name))[:1]:
        for log in read_partitions(directory).values():
            for profile, count in zip(PROFILES.values(), (3, 2, 4), strict=True):
                check(log, profile, count)


@EACH_PROFILE
@examples(160)
@given(steps=STEPS, count=st.sampled_from([1, 2, 5]))
def test_generated_logs(profile: Profile, steps: Any, count: int) -> None:
    check(build(steps).log, profile, count)


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / "kafka-4.3-mixed.tar.xz", PACKED / "kafka-lifetime.tar.xz"]))
    for data, _ in zip(hostile_segments(seeds, 7), range(so_many(60)), strict=False):
        check(PartitionLog(0, (Segment("fuzz.log", 0, data),)), PROFILES["modern"], 3)


def test_empty_logs_and_offsets_that_are_not_in_their_order() -> None:
    """Of such pieces nobody knows what a message replaces in another: they are read again (``records:M5``)."""
    wrapped = [("wrap", "g", 0, -1, 3), ("commit", "g", 0, -1, 0), ("commit", "g", 1, -1, 0)]
    for steps in (wrapped, [("end", "", 0, 7, 1)]):
        check(build(steps).log, PROFILES["classic"], 3)
    check(PartitionLog(0, (Segment("empty.log", 0, b""),)), PROFILES["modern"], 2)


def test_what_came_with_pieces_is_not_looked_up_in_the_log(recording: Callable[[str], Path]) -> None:
    log = read_partitions(recording("kafka-4.3-mixed") / "log")[3]
    whole, profile = Replay(log, PROFILES["modern"], pieces=3), PROFILES["modern"]
    packed = [unpack(data, whole) for data in pieces_of(log, profile, 3)]
    places = np.concatenate([piece.places for piece in packed])
    nowhere = Replay(PartitionLog(3, ()), profile).order.layout
    with Carried(packed) as carried:
        _, table = carried.gather(nowhere, places)
    assert len(table) == len(places) > 10
