"""Samples over time: what each line ends with, against brokers' answers; generations, against Kafka's own dump."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.folds import replay as columnar
from offsets_log.columnar.folds import samples as t
from offsets_log.columnar.folds import sampling as s
from offsets_log.columnar.folds.overviews import OverviewReplay, OverviewState
from offsets_log.events import EVERYTHING, Event, Until
from offsets_log.investigate.writer_counts import WriterCounts
from offsets_log.log_format.java_text import plain
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events
from offsets_log.replay.fold import replay_into
from offsets_log.replay.profile import CLASSIC, MODERN, PROFILES, Profile
from offsets_log.report.lines import generation_lines, offset_lines, values
from offsets_log.report.samples import Lines, Sampled, Samples
from tests.builders import TIME, LogBuilder, record_bytes
from tests.columnar.test_equal_engines import SEEDS, STEPS, build
from tests.conftest import PACKED, in_turn, log_directories, read_json, read_partitions
from tests.dump_log import DumpedRecord, read_dump
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.replay.test_compact_recordings import LOADED, WITH_STEPS, Recording, answered, steps
from tests.sizes import examples, so_many

BY_JAVA = [name for name in LOADED if name.startswith("kafka-4")]


def sampled(
    logs: list[PartitionLog], profile: Profile = MODERN, until: dict[int, Until] | None = None, **shows: Any
) -> Sampled:
    samples = Samples(profile, **shows)
    for log in logs:
        state = samples.state()
        bound = EVERYTHING if until is None else until[log.offsets_partition or 0]
        replay_into(state, state.watch(iter_events(log, until=bound)), on_damage=lambda damage: None)
        samples.add(log, state)
    return samples.finish()


def sampled_in_bulk(
    logs: list[PartitionLog], profile: Profile = MODERN, until: Until = EVERYTHING, **shows: Any
) -> Sampled:
    samples = Samples(profile, **shows)
    for replayed in columnar.replay_logs(
        logs,
        profile,
        note=lambda log: lambda seen: None,
        until=lambda log: until,
        replay=partial(OverviewReplay, question=partial(WriterCounts, "group"), state=partial(OverviewState, **shows)),
    ):
        assert isinstance(replayed.state, OverviewState)
        samples.add(replayed.log, replayed.state)
    return samples.finish()


def rows(lines: Lines) -> list[tuple[Any, ...]]:
    """Name, record offset, time, value, records."""
    numbers = (t.lines_of(lines.samples), *(lines.samples[:, at] for at in (s.RECORD_OFFSET, s.TIME, s.RECORDS)))
    found = zip(*(column.tolist() for column in numbers), values(lines.samples), strict=True)
    return [(lines.names[line], offset, time_ms, value, records) for line, offset, time_ms, records, value in found]


def assert_equal(one: Sampled, other: Sampled) -> None:
    assert rows(one.commits) == rows(other.commits)
    assert rows(one.generations) == rows(other.generations)
    assert one.untimed == other.untimed
    assert one.commits.names == other.commits.names


def ends(found: Sampled) -> dict[tuple[str, str, int], int]:
    """What each line ends with, without those that end with a tombstone."""
    latest = {name[:3]: value for name, _, _, value, _ in rows(found.commits)}
    return {line: offset for line, offset in latest.items() if offset is not None}


def of_answer(answer: dict[str, Any]) -> dict[tuple[str, str, int], int]:
    return {row[:3]: row[3] for row in answered(answer)}


@pytest.mark.parametrize("name", BY_JAVA)
def test_lines_end_with_the_answers_after_a_restart(name: str, recording: Recording) -> None:
    folder = recording(name)
    for log_directory in log_directories(folder):
        answer = read_json(folder / "answers" / f"restart{log_directory.name.removeprefix('log')}.json")
        found = ends(sampled(list(read_partitions(log_directory).values())))
        assert found == of_answer(answer)
        assert found


@pytest.mark.parametrize("name", [name for name in WITH_STEPS if name in BY_JAVA])
def test_lines_end_with_the_answers_at_steps(name: str, recording: Recording) -> None:
    """At every second from the last.

    Transactions open, committed and aborted are among them (``J-8``, ``J-10``, ``J-11``, ``J-12``).
    """
    folder = recording(name)
    for log_directory, line in steps(folder, read_json(folder / "recording.json"))[::-2]:
        logs = list(read_partitions(log_directory).values())
        until = {log.offsets_partition: Until(line["end_offsets"].get(str(log.offsets_partition), 0)) for log in logs}
        assert ends(sampled(logs, until=until)) == of_answer(line), line["what"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "profile"), in_turn(PROFILES, with_all=["random-java"]))
def test_logs_read_by_kernels_are_sampled_as_events_are(name: str, profile: str, recording: Recording) -> None:
    for directory in log_directories(recording(name)):
        logs = list(read_partitions(directory).values())
        expected = sampled(logs, PROFILES[profile])
        assert_equal(sampled_in_bulk(logs, PROFILES[profile]), expected)


def test_only_what_is_shown_is_sampled(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = list(read_partitions(recording("kafka-4.3-mixed") / "log").values())
    shows = {"shows_group": lambda name: "e" in name, "shows_topic": lambda name: "o" in name}
    for most in (t.MOST, {s.COMMITS: 60, s.GENERATIONS: 5}):
        monkeypatch.setattr(t, "MOST", most)
        monkeypatch.setattr(t, "LEAST_ROOM", 1 << 4)
        expected = sampled(logs, **shows)
        assert 0 < len(rows(expected.commits)) < len(rows(sampled(logs).commits))
        assert_equal(sampled_in_bulk(logs, **shows), expected)


@examples(60)
@given(
    steps=STEPS,
    end=st.integers(0, 40),
    most=st.sampled_from((1, 4, 1000)),
    profile=st.sampled_from([*PROFILES.values()]),
)
def test_generated_logs(steps, end, most, profile) -> None:  # type: ignore[no-untyped-def]
    log = build(steps).log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(t, "MOST", {s.COMMITS: most, s.GENERATIONS: most})
        patch.setattr(t, "LEAST_ROOM", 8)
        for until in (EVERYTHING, Until(record_offset=end)):
            one = sampled([log], profile, {0: until})
            assert_equal(sampled_in_bulk([log], profile, until), one)
            assert_told(log, profile, until, one)


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 12), so_many(300)):
        log = PartitionLog(0, (Segment("fuzz.log", 0, data),))
        assert_equal(sampled_in_bulk([log]), sampled([log]))


def assert_told(log: PartitionLog, profile: Profile, until: Until, found: Sampled) -> None:
    """All commits that count are told, by a plain count of a transaction's own: where each line ends, and how many."""
    waiting: dict[int, list[Any]] = {}
    counted: dict[Any, list[Any]] = {}
    for event in iter_events(log, until=until):
        if not isinstance(event, Event):
            continue
        batch, record = event.batch, event.decoded
        if event.control is not None:
            ended = waiting.pop(batch.producer_id, [])
            for name, commit in ended if event.control.type == "COMMIT" else ():
                counted.setdefault(name, []).append(commit)
        elif record is not None and record.is_offset_commit:
            value = None if record.value is None else record.value["offset"]
            name = (*map(plain, record.key.values()), log.offsets_partition)
            commit = (event.record.offset, value)
            if profile.is_transactional(batch):
                waiting.setdefault(batch.producer_id, []).append((name, commit))
            else:
                counted.setdefault(name, []).append(commit)
    expected = {
        name: (len(commits), max(commits, key=lambda commit: commit[0])[1]) for name, commits in counted.items()
    }
    told: dict[Any, tuple[int, Any]] = {}
    for name, _, _, value, records in rows(found.commits):
        told[name] = told.get(name, (0, None))[0] + records, value
    assert sum(count for count, _ in expected.values()) <= sum(count for count, _ in told.values()) + found.untimed
    if not found.untimed:
        assert told == expected


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-3.9-classic"])
def test_generations_are_those_that_kafkas_dump_shows(name: str, recording: Recording) -> None:
    folder = recording(name)
    expected: dict[str, dict[int, int | None]] = {}
    for dump in sorted((folder / "answers" / "dump-log").glob("?.txt.gz")):
        for entry in read_dump(dump):
            if isinstance(entry, DumpedRecord) and (fact := generation_in(entry)) is not None:
                group, time_ms, generation = fact
                expected.setdefault(group, {})[time_ms] = generation  # the last of a millisecond
    found = generation_lines(sampled(list(read_partitions(folder / "log").values())).generations)
    assert found.keys() >= expected.keys()
    for group, line in expected.items():
        assert found[group]["times_ms"] == list(line), group
        assert found[group]["generations"] == list(line.values()), group
    assert any(len(line) > 3 for line in expected.values())


