"""The counts of the columnar engine against those of the construct path: the same writers, numbers and damage."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.arrays import LEAST_KEYS
from offsets_log.columnar.folds import replay as folds_replay
from offsets_log.columnar.folds.ledgers import LedgerReplay, LedgerState
from offsets_log.columnar.folds.replay import Replay, replay_logs
from offsets_log.columnar.scan.reading import Threads
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, LogEvent, Until
from offsets_log.investigate.writer_counts import WriterCounts, Writers, count_writers, counting
from offsets_log.investigate.writers import HELD, WRITER_COLUMNS, top_rows
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, Embedded, encode_embedded
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import MODERN, Profile
from offsets_log.rows.activity import Activity
from offsets_log.rows.shown import ALL, Shown
from tests.builders import TIME, UNKNOWN, LogBuilder, member, record_bytes
from tests.columnar import test_newer
from tests.columnar.test_equal_engines import CRASHERS, SEEDS, STEPS, build
from tests.columnar.writers_one_by_one import OneByOne
from tests.conftest import DISTINCT, PACKED, in_turn, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

EACH_PER = pytest.mark.parametrize("per", WRITER_COLUMNS)


FILTERS = (
    Shown(group=lambda name: len(name) % 2 == 1),
    Shown(topic=lambda name: sum(name.encode()) % 2 == 0),
    Shown(lambda name: sum(name.encode()) % 3 != 0, lambda name: sum(name.encode()) % 5 != 0),
)


@lru_cache(maxsize=8)
def logs_of(directory: Path) -> list[PartitionLog]:
    return list(read_partitions(directory).values())


@lru_cache(maxsize=256)
def events_of(log: PartitionLog, until: Until) -> tuple[LogEvent, ...]:
    """What the construct path says of a log: the same for all that is counted in it."""
    return tuple(iter_events(log, until=until))


def one_by_one(logs: list[PartitionLog], per: str, until: Until, shown: Shown) -> tuple[Any, int]:
    writers, damaged = OneByOne(per), 0
    for log in logs:
        events = events_of(log, until)
        writers.add(events, log.offsets_partition, {}, shown)
        damaged += sum(isinstance(event, Damage) or getattr(event, "damage", None) is not None for event in events)
    return top_rows(writers.finish(), "bytes"), damaged


def by_events(logs: list[PartitionLog], per: str, until: Until, shown: Shown) -> Any:
    writers = Writers(per)
    for log in logs:
        for _ in count_writers(events_of(log, until), writers, log.offsets_partition, {}, shown=shown):
            pass
    return top_rows(writers.finish(), "bytes")


def in_bulk(logs: list[PartitionLog], per: str, until: Until, shown: Shown) -> tuple[Any, int]:
    writers, seen = Writers(per), list[Any]()
    how: Any = {"note": lambda log: seen.append, "until": lambda log: until, "replay": counting(per, shown, {})}
    for replayed in replay_logs(logs, MODERN, **how):
        assert isinstance(replayed.state, LedgerState)
        assert isinstance(replayed.state.question, WriterCounts)
        writers.add(replayed.state.question, replayed.log.offsets_partition)
    return top_rows(writers.finish(), "bytes"), sum(isinstance(item, Damage) for item in seen)


def assert_equal(
    logs: list[PartitionLog],
    per: str,
    until: Until = EVERYTHING,
    filters: tuple[Shown, ...] = (ALL, FILTERS[2]),
) -> None:
    for shown in filters:
        expected = one_by_one(logs, per, until, shown)
        assert by_events(logs, per, until, shown) == expected[0]
        assert in_bulk(logs, per, until, shown) == expected


@pytest.mark.parametrize(("name", "per"), in_turn(WRITER_COLUMNS))
def test_recordings(name: str, per: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        assert_equal(logs_of(directory), per)


@pytest.mark.parametrize("name", DISTINCT)
def test_last_activity_of_groups(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_activity(log)


def test_last_activity_in_hostile_logs() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 19), so_many(200)):
        assert_activity(PartitionLog(0, (Segment("fuzz.log", 0, data),)))


def test_last_activity_of_small_logs() -> None:
    """A tombstone is none; of several records the latest counts, which need not be the last."""
    log = LogBuilder().commit(1, group="g").skip(5).commit(2, group="h").commit(3, group="g", producer=7)
    log.group(group="i").commit(None, group="i").group(group="h", gone=True).commit(None, group="j").end(7)
    log.batches.append(log.offset.to_bytes(8) + log.batches[0][8:])  # in a time before
    log.skip(1).add(UNKNOWN, record_bytes(2, {"group": "k"}, {"protocol_type": "", "generation": 1, "members": []}, 3))
    activity = assert_activity(log.log)
    assert {group: at - TIME for group, at in activity.last_ms.items()} == {"g": 7, "h": 6, "i": 8, "k": 14}


def assert_activity(log: PartitionLog) -> Activity:
    """A replay and a count know when groups last wrote, in one piece or several."""
    activity = Activity()
    for _ in activity.watch(iter_events(log)):
        pass

    def noting(log: PartitionLog, profile: Profile, **how: Any) -> Replay:
        replay = LedgerReplay(log, profile, question=partial(WriterCounts, "group"), **how)
        replay.notes_activity = True
        return replay

    for threads in (Threads(pieces=1), Threads(pieces=3)):
        for kind in (partial(Replay, notes_activity=True), noting):
            (replayed,) = replay_logs([log], MODERN, note=lambda log: lambda seen: None, threads=threads, replay=kind)
            assert replayed.state.last_activity() == activity.last_ms
    return activity


def test_a_commit_without_a_time_was_made_at_its_own() -> None:
    """As those of magic 0 are when a cleaner has written them again."""
    key, value = {"group": "g", "topic": "t", "partition": 0}, {"offset": 1, "metadata": "", "commit_timestamp": TIME}
    raw_key, raw_value = record_bytes(1, key, value | {"leader_epoch": -1}, 3)
    batch = build_batch([Record(offset=0, timestamp_ms=-1, key=raw_key, value=raw_value)])
    log = PartitionLog(0, (Segment("f", 0, batch),))
    assert assert_activity(log).last_ms == {"g": TIME}


@EACH_PER
def test_names_are_asked_for_once(per: str) -> None:
    """And a topic only where its group is asked for."""
    log = LogBuilder()
    for number in range(300):
        log.commit(number, group=f"g{number}", topic=f"t{number}").commit(number, group="g1", topic=f"t{number % 7}")
    groups, topics = list[str](), list[str]()
    shown = Shown(
        lambda name: groups.append(name) or name.endswith("3"), lambda name: topics.append(name) or name > "t2"
    )
    found, _ = in_bulk([log.log], per, EVERYTHING, shown)
    assert sorted(groups) == sorted({f"g{number}" for number in range(300)})
    assert sorted(topics) == sorted({f"t{number}" for number in range(3, 300, 10)})
    assert found == one_by_one([log.log], per, EVERYTHING, shown)[0]


@pytest.mark.parametrize("per", ["topic", "client"])
def test_names_that_need_more_room(per: str) -> None:
    """Of topics alone: each is a name of its own where topics are asked for."""
    log = LogBuilder()
    for number in range(LEAST_KEYS + 100):
        log.commit(number, topic=f"t{number}")
    assert_equal([log.log], per, filters=(Shown(topic=lambda name: name.endswith("7")),))


@EACH_PER
@pytest.mark.parametrize("name", ["kafka-4.3-compressed", "kafka-lifetime"])
def test_bounds_of_recordings(name: str, per: str, recording: Callable[[str], Path]) -> None:
    logs = logs_of(recording(name) / "log")
    for end in (0, 37, 90):
        assert_equal(logs, per, Until(record_offset=end))


@EACH_PER
@examples(60)
@given(steps=STEPS, end=st.integers(0, 40), shown=st.sampled_from((ALL, *FILTERS)))
def test_generated_logs(per, steps, end, shown) -> None:  # type: ignore[no-untyped-def]
    log = build(steps).log
    assert_equal([log], per, filters=(shown,))
    assert_equal([log], per, Until(record_offset=end), filters=(shown,))


@EACH_PER
@examples(40)
@given(steps=st.lists(test_newer.STEP, max_size=40), shown=st.sampled_from((ALL, *FILTERS)))
def test_newer_kinds_of_groups(per, steps, shown) -> None:  # type: ignore[no-untyped-def]
    assert_equal([test_newer.build(steps).log], per, filters=(shown,))


@EACH_PER
def test_plain_records_of_newer_kinds_are_not_read_on_the_slow_path(per: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it matters who held what, Python reads those records later, not their batches."""
    taken = []
    take = folds_replay.Piece.take

    def noted(piece: Any, index: int, batch: Any) -> None:
        taken.append(batch)
        take(piece, index, batch)

    monkeypatch.setattr(folds_replay.Piece, "take", noted)
    assert_equal([test_newer.plain_log()], per)
    assert taken == []


