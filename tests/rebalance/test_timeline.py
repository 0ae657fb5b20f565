"""Timelines against what brokers answered at every step of the recordings, and what is flagged in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from offsets_log.events import Event
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, decode_key, encode_coordinator_record
from offsets_log.pipeline import iter_events
from offsets_log.rebalance.generation import Generation, GenerationMember, Held
from offsets_log.rebalance.rows import rebalance_row, remarks
from offsets_log.rebalance.storms import Limits, mark_storms
from offsets_log.rebalance.timeline import Timelines
from offsets_log.replay.topic_names import topic_id_mark
from tests.conftest import RECORDINGS, read_json, read_json_lines, read_partitions
from tests.coordinator.caches import classic_group, member_row, newer_group

Recording = Callable[[str], Path]
WITH_STEPS = [name for name in RECORDINGS if name.startswith("kafka-") and name != "kafka-0.8.2"]

SETTLED = {"Stable", "Empty", "stable", "empty", "Assigning", "Reconciling", "NotReady"}
"""States in which the log has all that the broker knows; others are generations to come (``B-14``)."""


def read_timelines(log_directory: Path, topics: dict[str, Any]) -> Timelines:
    timelines = Timelines()
    for log in read_partitions(log_directory).values():
        timelines.read(iter_events(log), lambda damage: None)
    timelines.name_topics({Uuid.from_text(topic["id"]): name for name, topic in topics.items() if "id" in topic})
    return timelines


def steps(folder: Path) -> list[dict[str, Any]]:
    """The lines of ``timeline.jsonl`` with answers about the log that is read: ``log-before`` of a cleaned one."""
    lines = [line for line in read_json_lines(folder / "timeline.jsonl") if "groups" in line]
    if folder.name.endswith("-cleaned"):
        lines = lines[:-1]
    if folder.name.endswith("-live-copy"):
        lines = lines[:1]
    return [line for line in lines if not line.get("not_quiet")]


def entry_at(entries: list[Generation], end_offsets: dict[str, int]) -> Generation | None:
    """The newest entry in the log cut at these offsets."""
    found = [entry for entry in entries if entry.record_offset < end_offsets.get(str(entry.offsets_partition), 0)]
    return found[-1] if found else None


def assert_same_partitions(entry: Generation, answer: dict[str, Any], member: dict[str, Any]) -> bool:
    """What a consumer was assigned; of the newer kind the target of that epoch, where one was computed."""
    given = sorted(map(list, entry.assignment.get(member["member_id"], [])))
    if answer["type"] == "classic":
        assert answer["protocol_type"] != "consumer" or given == member["assignment"]
        return answer["protocol_type"] == "consumer"
    if answer["assignment_epoch"] != entry.number or "target_assignment" not in member:
        return False
    assert given == member["target_assignment"]
    return True


@pytest.mark.parametrize("name", WITH_STEPS)
def test_members_and_protocols_are_those_of_every_step(name: str, recording: Recording) -> None:
    """Joins, leaves and generations: who is there after each step, as the broker answered."""
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    before = folder / "log-before"
    timelines = read_timelines(before if before.exists() else folder / "log", facts.get("topics", {}))
    compared = 0
    for step in steps(folder):
        for answer in step["groups"]:
            if answer["state"] not in SETTLED:
                continue
            entry = entry_at(timelines.generations.get(answer["group"], []), step["end_offsets"])
            members = {member["member_id"] for member in answer["members"]}
            assert (set(entry.members) if entry else set()) == members, (step["step"], answer["group"])
            if entry is not None and members and answer["type"] == "classic":
                assert (entry.protocol_type, entry.protocol) == (answer["protocol_type"], answer["protocol"])
                assert entry.state == answer["state"]
            if entry is not None and answer["type"] in ("consumer", "classic"):
                for member in answer["members"]:
                    compared += assert_same_partitions(entry, answer, member)
    assert compared


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-3.9-classic", "kafka-4.3-modern-groups", "kafka-2.8"])
def test_every_change_between_two_steps_is_a_join_or_a_leave(name: str, recording: Recording) -> None:
    """Members that came and went by the broker's answers came and went in the entries between."""
    folder = recording(name)
    timelines = read_timelines(folder / "log", read_json(folder / "recording.json").get("topics", {}))
    changes = 0
    for earlier, later in pairwise(steps(folder)):
        before = {answer["group"]: answer for answer in earlier["groups"]}
        for answer in later["groups"]:
            old = before.get(answer["group"])
            if old is None or not {old["state"], answer["state"]} <= SETTLED:
                continue
            entries = timelines.generations.get(answer["group"], [])
            first, last = entry_at(entries, earlier["end_offsets"]), entry_at(entries, later["end_offsets"])
            between = entries[entries.index(first) + 1 if first else 0 : entries.index(last) + 1 if last else 0]
            came = {member["member_id"] for member in answer["members"]} - {
                each["member_id"] for each in old["members"]
            }
            went = {member["member_id"] for member in old["members"]} - {
                each["member_id"] for each in answer["members"]
            }
            assert came <= {member.member_id for entry in between for member in entry.change.joined}
            assert went <= {member.member_id for entry in between for member in entry.change.left}
            changes += len(came) + len(went)
    assert changes > 10


