"""States of pieces as rows and joined again: in any buckets of groups the same as one replay of the whole log."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.folds.replay import Piece, Replay
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.partial import partial_state
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.columnar.shuffle.partials import SCHEMA, Joined, join, partial_table, table_of_partial
from offsets_log.columnar.shuffle.pieces import Bounds, replay_piece
from offsets_log.errors import InputError
from offsets_log.events import EVERYTHING, BatchStart, LogEvent
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import PartialState, ProducerState
from offsets_log.replay.profile import PROFILES, Profile
from tests.columnar.test_equal_engines import EACH_PROFILE, STEPS, build
from tests.conftest import DISTINCT, in_turn, log_directories, read_partitions
from tests.sizes import examples


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


def tables_of_pieces(log: PartitionLog, profile: Profile, count: int) -> Iterator[pa.Table]:
    """The log cut into so many pieces, each read apart."""
    cuts = places(log)[1:]
    chosen = [(ScanPlace(0, 0), -1), *(cuts[len(cuts) * i // count] for i in range(1, count) if cuts)]
    chosen = sorted(set(chosen))
    ends = [place for place, _ in chosen[1:]] + [ScanPlace(len(log.segments), 0)]
    for number, ((begin, last_offset), end) in enumerate(zip(chosen, ends, strict=True)):
        bounds = Bounds(begin, last_offset, end, None)
        layout, state, _ = replay_piece(Replay(log, profile), bounds, lambda seen: None)
        with Scanner() as scanner:
            yield numbered(partial_table(layout, state, scanner, members=True), number)


def tables_of_runs(log: PartitionLog, profile: Profile, count: int) -> Iterator[pa.Table]:
    """The same by the construct path."""
    runs: list[list[LogEvent]] = [[]]
    batches = len(places(log))
    seen = 0
    for event in iter_events(log):
        if isinstance(event, BatchStart):
            if seen * count // max(batches, 1) > len(runs) - 1:
                runs.append([])
            seen += 1
        runs[-1].append(event)
    for number, run in enumerate(runs):
        yield numbered(table_of_partial(replay(run, profile, on_damage=lambda damage: None)), number)


def numbered(table: pa.Table, piece: int) -> pa.Table:
    at = SCHEMA.get_field_index("piece")
    return table.set_column(at, SCHEMA.field(at), pa.array([piece] * len(table), pa.int32()))


def buckets_of(table: pa.Table, count: int) -> Iterator[pa.Table]:
    """Rows of groups by buckets, the markers in each."""
    names = sorted(name for name in table["group"].unique().to_pylist() if name is not None)
    for bucket in range(count):
        chosen = pc.is_in(table["group"], pa.array(names[bucket::count], pa.string()))
        yield table.filter(pc.or_(chosen, pc.equal(table["kind"], "producer")))


def told(rows: list[dict[str, Any]]) -> list[str]:
    names = (
        "group", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "commit_timestamp_ms",
        "expire_timestamp_ms", "topic_id", "record_offset", "producer_id", "producer_epoch",
    )  # fmt: skip
    return sorted(json.dumps([row[name] for name in names]) for row in rows)


def values_of(values: Any) -> list[str]:
    return told([value._asdict() for value in values])


def assert_equal(expected: CoordinatorState, found: list[Joined]) -> None:
    committed = [row for part in found for row in part.table.take(pa.array(part.committed)).to_pylist()]
    pending = [row for part in found for row in part.table.take(pa.array(part.pending)).to_pylist()]
    assert told(committed) == values_of(expected.committed)
    assert told(pending) == values_of(expected.pending)
    groups = {name: group for part in found for name, group in part.groups.items()}
    assert pickle.loads(pickle.dumps(groups)) == expected.groups


def check(log: PartitionLog, profile: Profile, pieces: int, buckets: int, tables: Callable[..., Any]) -> None:
    expected = finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
    table = pa.concat_tables(tables(log, profile, pieces))
    found = [join(part, profile, end_offset=expected.end_offset, release=None) for part in buckets_of(table, buckets)]
    assert_equal(expected, found)


@pytest.mark.parametrize("tables", [tables_of_pieces, tables_of_runs])
@pytest.mark.parametrize("name", DISTINCT)
def test_recordings_in_pieces(name: str, tables: Any, recording: Callable[[str], Path]) -> None:
    """Profiles in turn: each meets a partition of every recording."""
    ways = list(zip(PROFILES.values(), (3, 2, 4), strict=True))
    for directory in log_directories(recording(name))[:1]:
        for turn, log in enumerate(read_partitions(directory).values()):
            profile, pieces = ways[turn % len(ways)]
            check(log, profile, pieces, 2, tables)


@EACH_PROFILE
@examples(160)
@given(steps=STEPS, pieces=st.sampled_from([1, 2, 5]), tables=st.sampled_from([tables_of_pieces, tables_of_runs]))
def test_generated_logs_in_pieces(profile: Profile, steps: Any, pieces: int, tables: Callable[..., Any]) -> None:
    check(build(steps).log, profile, pieces, 3, tables)


def test_a_log_whose_order_is_not_that_of_its_offsets_is_read_in_one_piece() -> None:
    """Of pieces nobody knows what such a message replaces in another (``records:M5``)."""
    log = build([("wrap", "g", 0, -1, 3), ("commit", "g", 0, -1, 0), ("commit", "g", 1, -1, 0)]).log
    check(log, PROFILES["classic"], 1, 1, tables_of_pieces)
    (begin, last_offset), (end, _), *_ = places(log)
    with pytest.raises(InputError, match=r"split=false"):
        replay_piece(Replay(log, PROFILES["classic"]), Bounds(begin, last_offset, end, 1), lambda seen: None)


def test_an_empty_log_and_one_of_a_marker_alone() -> None:
    for log in (PartitionLog(0, (Segment("empty.log", 0, b""),)), build([("end", "", 0, 7, 1)]).log):
        check(log, PROFILES["modern"], 2, 1, tables_of_pieces)


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