def assigned(*partitions: int) -> bytes:
    """As consumers write it: of the topic ``t``."""
    rows = [{"topic": "t", "partitions": list(partitions)}]
    table = CONSUMER_PROTOCOL_ASSIGNMENT
    return encode_embedded(Embedded(table, 0, {"assigned_partitions": rows, "user_data": None}))


CLIENTS = {
    number: member(f"m{number}", client_id=f"c{number % 2}", assignment=data, group_instance_id=instance_id)
    for number, (data, instance_id) in enumerate(
        [(assigned(0, 1), None), (assigned(1), "i"), (assigned(0), None), (b"", "i"), (assigned(2) + b"more", None)]
    )
}
MEMBERS = st.lists(st.sampled_from(sorted(CLIENTS)), max_size=3)
COMMITS = st.tuples(st.just("commit"), st.sampled_from("gh"), st.integers(0, 2), st.sampled_from([-1, 7]))
NEWER = st.tuples(
    st.sampled_from([4, 5, 8] * 6 + [number for numbers in test_newer.KINDS.values() for number in numbers]),
    st.sampled_from("mn"), st.integers(0, 5),
)  # fmt: skip
"""Record type, member, and what else the record says."""
HELD_BY_ID = st.tuples(st.sampled_from(["t1", "t2"]), st.integers(0, 5), st.sampled_from([None, *test_newer.IDS]))
"""Topic, partition, and the topic id that the commit itself names."""
GROUP_STEPS = st.lists(
    COMMITS
    | st.tuples(st.just("group"), st.sampled_from("gh"), st.none() | MEMBERS, st.just(-1))
    | st.tuples(st.just("topic id"), st.sampled_from("gh"), st.integers(1, 2), st.just(-1))
    | st.tuples(st.just("newer"), st.sampled_from("gh"), st.just(0), st.just(-1))
    | st.tuples(st.sampled_from(["record", "odd"]), st.sampled_from("ghi"), NEWER, st.just(-1))
    | st.tuples(st.just("commit of"), st.sampled_from("ghi"), HELD_BY_ID, st.sampled_from([-1, 7])),
    max_size=40,
)