def test_a_generation_that_was_never_synced_is_told(recording: Recording) -> None:
    """``W-14``: workers-… has 1, 3 and 4; generation 1 of the connector's consumers was joined and never synced."""
    timelines = read_timelines(recording("kafka-4.3-mixed") / "log", {})
    workers = timelines.generations["workers-metrics"]
    assert [entry.number for entry in workers] == [1, 3, 4, 5]
    assert [entry.skipped for entry in workers] == [(), (2,), (), ()]
    assert remarks(workers[1]) == ["2 never synced"]


def test_a_static_member_that_comes_back_moves_nothing(recording: Recording) -> None:
    """``G-8``, ``W-11``: the same generation, another member id, and all partitions stay with the instance."""
    entries = read_timelines(recording("kafka-4.3-mixed") / "log", {}).generations["static-metrics"]
    facts = [(it.number, it.changes_members_only, it.change.kept, len(it.change.moved)) for it in entries]
    assert facts == [
        (1, False, 0, 0),
        (2, False, 5, 5),
        (2, True, 10, 0),
        (2, True, 10, 0),
        (3, False, 5, 5),
    ]
    assert [member.group_instance_id for member in entries[2].change.joined] == ["node-1"]


# ------------------------------------------------------------------------------------------ made by hand


def timeline_of(*batches: tuple[int, int, list[CoordinatorRecord]]) -> Timelines:
    """Batches as (base offset, timestamp, records)."""
    raw = b"".join(
        build_batch(
            [
                Record(offset=base_offset + at, timestamp_ms=time_ms, key=key, value=value)
                for at, (key, value) in enumerate(map(encode_coordinator_record, records))
            ]
        )
        for base_offset, time_ms, records in batches
    )
    timelines = Timelines()
    timelines.read(iter_events(PartitionLog(0, (Segment("made", 0, raw),))), lambda damage: None)
    return timelines


def generation(number: int, *member_ids: str) -> CoordinatorRecord:
    record = classic_group("g", [member_row(member_id, "t") for member_id in member_ids])
    assert record.value is not None
    record.value["generation"] = number
    return record


def test_a_hole_in_the_log_may_be_a_generation_that_was_cleaned_away() -> None:
    timelines = timeline_of((0, 10, [generation(1, "a")]), (7, 20, [generation(4, "a")]), (8, 30, [generation(6, "a")]))
    entries = timelines.generations["g"]
    assert [remarks(entry) for entry in entries] == [
        [],
        ["2 to 3 never synced, or cleaned away"],
        ["5 never synced"],
    ]
    assert [entry.duration_ms for entry in entries] == [10, 10, None]


