"""What `info` counts in bulk against what it counts record by record: the same numbers, in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.folds import replay as columnar
from offsets_log.columnar.folds.surveys import SurveyedState, SurveyingReplay
from offsets_log.columnar.ledger import ledger
from offsets_log.columnar.materialize.values import holdings
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Event, LogEvent, Until
from offsets_log.investigate.survey_counts import SurveyCounts, Surveying
from offsets_log.log_format.batch import time_of
from offsets_log.log_format.control_record import ControlRecord
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import Holdings, finish
from offsets_log.replay.profile import PROFILES
from offsets_log.rows.survey import Survey
from tests.builders import LogBuilder, PartlySlow, record_bytes
from tests.columnar.test_equal_engines import CRASHERS, OF_ONE_KEY, SEEDS, STEPS, all_runs, build
from tests.conftest import PACKED, in_turn, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

EACH_PROFILE = pytest.mark.parametrize("profile", PROFILES)


def shows_topic(name: str) -> bool:
    return not name.endswith("1")


def watched(events: Iterable[LogEvent], found: Survey) -> Iterator[LogEvent]:
    """What the records are, one at a time."""
    kinds, transactions = found.kinds, found.open_transactions
    for event in events:
        match event:
            case Event(control=ControlRecord() as control):
                kinds.add_control_records(control.type)
                if control.ends_transaction:
                    transactions.pop(event.batch.producer_id, None)
            case Event(record=record, decoded=decoded, damage=damage):
                kinds.add_time(time_of(record.timestamp_ms))
                if damage is not None:
                    kinds.add_not_decoded()
                if decoded is not None:
                    kinds.add_records(decoded.record_type, decoded.value_version, decoded.layout)
                    if event.batch.is_transactional and decoded.is_offset_commit:
                        begun = record.offset, record.timestamp_ms, 0
                        offset, time_ms, count = transactions.get(event.batch.producer_id, begun)
                        transactions[event.batch.producer_id] = offset, time_ms, count + 1
        yield event


def one_by_one(log: PartitionLog, profile: str, until: Until) -> list[Any]:
    found = Survey.of(log)
    events = watched(found.watch(iter_events(log, until=until)), found)
    state = finish(replay(events, PROFILES[profile], on_damage=lambda damage: None))
    shown = state.showing(lambda name: True, shows_topic)
    return [*_in_order(found), _counted(state.holdings()), _counted(shown.holdings())]


def by_events(log: PartitionLog, until: Until) -> list[Any]:
    found = Survey.of(log)
    for _ in Surveying(found).watch(iter_events(log, until=until)):
        pass
    return _in_order(found)


def in_bulk(log: PartitionLog, profile: str, until: Until) -> list[Any]:
    found = Survey.of(log)
    (replayed,) = columnar.replay_logs(
        [log],
        PROFILES[profile],
        note=lambda log: lambda seen: None if isinstance(seen, Damage) else found.saw(seen),
        until=lambda log: until,
        replay=partial(SurveyingReplay, question=SurveyCounts),
    )
    with Scanner() as scanner:
        held = [
            holdings(replayed.layout, replayed.state, scanner, shows_group=lambda name: True, shows_topic=topics)
            for topics in (None, shows_topic)
        ]
    assert isinstance(replayed.state, SurveyedState)
    assert isinstance(replayed.state.question, SurveyCounts)
    replayed.state.tell(found)
    replayed.state.question.tell(found)
    return [*_in_order(found), *map(_counted, held)]


def _in_order(found: Survey) -> list[Any]:
    kinds = found.kinds
    counters = [list(counter.items()) for counter in (kinds.record_names, kinds.codecs, kinds.releases)]
    return [*counters, found]


def _counted(held: Holdings) -> tuple[Any, ...]:
    groups = Counter((group.group_id, group.kind, group.is_simple) for group in held.groups)
    return groups, held.offsets, held.orphans


def assert_equal(log: PartitionLog, profile: str = "modern", until: Until = EVERYTHING) -> None:
    expected = one_by_one(log, profile, until)
    assert by_events(log, until) == expected[:-2]
    assert in_bulk(log, profile, until) == expected


@EACH_PROFILE
def test_every_short_run_of_one_key_and_producer(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that are open, ended, and ended in a batch of rows that follows."""
    monkeypatch.setattr(ledger, "ROWS", 7)
    assert_equal(all_runs(OF_ONE_KEY, 3), profile)


def test_what_is_counted_is_read_as_a_release_wrote_it() -> None:
    states = [
        SurveyedState(PROFILES["modern"], SurveyCounts(), release=release, with_newer=True)
        for release in ((3, 7), None)
    ]
    assert [state.release for state in states] == [(3, 7), None]
    assert states[0].newer != states[1].newer


def test_only_offsets_wait_for_the_end_of_a_transaction() -> None:
    """Records of groups that lie in one are no part of it."""
    log = LogBuilder().commit(1, producer=7)
    log.add(record_bytes(2, {"group": "g"}, None, 3), **log.transaction(8))
    *_, found, _, _ = one_by_one(log.log, "modern", EVERYTHING)
    assert list(found.open_transactions) == [7]
    assert_equal(log.log)


@pytest.mark.parametrize(("name", "profile"), in_turn(PROFILES, with_all=["random-java"]))
def test_recordings(name: str, profile: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_equal(log, profile)


@pytest.mark.parametrize("name", ["kafka-4.3-compressed", "kafka-4.3-mixed", "kafka-lifetime", "random-java"])
def test_bounds_of_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for log in read_partitions(log_directories(recording(name))[0]).values():
        for end in (0, 37, 90):
            assert_equal(log, until=Until(record_offset=end))
        assert_equal(log, until=Until(time_ms=1_795_239_300_000))


@EACH_PROFILE
@examples(60)
@given(steps=STEPS, end=st.integers(0, 40))
def test_generated_logs(profile, steps, end) -> None:  # type: ignore[no-untyped-def]
    log = build(steps).log
    assert_equal(log, profile)
    assert_equal(log, profile, Until(record_offset=end))


@EACH_PROFILE
def test_hostile_segments(profile: str) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 230 + [*PROFILES].index(profile)), so_many(150)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), profile)


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 24), so_many(300)))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f"{n}.log", base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(0, files))


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path) -> None:
    assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),)))


def test_a_transaction_goes_on_from_one_batch_of_rows_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was read on the slow path, and markers end what a batch before left open."""
    monkeypatch.setattr(ledger, "ROWS", 50)
    log = PartlySlow(3)
    for producer in range(100):
        log.commit(producer, producer=producer).commit(producer, partition=1, producer=producer)
    for producer in range(0, 100, 2):
        log.end(producer)
    log.commit(7, producer=1)
    *_, found, _, _ = one_by_one(log.log, "modern", EVERYTHING)
    assert list(found.open_transactions) == [*range(1, 100, 2)]
    assert found.open_transactions[1][2] == 3
    assert_equal(log.log)


@EACH_PROFILE
def test_transactions_of_more_producers_than_there_was_room_for(profile: str) -> None:
    log = LogBuilder()
    for producer in range(10_000):
        log.commit(log.offset, producer=producer)
        if producer % 3 == 0:
            log.end(producer // 2, commit=producer % 2 == 0)
    assert_equal(log.log, profile)
