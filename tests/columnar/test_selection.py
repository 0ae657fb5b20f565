"""Questions about few records: the same answers whether batches are passed by or every record is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.choose.selected import ROOM, Room, selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.folds.known import plain_programs
from offsets_log.errors import Damage
from offsets_log.events import (
    EVERYTHING,
    BareBatches,
    BareRecord,
    Event,
    LogEvent,
    Passed,
    TailFound,
    Until,
    Wants,
)
from offsets_log.investigate.history import History, history_order
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import TopicIds
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, decode_key
from offsets_log.pipeline import iter_events
from offsets_log.rebalance.timeline import Timelines
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.replay.profile import PROFILES
from offsets_log.replay.topic_names import topic_id_mark
from offsets_log.rows.dump_log import iter_lines
from offsets_log.rows.tables import decoded_row
from tests.builders import LogBuilder, member, record_bytes
from tests.columnar import test_newer
from tests.columnar.engines import what
from tests.columnar.test_equal_engines import CRASHERS, SEEDS, STEPS, build
from tests.conftest import PACKED
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

GLOBS = ("*", "g", "h*", "*[aeiou]", "no-such-group")


# ------------------------------------------------------------------------------------- what is made of a log


def told(events: Iterable[LogEvent], seen: list[Any]) -> Iterator[LogEvent]:
    """The events, with what cannot be read, tails and missing log noted."""
    for event in events:
        if isinstance(event, Damage | TailFound | Missing):
            seen.append(what(event))
        if isinstance(event, Event) and event.damage is not None:
            seen.append(what(event.damage))
        yield event


class Asked:
    """A log, a way to get its events, and the answers of the commands made of them."""

    def __init__(self, log: PartitionLog, until: Until, glob: str, *, is_bulk: bool, room: Room = ROOM) -> None:
        self.log, self.until, self.is_bulk, self.room = log, until, is_bulk, room
        self.shows: Callable[[str], bool] = lambda name: fnmatchcase(name, glob)

    def events(self, selection: Selection, seen: list[Any], wants: Wants | None = None) -> Iterator[LogEvent]:
        if self.is_bulk:
            return told(selected_events(self.log, selection, until=self.until, wants=wants, room=self.room), seen)
        return told(iter_events(self.log, until=self.until, wants=wants), seen)

    def history(self, profile: str) -> Any:
        seen: list[Any] = []
        found = History(PROFILES[profile], self.shows, lambda key: True)
        selection = Selection(self.shows, with_names=True, with_markers=True)
        found.read(self.events(selection, seen), on_damage=lambda damage: None)
        ids = TopicIds(found.state.topic_names)
        rows = [history_row(entry, 0, ids) for entry in sorted(found.entries, key=history_order)]
        return rows, found.state.topic_names, seen

    def rows(self, topic: Callable[[str], bool] | None) -> Any:
        seen: list[Any] = []
        events = self.events(Selection(self.shows, topic), seen)
        return [decoded_row(event, expand=True) for event in events if self.is_kept(event, topic)], seen

    def is_kept(self, event: LogEvent, topic: Callable[[str], bool] | None) -> bool:
        if not isinstance(event, Event) or event.decoded is None or not self.shows(event.decoded.group):
            return False
        return topic is None or (event.decoded.is_offset_commit and topic(event.decoded.key["topic"]))

    def lines(self) -> Any:
        seen: list[Any] = []
        events = self.events(Selection(self.shows, with_batches=True), seen)
        return list(iter_lines(e for e in events if not isinstance(e, Event) or self.is_kept(e, None))), seen

    def rebalances(self) -> Any:
        seen: list[Any] = []
        found = Timelines(self.shows)
        selection = Selection(self.shows, record_types=frozenset({GROUP_METADATA}), with_names=True, is_bare=True)
        damages: list[Damage] = []
        found.read(self.events(selection, seen, found.wants), damages.append)
        return [repr(entry) for entry in found], found.topic_names, [what(damage) for damage in damages], seen

    def answers(self, profile: str) -> list[Any]:
        topic: Callable[[str], bool] = lambda name: name < "p"  # noqa: E731
        return [self.history(profile), self.rows(None), self.rows(topic), self.lines(), self.rebalances()]


def assert_equal(
    log: PartitionLog,
    until: Until = EVERYTHING,
    globs: Iterable[str] = GLOBS,
    profile: str = "modern",
    room: Room = ROOM,
) -> None:
    for glob in globs:
        both = (Asked(log, until, glob, is_bulk=is_bulk, room=room) for is_bulk in (False, True))
        slow_path, in_bulk = (asked.answers(profile) for asked in both)
        for expected, found in zip(slow_path, in_bulk, strict=True):
            assert found == expected


# --------------------------------------------------------------------------------------- generated and hostile


@examples(100)
@given(
    steps=STEPS,
    glob=st.sampled_from(GLOBS),
    profile=st.sampled_from(list(PROFILES)),
    room=st.integers(2, 9),
    bound=st.none() | st.integers(0, 30),
)
def test_generated_logs(steps: Any, glob: str, profile: str, room: int, bound: int | None) -> None:
    assert_equal(build(steps).log, Until(record_offset=bound), (glob,), profile, Room(room, room))


@examples(60)
@given(steps=st.lists(test_newer.STEP, max_size=40), glob=st.sampled_from((*GLOBS, "consumer")), room=st.integers(2, 9))
def test_newer_kinds_of_groups(steps: Any, glob: str, room: int) -> None:
    assert_equal(test_newer.build(steps).log, globs=(glob,), room=Room(room, room))


def mixed_records() -> list[Record]:
    """Records of several groups and kinds, some of which say of a topic id what others do not."""
    log = LogBuilder()
    log.add(*(test_newer.record(number, "ga", "m", choice) for number in (3, 4, 15) for choice in (0, 1, 2)))
    for group in ("ga", "h"):
        log.group(member("m"), group=group).group(group=group, gone=True)
        for topic in ("t", "u"):
            log.commit(1, group=group, topic=topic, topic_id=test_newer.IDS[0])
            log.commit(1, group=group, topic=topic, topic_id=test_newer.IDS[1])
    return [event.record for event in iter_events(log.log) if isinstance(event, Event)]


@examples(150)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0, 0, 0, 1])), min_size=1, max_size=5), max_size=10
    ),
    glob=st.sampled_from(("*", "g*", "h", "no-such-group")),
    room=st.integers(2, 9),
)
def test_batches_hold_what_is_asked_for_and_what_is_not(batches: Any, glob: str, room: int) -> None:
    records, log = mixed_records(), LogBuilder()
    for batch in batches:
        made = []
        for number, hole in batch:
            made.append(replace(records[number], offset=log.skip(hole).offset))
            log.skip(1)
        log.batches.append(build_batch(made))
    slow_path, in_bulk = (
        Asked(log.log, EVERYTHING, glob, is_bulk=is_bulk, room=Room(room, 50 * room)).rebalances()
        for is_bulk in (False, True)
    )
    assert in_bulk == slow_path


def test_newer_records_are_passed_by_unless_they_name_topics() -> None:
    log = LogBuilder()
    for number in (3, 4, 5, 6, 7, 8):
        log.add(test_newer.record(number, "other", "m", 1))
    for with_names, expected in ((False, []), (True, [4])):
        events = selected_events(log.log, Selection("mine".__eq__, with_names=with_names))
        assert [it.decoded.record_type for it in events if isinstance(it, Event) and it.decoded is not None] == expected


def test_a_topic_id_is_told_again_behind_a_record_of_a_newer_kind_that_names_topics() -> None:
    """Which may have said something else of it."""
    log = LogBuilder()
    for _ in range(2):
        log.commit(1, topic="t", version=4, topic_id=test_newer.IDS[1])
        log.commit(1, topic="t", version=4, topic_id=test_newer.IDS[1])
        log.add(test_newer.record(4, "other", "", 1))
    log.commit(1, topic="t", version=4, topic_id=test_newer.IDS[1])
    events = list(selected_events(log.log, Selection("mine".__eq__, with_names=True)))
    assert [it.record.offset for it in events if isinstance(it, Event)] == [0, 2, 3, 5, 6]
    assert_equal(log.log)


def test_a_list_of_names_is_told_again_if_it_says_something_new() -> None:
    """In a record of a share group, behind commits and other groups' records."""
    log = LogBuilder()
    for _ in range(2):
        log.add(test_newer.record(15, "other", "", 1)).commit(1, topic="t1", version=4, topic_id=test_newer.IDS[1])
        log.add(test_newer.record(15, "another", "", 1))
    log.commit(1, topic="t", version=4, topic_id=test_newer.IDS[1]).add(test_newer.record(15, "other", "", 1))
    events = list(selected_events(log.log, Selection("mine".__eq__, with_names=True)))
    assert [it.record.offset for it in events if isinstance(it, Event)] == [0, 6, 7]
    assert_equal(log.log)


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for turn, data in enumerate(islice(hostile_segments(seeds, 15), so_many(300))):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), globs=(("*", "*[aeiou]")[turn % 2],))


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 16), so_many(150)))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f"{n}.log", base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(0, files), globs=("*[aeiou]",))


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path) -> None:
    assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),)))