def grouped(steps: list[Any]) -> PartitionLog:
    """A log of groups whose members come and go; their commits, some on the slow path."""
    log = LogBuilder()
    for number, (what, group, of, producer) in enumerate(steps):
        match what:
            case "group" if of is None:
                log.group(group=group, gone=True)
            case "group":
                log.group(*(CLIENTS[each] for each in of), group=group)
            case "newer":
                log.newer(3, {"epoch": number}, group=group)
            case "record":
                log.add(test_newer.record(of[0], group, *of[1:]))
            case "odd":
                log.add(UNKNOWN, test_newer.record(of[0], group, *of[1:]))
            case _:
                add_commit(log, number, what, group, of, producer)
    return log.log


def add_commit(log: LogBuilder, offset: int, what: str, group: str, of: Any, producer: int) -> None:
    topic, partition, topic_id = {
        "commit": lambda: ("t", of, None),
        "topic id": lambda: ("t", 0, bytes(15) + bytes([of])),
        "commit of": lambda: of,
    }[what]()
    version = {"version": 3} if topic_id is None else {"version": 4, "topic_id": topic_id}
    log.commit(offset, group=group, topic=topic, partition=partition, producer=producer, **version)
    if producer >= 0:
        log.end(producer)


MEMBERS_OF_G = [("record", "g", (5, member_id, 1), -1) for member_id in "mn"]


def record_of_g(number: int, member_id: str, choice: int, what: str = "record") -> tuple[Any, ...]:
    return what, "g", (number, member_id, choice), -1


@pytest.mark.parametrize("per", sorted(HELD))
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [record_of_g(8, "m", 1), record_of_g(4, "", 1), ("commit of", "i", ("t2", 1, test_newer.IDS[1]), -1)],
            id="the first name of a topic id counts, though its record waits when a commit gives another",
        ),
        pytest.param(
            [record_of_g(8, "m", 1), record_of_g(5, "n", 0), record_of_g(5, "m", 0, "odd"), record_of_g(5, "m", 1)],
            id="what waits is read before a batch on the slow path",
        ),
        pytest.param(
            [
                record_of_g(4, "", 1), ("commit of", "i", ("t1", 1, test_newer.IDS[0]), -1), record_of_g(8, "m", 1),
                ("record", "g", (8, "n", 1, test_newer.IDS[0]), -1),
            ],
            id="of topics of one name the first counts",
        ),
        pytest.param(
            [
                record_of_g(4, "", 2), ("commit of", "i", ("t2", 1, test_newer.IDS[1]), -1),
                ("record", "g", (8, "m", 1, test_newer.IDS[0]), -1),
                ("commit of", "g", ("t1", 1, test_newer.IDS[0]), -1),
                ("record", "g", (8, "m", 1, test_newer.IDS[1]), -1),
            ],
            id="what is held of one topic is not held of another of its name",
        ),
        pytest.param(
            [("record", "g", (8, "n", 1, test_newer.IDS[0]), -1), ("commit of", "i", ("t1", 5, test_newer.IDS[0]), -1)],
            id="another group's commit names a topic id",
        ),
    ],
)  # fmt: skip
def test_who_holds_by_topic_ids(steps: list[Any], per: str) -> None:
    asked = [("commit of", "g", ("t1", 1, topic_id), -1) for topic_id in (None, *test_newer.IDS)]
    of_g = Shown(group=lambda name: name == "g")
    assert_equal([grouped([*MEMBERS_OF_G, *steps, *asked])], per, filters=(ALL, of_g))


@pytest.mark.parametrize("per", sorted(HELD))
@examples(150)
@given(steps=GROUP_STEPS, shown=st.sampled_from((ALL, *FILTERS)))
def test_holders_of_generated_groups(per: str, steps: list[Any], shown: Shown) -> None:
    assert_equal([grouped(steps)], per, filters=(shown,))


@EACH_PER
def test_hostile_segments(per: str) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    hostile = islice(hostile_segments(seeds, 110 + [*WRITER_COLUMNS].index(per)), so_many(100))
    for data in hostile:
        assert_equal([PartitionLog(0, (Segment("fuzz.log", 0, data),))], per)


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path) -> None:
    assert_equal([PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),))], "partition")