def generation_in(entry: DumpedRecord) -> tuple[str, int, int | None] | None:
    if not entry.key or not entry.key.startswith("{"):
        return None
    key = json.loads(entry.key)
    if key["type"] not in ("2", "3", 2, 3):
        return None
    group = key["data"].get("group", key["data"].get("groupId"))
    payload = json.loads(entry.payload)["data"] if entry.payload and entry.payload.startswith("{") else {}
    time_ms = int(entry.facts["timestamp_ms"] or 0)
    return group, time_ms, payload.get("generation", payload.get("epoch"))


# --------------------------------------------------------------------------------------- small logs


def test_rebalances_are_generations_begun_since_the_first_seen() -> None:
    log = LogBuilder()
    for generation in (3, 4, 7):
        log.group(generation=generation)
    log.group(gone=True).group(generation=1).group(generation=2)
    line = generation_lines(sampled([log.log]).generations)["g"]
    assert line["generations"] == [3, 4, 7, None, 1, 2]
    assert line["rebalances"] == 4 + 2
    assert line["times_ms"] == [TIME + i for i in range(6)]


def test_a_commit_of_a_transaction_counts_if_it_was_committed() -> None:
    log = LogBuilder().commit(1).commit(2, producer=5).commit(3, producer=6).end(5).end(6, commit=False)
    log.commit(4, partition=1, producer=7)
    found = offset_lines(sampled([log.log]).commits, {})
    assert [line["offsets"] for line in found["g"]["lines"]] == [[1, 2, None]]
    assert found["g"]["lines"][0]["commits"] == 2


