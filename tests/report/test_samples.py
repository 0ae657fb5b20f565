"""Samples over time: what each line ends with, against brokers' answers; generations, against Kafka's own dump."""

from __future__ import annotations

import json
from typing import Any

import pytest

from offsets_log.columnar.events import export
from offsets_log.columnar.events.export import Export
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import EVERYTHING, Until, iter_events
from offsets_log.replay.profile import MODERN, Profile
from offsets_log.report import samples as s
from offsets_log.report.lines import generation_lines, offset_lines
from tests.builders import TIME, LogBuilder, record_bytes
from tests.conftest import RECORDINGS, log_directories, read_json, read_partitions
from tests.dump_log import DumpedRecord, read_dump
from tests.replay.test_compact_recordings import LOADED, WITH_STEPS, Recording, answered, profile_of, steps

BY_JAVA = [name for name in LOADED if name.startswith("kafka-4")]


def sampled(logs: list[PartitionLog], profile: Profile = MODERN, until: dict[int, Until] | None = None) -> s.Sampled:
    samples = s.Samples(profile)
    for number, log in enumerate(logs):
        bound = EVERYTHING if until is None else until[log.offsets_partition or 0]
        for _ in samples.watch(log, number, iter_events(log, until=bound)):
            pass
    return samples.finish()


def ends(found: s.Sampled) -> dict[tuple[str, str, int], int]:
    """What each line ends with, without those that end with a tombstone."""
    latest: dict[tuple[str, str, int], Any] = {}
    for row in found.commits.to_pylist():
        latest[row["group"], row["topic"], row["partition"]] = row["committed_offset"]
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
def test_lines_end_with_the_answers_at_every_step(name: str, recording: Recording) -> None:
    """Transactions open, committed and aborted among them (``J-8``, ``J-10``, ``J-11``, ``J-12``)."""
    folder = recording(name)
    for log_directory, line in steps(folder, read_json(folder / "recording.json")):
        logs = list(read_partitions(log_directory).values())
        until = {log.offsets_partition: Until(line["end_offsets"].get(str(log.offsets_partition), 0)) for log in logs}
        assert ends(sampled(logs, until=until)) == of_answer(line), line["what"]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name != "load-fails"])
def test_parts_read_by_kernels_are_sampled_as_events_are(
    name: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the log is cut: inside transactions too."""
    folder = recording(name)
    profile = profile_of(read_json(folder / "recording.json"))
    logs = list(read_partitions(log_directories(folder)[0]).values())
    monkeypatch.setattr(export, "PART_BYTES", 3000)
    bulk = s.Samples(profile)
    Export(bulk.write, note=lambda log: lambda seen: None, threads=2).run(logs)
    one, other = sampled(logs, profile), bulk.finish()
    assert sorted_rows(one.commits) == sorted_rows(other.commits)
    assert sorted_rows(one.generations) == sorted_rows(other.generations)
    assert one.untimed == other.untimed


def sorted_rows(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-3.9-classic"])
def test_generations_are_those_that_kafkas_dump_shows(name: str, recording: Recording) -> None:
    folder = recording(name)
    expected: dict[str, dict[int, int | None]] = {}
    for dump in sorted((folder / "answers" / "dump-log").glob("?.txt.gz")):
        for entry in read_dump(dump):
            if isinstance(entry, DumpedRecord) and (fact := generation_in(entry)) is not None:
                group, time_ms, generation = fact
                expected.setdefault(group, {})[time_ms] = generation  # the last of a millisecond
    found = generation_lines(sampled(list(read_partitions(folder / "log").values())).generations, None)
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
    line = generation_lines(sampled([log.log]).generations, None)["g"]
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


def test_wider_buckets_keep_each_lines_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for offset in range(200):
        log.commit(offset, partition=offset % 10)
    monkeypatch.setattr(s, "MOST_COMMITS", 50)
    found = sampled([log.log])
    monkeypatch.undo()
    assert len(found.commits) <= 50
    assert ends(found) == {("g", "t", i): 190 + i for i in range(10)}
    assert sum(found.commits["records"].to_pylist()) == 200


@pytest.mark.parametrize("most", [50, 60, 100])
def test_buckets_read_by_kernels_are_as_wide(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for offset in range(400):
        log.commit(offset, partition=offset % 10).skip(699)
    monkeypatch.setattr(s, "MOST_COMMITS", most)
    bulk = s.Samples(MODERN)
    Export(bulk.write, note=lambda log: lambda seen: None).run([log.log])
    one, other = sampled([log.log]), bulk.finish()
    assert 10 < len(one.commits) <= most
    assert sorted_rows(one.commits) == sorted_rows(other.commits)


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
    assert len(found.commits) > 50
    assert min(found.commits["time_ms"].to_pylist()) > 1_700_000_000_000