# ------------------------------------------------------------------------------------------------ what is chosen


def chosen(log: PartitionLog, selection: Selection) -> list[int]:
    """Offsets of the records that came."""
    return [event.record.offset for event in selected_events(log, selection) if isinstance(event, Event)]


def test_bare_batches_are_told_by_their_records() -> None:
    log = LogBuilder()
    log.commit(1, group="a").group(member("m"), group="a").commit(2, group="a").group(member("n"), group="a")
    selection = Selection(only("a"), record_types=frozenset({GROUP_METADATA}), is_bare=True)
    batches = [event for event in selected_events(log.log, selection) if isinstance(event, BareBatches)]
    seen = [(it, event) for event in batches for it in event.seen]
    found = [(it, event.decoder) for it, event in seen if isinstance(it, BareRecord)]
    assert [event.read(it).base_offset for it, event in seen if isinstance(it, BareRecord)] == [1, 3]
    assert (found[1][0].since, found[1][0].has_holes) == (2, False)
    expected = [event for event in iter_events(log.log) if isinstance(event, Event) and event.record.offset in (1, 3)]
    assert [decoder.decode(it.key, it.value) for it, decoder in found] == [event.decoded for event in expected]
    facts = ("offset", "timestamp_ms", "key", "value")
    for (record, _), event in zip(found, expected, strict=True):
        assert [getattr(record, name) for name in facts] == [getattr(event.record, name) for name in facts]