def test_a_deleted_group_begins_again() -> None:
    gone = CoordinatorRecord(record_type=2, key={"group": "g"})
    entries = timeline_of((0, 10, [generation(3, "a")]), (1, 20, [gone]), (2, 30, [generation(1, "b")])).generations[
        "g"
    ]
    assert [(entry.number, entry.state) for entry in entries] == [(3, "Stable"), (None, "Dead"), (1, "Stable")]
    assert [[member.member_id for member in entry.change.left] for entry in entries] == [[], ["a"], []]
    assert [member.member_id for member in entries[2].change.joined] == ["b"]


def test_members_that_a_record_repeats_join_again_only_if_they_were_gone() -> None:
    gone = CoordinatorRecord(record_type=2, key={"group": "g"})
    records = [generation(1, "a"), generation(2, "a"), generation(3, "a", "b"), generation(4, "a"), gone]
    records += [generation(1, "a"), generation(2), generation(3, "a")]
    entries = timeline_of(*((offset, offset, [record]) for offset, record in enumerate(records))).generations["g"]
    mark_storms(entries, Limits())
    rows = [rebalance_row(entry) for entry in entries]
    told = [tuple("".join(member["member_id"] for member in row[name]) for name in ("joined", "left")) for row in rows]
    assert told == [("a", ""), ("", ""), ("b", ""), ("", "b"), ("", "a"), ("a", ""), ("", "a"), ("a", "")]
    assert [row["flapping"] for row in rows] == [[]] * 7 + [["a"]]


