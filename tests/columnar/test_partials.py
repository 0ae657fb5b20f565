"""The plain state of pieces that kernels have read: joined it is that of one replay of the whole log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offsets_log.columnar.folds.replay import Piece
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.partial import partial_state
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.events import EVERYTHING
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.partial import PartialState, ProducerState
from offsets_log.replay.profile import PROFILES, Profile
from tests.columnar.test_equal_engines import EACH_PROFILE, build
from tests.conftest import in_turn, log_directories, read_partitions


def places(log: PartitionLog) -> list[tuple[ScanPlace, int]]:
    """Where whole batches begin behind whole ones, with the offset read before."""
    found = []
    last = -1
    is_sure = True
    for segment, item in iter_log(log):
        if isinstance(item, RecordBatch):
            if is_sure:
                found.append((ScanPlace(log.segments.index(segment), item.position), last))
            last = item.last_offset
        is_sure = isinstance(item, RecordBatch)
    return found


@pytest.mark.parametrize(("name", "profile"), in_turn(PROFILES, with_all=["random-java"]))
def test_the_plain_state_of_each_piece_joins_to_that_of_a_replay(
    recording: Callable[[str], Path], name: str, profile: str
) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_joined(log, PROFILES[profile], 3)


@EACH_PROFILE
def test_what_a_transaction_cancels_in_a_later_piece_than_it_wrote_it(profile: Profile) -> None:
    """Its tombstone concerns the value before it, also where its marker stands in the piece of the tombstone."""
    log = build([("commit", "g", 0, 7, 1), ("tombstone", "g", 0, 7, 0), ("end", "", 0, 7, 1)]).log
    assert_joined(log, profile, 2)


def assert_joined(log: PartitionLog, profile: Profile, pieces: int) -> None:
    found = PartialState(profile)
    for begin, last_offset, end in cut(log, pieces):
        order, state = ScanOrder(log, EVERYTHING, None), ColumnarState(profile)
        with Scanner() as scanner:
            cursor = Cursor(begin, last_offset, last_offset + 1, entered=begin.segment_index)
            Piece(order, cursor, scanner, lambda seen: None, state).run(end, lambda size_bytes: None)
            found.merge(partial_state(order.layout, state, scanner))
    assert plain(found) == plain(replay(iter_events(log), profile, on_damage=lambda damage: None))


def cut(log: PartitionLog, count: int) -> Iterator[tuple[ScanPlace, int, ScanPlace]]:
    """So many pieces of a log: where each begins, the offset read before, where it ends."""
    found = places(log)
    begins = [(ScanPlace(0, 0), -1), *sorted({found[len(found) * i // count] for i in range(1, count) if found})]
    ends = [place for place, _ in begins[1:]] + [ScanPlace(len(log.segments), 0)]
    for (begin, last_offset), end in zip(begins, ends, strict=True):
        if begin < end:
            yield begin, last_offset, end


def plain(state: PartialState) -> tuple[Any, ...]:
    """What a state comes to; what later pieces alone ask of producers is left out where there is nothing."""
    producers = {each: found for each, found in state.producers.items() if found != ProducerState()}
    served = finish(state)
    problems = sorted(map(repr, served.problems))
    return state.keys, producers, served.groups, problems, state.topic_names