def only(name: str) -> Callable[[str], bool]:
    return lambda group: group == name


def test_only_what_was_asked_for_is_read() -> None:
    log = LogBuilder()
    log.commit(1, group="a").commit(2, group="b").commit(3, group="a").group(member("m"), group="b")
    assert chosen(log.log, Selection(only("a"))) == [0, 2]
    assert chosen(log.log, Selection(only("b"))) == [1, 3]
    assert chosen(log.log, Selection(only("b"), record_types=frozenset({GROUP_METADATA}))) == [3]
    runs = [event for event in selected_events(log.log, Selection(only("b"))) if isinstance(event, Passed)]
    assert runs == [Passed(0, 1, False), Passed(2, 3, False)]


def test_markers_come_of_producers_that_wrote_of_the_group() -> None:
    log = LogBuilder()
    log.commit(1, group="a", producer=7).commit(2, group="b", producer=8).end(8, commit=True).end(7, commit=True)
    assert chosen(log.log, Selection(only("a"), with_markers=True)) == [0, 3]
    assert chosen(log.log, Selection(only("a"))) == [0]


def test_a_marker_ends_what_others_of_its_producer_are_wanted_for() -> None:
    log = LogBuilder().commit(1, group="a", producer=7).end(7)
    log.commit(2, group="b", producer=7).end(7).commit(3, group="a", producer=7).end(7, commit=False)
    assert chosen(log.log, Selection(only("a"), with_markers=True)) == [0, 1, 4, 5]
    given = Selection(only("a"), with_markers=True, producers=frozenset({7}))
    assert chosen(log.log, given) == [0, 1, 3, 4, 5]


def test_of_a_key_asked_for_until_its_group_may_be_gone() -> None:
    """Also where a batch is read on the slow path: behind both any commit may create the group."""
    key, _ = record_bytes(1, {"group": "a", "topic": "t", "partition": 1}, None, 3)
    selection = Selection(only("a"), key=key.__eq__)

    def log() -> LogBuilder:
        return LogBuilder().commit(1, group="a").commit(2, group="a", partition=1).commit(3, group="b", partition=1)

    assert chosen(log().commit(4, group="a").group(member("m"), group="a").commit(5, group="a").log, selection) == [
        1,
        4,
    ]
    assert chosen(log().commit(None, group="a").commit(5, group="a").log, selection) == [1]
    assert chosen(log().group(group="a", gone=True).commit(5, group="a").commit(6, group="b").log, selection) == [
        1,
        3,
        4,
    ]
    assert chosen(LogBuilder().add(ODD).commit(5, group="a").commit(6, group="b").log, selection) == [0, 1]
    assert chosen(log().add(ODD).commit(5, group="a").commit(6, group="b").log, selection) == [1, 3, 4]