def test_the_same_bytes_are_another_assignment_in_another_protocol() -> None:
    row = member_row("m") | {"assignment": b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\7\xff\xff\xff\xff"}
    records = [classic_group("g", [row], kind=kind) for kind in ("consumer", "consumer", "other")]
    entries = timeline_of(*((offset, offset, [record]) for offset, record in enumerate(records))).generations["g"]
    assert [entry.assignment["m"] for entry in entries] == [[("t", 7)], [("t", 7)], []]


def test_a_tombstone_of_an_unknown_group_is_no_entry() -> None:
    gone = CoordinatorRecord(record_type=2, key={"group": "g"})
    assert list(timeline_of((0, 10, [gone]))) == []


def test_a_newer_group_has_an_entry_for_each_epoch() -> None:
    entries = timeline_of(
        (0, 10, newer_group("g", member_id="m", epoch=5)), (3, 20, newer_group("g", epoch=7)[:1])
    ).generations["g"]
    assert [(entry.kind, entry.number) for entry in entries] == [("consumer", 5), ("consumer", 7)]
    assert entries[1].skipped == (6,)


def test_a_record_of_another_kind_of_group_is_left_out() -> None:
    other = newer_group("g", member_id="m", epoch=5)
    entries = timeline_of((0, 10, [generation(1, "a")]), (1, 20, other)).generations["g"]
    assert [(entry.kind, entry.number) for entry in entries] == [("classic", 1)]
    twice = classic_group("g", [member_row(name, "t") | {"group_instance_id": "one"} for name in "ab"])
    entries = timeline_of((0, 10, other), (3, 20, [twice])).generations["g"]
    assert [(entry.kind, entry.number) for entry in entries] == [("consumer", 5)]


def test_storms_and_flapping_members_are_flagged() -> None:
    """Five generations in a minute, in which one client comes back twice under new ids."""
    batches = [(at, 1000 * at, [generation(at + 1, "stays", *(f"c-{at}" for _ in range(at % 2)))]) for at in range(6)]
    entries = timeline_of(*batches, (6, 10_000_000, [generation(7, "stays")])).generations["g"]
    mark_storms(entries, Limits(generations=5, window_ms=60_000))
    assert [entry.is_storm for entry in entries] == [True] * 6 + [False]
    assert [[member.member_id for member in entry.flapping] for entry in entries] == [[], [], [], [], [], ["c-5"], []]
    mark_storms(entries, Limits(generations=5, window_ms=1000))
    assert entries[5].flapping == ()


@pytest.mark.parametrize(
    ("times", "storms"),
    [
        ((0, 500, 1000), "sss"),
        ((0, 500, 1001), "..."),
        ((0, 500, 1001, 1500), ".sss"),
        ((0, None, 500, 1000), "s.ss"),
        ((0, 500), ".."),
        ((0, 500, 1000, 9000, 9500, 10_000), "ssssss"),
        ((0, 500, 1000, 9000), "sss."),
    ],
)
def test_as_many_generations_as_are_a_storm_within_the_window(times: tuple[int | None, ...], storms: str) -> None:
    """The window's own length is within it; a generation without a time is none, nor a static member that came back."""
    facts = {"group_id": "g", "offsets_partition": 0, "record_offset": 0, "kind": "classic"}
    entries = [Generation(**facts, number=number, timestamp_ms=time) for number, time in enumerate(times)]
    came_back = Generation(**facts, number=0, timestamp_ms=times[0], previous=entries[0])
    mark_storms([entries[0], came_back, *entries[1:]], Limits(generations=3, window_ms=1000))
    assert "".join("s" if entry.is_storm else "." for entry in entries) == storms
    assert not came_back.is_storm


@pytest.mark.parametrize(("times", "flaps"), [((0, 1000), True), ((0, 1001), False), ((0, None), False)])
@pytest.mark.parametrize("instance_id", [None, "one"])
def test_a_member_flaps_that_comes_back_as_often_within_the_window(
    times: tuple[int | None, ...], flaps: bool, instance_id: str | None
) -> None:
    """It is known by its instance id, else by its client id and its host; the first time it does not come back."""
    facts = {"group_id": "g", "offsets_partition": 0, "record_offset": 0, "kind": "classic"}
    entries: list[Generation] = []
    for number, time in enumerate((0, 0, times[0], times[0], times[1])):
        row = {"client_id": "c" if instance_id is None else f"c-{number}", "client_host": "/h"}
        here = GenerationMember(f"m-{number}", row | {"group_instance_id": instance_id})
        members = {here.member_id: here} if number % 2 == 0 else {}
        before = entries[-1] if entries else None
        held = Held(members, {})
        entries.append(Generation(**facts, number=number, timestamp_ms=time, held=held, previous=before))
    mark_storms(entries, Limits(window_ms=1000))
    assert [[member.member_id for member in entry.flapping] for entry in entries] == [
        [], [], [], [], ["m-4"] if flaps else []
    ]  # fmt: skip


def test_numbers_that_leap_are_not_listed_for_ever() -> None:
    entries = timeline_of((0, 1, [generation(1, "a")]), (1, 2, [generation(2**31 - 1, "a")])).generations["g"]
    assert len(entries[1].skipped) < 1001


@pytest.mark.parametrize("name", ["kafka-4.3-modern-groups", "kafka-4.3-mixed", "kafka-3.7-preview"])
def test_leaving_offset_commits_undecoded_changes_nothing(name: str, recording: Recording) -> None:
    """Names of topics that newer groups call by id come from commits too: those are still decoded."""
    whole, quick = Timelines(), Timelines()
    for log in read_partitions(recording(name) / "log").values():
        whole.read(iter_events(log), lambda damage: None)
        quick.read(iter_events(log, wants=quick.wants), lambda damage: None)
    assert quick.topic_names == whole.topic_names
    for timelines in (whole, quick):
        timelines.name_topics()
    assert list(map(rebalance_row, quick)) == list(map(rebalance_row, whole))


def test_a_group_that_comes_and_goes_in_one_batch_without_an_epoch_is_no_entry() -> None:
    """A member's record alone makes the group exist; what removes it again must not stumble over that."""
    member = newer_group("g", member_id="m")[1]
    gone = CoordinatorRecord(record_type=2, key={"group": "g"})
    assert list(timeline_of((0, 10, [member, gone]))) == []


def commit_of(topic: str, topic_id: bytes, version: int = 4) -> CoordinatorRecord:
    value = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 0, "topic_id": Uuid(topic_id)}
    key = {"group": "g", "topic": topic, "partition": 0}
    return CoordinatorRecord(record_type=1, key=key, value_version=version, value=value)