def test_any_producer_id_but_none_is_a_transactions() -> None:
    """``J-5``: also a negative one, as no broker writes it; what waits for its marker is not committed."""
    log = LogBuilder().commit(1)
    for partition in range(9):
        key = {"group": "g", "topic": "t", "partition": partition}
        value = {"offset": 7, "metadata": "", "commit_timestamp": TIME}
        log.add(record_bytes(1, key, value, 4), producer_id=-5, producer_epoch=0, base_sequence=0)
    assert len(log.load(MODERN).pending) == 9
    assert ends(sampled([log.log])) == {("g", "t", 0): 1}
    assert_equal(sampled_in_bulk([log.log]), sampled([log.log]))
    assert len(log.load(CLASSIC).pending) == 0  # there the bit tells
    assert len(ends(sampled([log.log], CLASSIC))) == 9
    assert_equal(sampled_in_bulk([log.log], CLASSIC), sampled([log.log], CLASSIC))


def test_wider_buckets_keep_each_lines_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for offset in range(200):
        log.commit(offset, partition=offset % 10)
    monkeypatch.setattr(t, "MOST", {s.COMMITS: 50, s.GENERATIONS: 50})
    found = sampled([log.log])
    assert len(rows(found.commits)) <= 50
    assert ends(found) == {("g", "t", i): 190 + i for i in range(10)}
    assert sum(records for *_, records in rows(found.commits)) == 200


@pytest.mark.parametrize("most", [50, 60, 100])
def test_buckets_read_by_kernels_are_as_wide(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for offset in range(400):
        log.commit(offset, partition=offset % 10).skip(699)
    monkeypatch.setattr(t, "MOST", {s.COMMITS: most, s.GENERATIONS: most})
    monkeypatch.setattr(t, "LEAST_ROOM", 16)
    expected = sampled([log.log])
    assert 10 < len(rows(expected.commits)) <= most
    assert_equal(sampled_in_bulk([log.log]), expected)


def test_busy_groups_have_more_lines_and_points(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for i in range(400):
        log.commit(i, group="busy", partition=i % 20).commit(i, group=f"idle-{i % 5}", partition=i % 4)
    found = offset_lines(sampled([log.log]).commits, {})
    assert found["busy"]["count"] == 20
    assert len(found["busy"]["lines"]) == 12
    shares = "offsets_log.report.lines.SHARES"
    from offsets_log.report.lines import Share

    monkeypatch.setattr(shares, (Share(1, 12, 60), Share(99, 2, 20)))
    found = offset_lines(sampled([log.log]).commits, {})
    assert sum(len(line["offsets"]) for line in found["busy"]["lines"]) <= 60 + 12
    assert [len(found[f"idle-{i}"]["lines"]) for i in range(5)] == [2] * 5


def test_messages_without_a_time_of_their_own_have_the_commits_time(recording: Recording) -> None:
    """Magic 0."""
    found = sampled(list(read_partitions(recording("kafka-0.8.2") / "log").values()))
    assert len(rows(found.commits)) > 50
    assert min(time_ms for _, _, time_ms, _, _ in rows(found.commits)) > 1_700_000_000_000