def test_a_topic_id_is_told_once() -> None:
    log = LogBuilder()
    one, other = bytes(15) + b"\1", bytes(15) + b"\2"
    for topic_id in (one, one, other, one):
        log.commit(1, group="a", version=4, topic_id=topic_id)
    assert chosen(log.log, Selection(only("b"), with_names=True)) == [0, 2]
    log.commit(1, group="a", topic="other", version=4, topic_id=one)
    assert chosen(log.log, Selection(only("b"), with_names=True)) == [0, 2, 4]


def test_offsets_left_out_where_batches_are_passed_by() -> None:
    for gap in (0, 2):
        log = LogBuilder().group(member("m"), generation=1)
        log.commit(1, group="b").skip(gap).commit(1, group="b").group(member("m"), generation=4)
        assert_equal(log.log, globs=("g",))


@pytest.mark.parametrize("is_tagged", [True, False])
def test_a_newer_version_names_topics_once_its_table_has_it(is_tagged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its table has the topic id: no coordinator here reads it, so its batches are read on the slow path."""
    row, topic_id = RECORD_TYPES[1], Uuid(range(16))
    moved = [
        replace(field, tag=3 if is_tagged else None, versions="0+") if field.name == "topic_id" else field
        for field in row.values[0].fields
    ]
    newer = replace(row.values[0], fields=tuple(moved), versions="5", flexible="4+")
    monkeypatch.setitem(RECORD_TYPES, 1, replace(row, values=(newer, *row.values)))
    remembered = (topic_id_mark, decode_key, plain_programs)
    for function in remembered:
        function.cache_clear()
    log = LogBuilder().commit(1, group="a")
    log.commit(1, group="a", version=5, topic_id=topic_id).commit(2, group="a", version=5, topic_id=Uuid(16))
    assert chosen(log.log, Selection(only("b"), with_names=True)) == [1, 2]
    assert_equal(log.log, globs=("a", "b"))
    for function in remembered:
        function.cache_clear()


def test_an_unknown_version_is_never_passed_by() -> None:
    log = LogBuilder().commit(1, group="a")
    key, value = commit_bytes("t", Uuid(range(16)))
    log.add((key, b"\0\x09" + (value or b"")[2:]))
    asked = Asked(log.log, EVERYTHING, "b", is_bulk=True)
    _, _, damages, _ = asked.rebalances()
    assert [damage[0] for damage in damages] == ["UnsupportedVersionError"]
    assert_equal(log.log, globs=("a", "b"))


ODD = (b"\x00\x63\x00\x01g", b"\x00\x00")
"""A record of a type that no release writes: its batch is read on the slow path."""


def commit_bytes(topic: str, topic_id: bytes) -> tuple[bytes, bytes | None]:
    fields = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 1, "topic_id": topic_id}
    return record_bytes(1, {"group": "b", "topic": topic, "partition": 0}, fields, 4)


def test_what_the_slow_path_reads_says_of_topic_ids_and_producers() -> None:
    topic_id = Uuid(bytes(15) + b"\1")
    log = LogBuilder().commit(1, group="a", version=4, topic_id=topic_id)
    log.add(commit_bytes("other", topic_id), ODD, **LogBuilder.transaction(7))
    log.commit(1, group="a", version=4, topic_id=topic_id).end(7).commit(2, group="a", producer=8).end(8)
    assert chosen(log.log, Selection(only("c"), with_names=True)) == [0, 1, 2, 3]
    assert_equal(log.log, globs=("a", "b", "c"))


def test_many_groups_and_producers_find_room() -> None:
    log = LogBuilder()
    for number in range(9000):
        log.commit(1, group=f"g{number}", producer=number)
    selection = Selection(lambda name: name.endswith("99"), with_markers=True)
    assert chosen(log.log, selection) == [number for number in range(9000) if str(number).endswith("99")]