def named_by(*records: CoordinatorRecord) -> tuple[dict[bytes, str], int]:
    """Topic names that a log tells a reader who leaves commits undecoded, and how many he decoded."""
    pairs = [encode_coordinator_record(record) for record in records]
    made = [Record(offset=i, timestamp_ms=1, key=key, value=value) for i, (key, value) in enumerate(pairs)]
    log = PartitionLog(0, (Segment("built.log", 0, build_batch(made)),))
    timelines = Timelines()
    events = list(iter_events(log, wants=timelines.wants))
    timelines.read(iter_events(log, wants=timelines.wants), lambda damage: None)
    return timelines.topic_names, sum(isinstance(event, Event) and event.decoded is not None for event in events)


def test_topic_ids_are_found_whatever_they_end_with() -> None:
    ids = [bytes(15) + bytes((last,)) for last in (1, 0x10)] + [bytes((1,)) + bytes(15), bytes((1, 0, 16)) * 5 + b"\0"]
    named = {topic_id: f"topic-{i}" for i, topic_id in enumerate(ids)}
    assert named_by(*(commit_of(name, topic_id) for topic_id, name in named.items()))[0] == named
    assert named_by(*(commit_of("t", bytes(16)) for _ in range(3))) == ({}, 0)


def test_commits_that_can_name_nothing_are_not_decoded() -> None:
    """A tombstone, a value without a version."""
    key = encode_coordinator_record(commit_of("t", bytes(16)))[0]
    records = [Record(offset=i, timestamp_ms=1, key=key, value=value) for i, value in enumerate((None, b"", b"\0"))]
    assert [Timelines().wants(record) for record in records] == [False, False, False]


def test_a_newer_version_of_commits_names_topics_once_its_table_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it moves the topic id under another tag."""
    row = RECORD_TYPES[1]
    moved = [replace(field, tag=3) if field.name == "topic_id" else field for field in row.values[0].fields]
    newer = replace(row.values[0], fields=tuple(moved), versions="5", flexible="4+")
    monkeypatch.setitem(RECORD_TYPES, 1, replace(row, values=(newer, *row.values)))
    topic_id = bytes(range(16))
    remembered = (topic_id_mark, decode_key)
    for function in remembered:
        function.cache_clear()
    assert named_by(commit_of("t", topic_id, version=5)) == ({topic_id: "t"}, 1)
    for function in remembered:
        function.cache_clear()


def test_commits_of_an_unknown_version_are_told() -> None:
    key, value = encode_coordinator_record(commit_of("t", bytes(range(16))))
    batch = build_batch([Record(offset=0, timestamp_ms=1, key=key, value=b"\0\x09" + (value or b"")[2:])])
    timelines, damages = Timelines(), []
    log = PartitionLog(0, (Segment("built.log", 0, batch),))
    timelines.read(iter_events(log, wants=timelines.wants), damages.append)
    assert [damage.is_unsupported for damage in damages] == [True]


@pytest.mark.parametrize(
    ("kind", "number", "is_static", "is_converted"),
    [
        ("classic", 5, True, False),
        ("consumer", 5, False, True),
        ("consumer", 4, False, False),
        ("classic", 4, False, False),
    ],
)
def test_a_generation_of_the_same_number_is_a_member_that_came_back_or_a_group_of_another_kind(
    kind: str, number: int, is_static: bool, is_converted: bool
) -> None:
    """``G-8``, ``J-21``: of another number it is a new generation, whatever the group was before."""
    facts = {"group_id": "g", "offsets_partition": 0, "record_offset": 0, "timestamp_ms": None}
    before = Generation(**facts, kind=kind, number=number)
    entry = Generation(**facts, kind="classic", number=5, previous=before)
    assert (entry.changes_members_only, entry.was_converted) == (is_static, is_converted)
    assert not before.changes_members_only
    assert not before.was_converted
