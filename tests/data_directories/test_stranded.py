"""Committed offsets that lead to no record, in recordings in which some were made so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from offsets_log.checking.stranded import IDLE_MS, stranded_findings
from offsets_log.columnar.materialize.arrow import table_of_rows
from offsets_log.data_directory.cluster_image import TopicImage
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.lag import LAG_COLUMNS, group_lags, with_lag
from offsets_log.data_directory.lag_columns import lag_table
from offsets_log.data_directory.metadata_log import MetadataReplay, topics_made
from offsets_log.data_directory.stranded import Stranded, Topics, find_stranded
from offsets_log.disk.beside import Beside
from offsets_log.disk.growing import METADATA_DIRECTORY, GrowingTopics
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.rows.tables import COMPACT_COLUMNS
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.data_directories.copies import WORDS, Recorded, data_directories, words
from tests.data_directories.test_lag_words import described
from tests.data_directories.test_log_ends import committed
from tests.investigate.test_groups import folder_of

BEYOND = [("DD-1", "g-beyond", "empty", [[0, 3, 0, 0]]), ("DD-1", "g-beyond", "orders", [[0, 5000, 0, 108]])]
BELOW = [("DD-2", "g-short", "short", [[0, 5, 20, 80]])]
GONE = [("DD-3", "g-gone", "gone", [[0, 3]])]
MADE_SO = {
    ("kafka-4.3-one", "running"): BEYOND + BELOW,
    ("kafka-4.3-one", "stopped"): BEYOND + BELOW,
    ("kafka-3.9-one", "killed"): BEYOND + BELOW,
    ("kafka-4.3-blocked", "killed"): BEYOND + BELOW + GONE,
}
"""Rule, group, topic; of each offset partition, offset, and log start and end."""


def run(command: str, *arguments: object) -> Any:
    return CliRunner().invoke(main, [command, *map(str, arguments)], catch_exceptions=False)


def findings(*arguments: object) -> list[dict[str, Any]]:
    result = run("check", *arguments, "-o", "json")
    assert result.exit_code == 3
    return [row for row in json.loads(result.stdout)["findings"] if (row["rule"] or "").startswith("DD-")]


def numbers(row: dict[str, Any]) -> tuple[str, str, str, list[list[int]]]:
    return row["rule"], row["group"], row["detail"]["topic"], [list(one.values()) for one in row["detail"]["offsets"]]


@pytest.mark.parametrize(("name", "copy"), MADE_SO, ids="-".join)
def test_what_leads_to_no_record_is_what_was_made_so(name: str, copy: str, recorded: Recorded) -> None:
    """``DD-1``, ``DD-2``, ``DD-3``: and nothing else; ``--no-lag`` looks for none."""
    paths = data_directories(recorded(name), copy)
    found = findings(*paths)
    assert sorted(map(numbers, found)) == sorted(MADE_SO[name, copy])
    assert {row["severity"] for row in found} == {"doubt"}
    assert [numbers(row) for row in findings(*paths, "-g", "g-short")] == BELOW
    assert '"DD-' not in run("check", *paths, "--no-lag", "-o", "json").stdout


@pytest.mark.parametrize(("name", "copy"), MADE_SO, ids="-".join)
def test_what_leads_to_no_record_is_served_as_it_is(name: str, copy: str, recorded: Recorded) -> None:
    """``DD-1``, ``DD-2``, ``DD-3``: by AdminClient's words; and by the tool's, where it did not fail."""
    folder = recorded(name)
    served: Any = words(folder, copy)["group_offsets"]
    told = described(folder, WORDS.get(copy, copy))
    for _, group, topic, partitions in MADE_SO[name, copy]:
        for partition, offset, *ends in partitions:
            assert served[group][f"{topic}-{partition}"] == offset
            if told:
                assert told[group, topic, partition] == (offset, ends[1], ends[1] - offset)
    if (name, copy) == ("kafka-4.3-one", "running"):
        assert "gone-0" not in served["g-gone"]  # its tombstone was committed


def test_offsets_below_the_start_of_a_group_out_of_use_are_noted(recorded: Recorded) -> None:
    """``DD-2``: not committed for more than a day; those beyond the end stay doubtful."""
    paths = data_directories(recorded("kafka-4.3-one"), "running")
    (short,) = (row for row in findings(*paths) if row["rule"] == "DD-2")
    assert short["severity"] == "doubt"
    later = findings(*paths, "--now", "2026-11-24T00:00:00Z")
    assert {row["rule"]: row["severity"] for row in later} == {"DD-1": "doubt", "DD-2": "note"}
    (short,) = (row for row in later if row["rule"] == "DD-2")
    assert short["problem"].endswith("; not committed for more than a day")
    value = committed({"group": "g", "topic": "t", "partition": 0, "committed_offset": 1, "commit_timestamp_ms": 0})
    fresh = value._replace(partition=1, commit_timestamp_ms=IDLE_MS)
    both = [Stranded("DD-2", one, "", {}) for one in (value, fresh)]
    assert [one.severity for one in stranded_findings(both[:1], IDLE_MS + 1)] == ["note"]
    assert [one.severity for one in stranded_findings(both[:1], IDLE_MS)] == ["doubt"]
    assert [one.severity for one in stranded_findings(both, IDLE_MS + 1)] == ["doubt"]
    assert [one.severity for one in stranded_findings(both[:1])] == ["doubt"]


def test_an_offset_of_a_former_topic_is_told_by_its_id(recorded: Recorded) -> None:
    """``DD-4``: by the metadata, without it by the copy of the partition; not where a commit has no id."""
    former, now = Uuid(b"f" * 16), Uuid(b"n" * 16)
    row = {"group": "g", "topic": "orders", "partition": 0, "committed_offset": 5}
    metadata = MetadataReplay()
    metadata.image.topics[now] = TopicImage("orders", now, partitions={0: None})  # type: ignore[dict-item]
    old, new, none = (committed(row | {"topic_id": topic_id}) for topic_id in (str(former), str(now), None))
    with open_logs([str(path) for path in data_directories(recorded("kafka-4.3-one"), "stopped")]) as disk_logs:
        logs = CopiedLogs(disk_logs.user_partitions)
        copied = logs.topic_id("orders", 0)
        assert copied is not None
        metadata.former_topics[copied] = TopicImage("orders", copied)
        (found,) = find_stranded(logs, Topics(logs, metadata), [old, new, none])
        assert (found.rule, found.value) == ("DD-4", old)
        assert found.detail == {"committed_offset": 5, "topic_id": str(former), "topic_id_now": str(now)}
        own = str(logs.topic_id("orders", 0))
        (found,) = find_stranded(logs, Topics(logs, None), [old, committed(row | {"topic_id": own})])
        assert found.detail["topic_id_now"] == own
        assert logs.ends_for("orders", 0, own) == logs.ends_for("orders", 0, None) == logs.ends("orders", 0) is not None
        assert logs.ends_for("orders", 0, str(former)) is None
        del metadata.former_topics[copied]  # then it is older than the copy, whose id counts
        row["topic_id"] = own
        found = [one.rule for one in find_stranded(logs, Topics(logs, metadata), [committed(row), new])]
        assert found == ["DD-4"]
        later = committed(row | {"partition": 1})  # a partition that was added since
        assert not list(find_stranded(logs, Topics(logs, metadata), [later]))
        metadata.is_partial = True  # what it lacks may be there
        assert not list(find_stranded(logs, Topics(logs, metadata), [committed(row | {"partition": 70})]))


def test_an_offset_without_an_id_is_of_a_former_topic_if_this_one_was_made_later(recorded: Recorded) -> None:
    """``DD-4``: by the times of the commit and of the record in the metadata log that makes the topic."""
    paths = data_directories(recorded("kafka-3.9-one"), "stopped")
    with open_logs([str(path) for path in paths]) as disk_logs:
        beside = Beside(disk_logs)
        logs = beside.copied_logs
        made_ms = logs.newest_made_ms("reborn")
        assert 0 < logs.newest_made_ms("orders") < made_ms
        place = {"group": "g", "topic": "reborn", "partition": 0, "committed_offset": 0}
        times = (made_ms - 1500, made_ms - 1, made_ms, made_ms + 1, -1)
        values = [committed(place | {"commit_timestamp_ms": time_ms}) for time_ms in times]
        found = list(beside.iter_stranded(values))
        assert [(one.rule, one.detail["commit_timestamp_ms"]) for one in found] == [
            ("DD-4", times[0]),
            ("DD-4", times[1]),
        ]
        assert found[0].words == "committed 1500 ms before the topic of that name was made"
        rows = [place | {"commit_timestamp_ms": time_ms, "topic_id": None} for time_ms in times]
        told = list(with_lag(logs, rows, None))
        assert [row["lag"] is None for row in told] == [True, True, False, False, False]
        table = lag_table(logs, table_of_rows(rows, COMPACT_COLUMNS), None)
        assert table["lag"].to_pylist() == [row["lag"] for row in told]
        assert group_lags(logs, values)["g"]["partitions_without_lag"] == 2
        without = CopiedLogs(disk_logs.user_partitions)
        assert [row["lag"] is None for row in with_lag(without, rows, None)] == [False] * 5


def test_columns_of_a_table_are_those_of_its_rows(recorded: Recorded) -> None:
    """``DD-4``: offsets before, in and behind each log, of partitions without a copy too, of topics that were or are;
    and some that no column can hold."""
    (data,) = data_directories(recorded("kafka-4.3-one"), "running")
    orders_id = (data / "orders-0" / "partition.metadata").read_text()[-22:]
    keys = [("orders", 0), ("short", 0), ("short", 1), ("empty", 0), ("table", 0), ("nowhere", 3), ("orders", -7)]
    offsets = [-(1 << 63), -3, 0, 5, 19, 20, 21, 60, 107, 108, 5000, (1 << 63) - 1, 5]
    rows: list[dict[str, Any]] = [
        {"group": "g", "topic": topic, "partition": partition, "committed_offset": offset}
        for offset in offsets
        for topic, partition in keys
    ]
    for i, row in enumerate(rows):
        row["topic_id"] = (None, str(Uuid(b"f" * 16)), orders_id)[i % 3]
    for copy in ("running", "stopped"):
        for now_ms in (None, 1_900_000_000_000):
            for some in (rows, rows[:1], []):
                with open_logs([str(path) for path in data_directories(recorded("kafka-4.3-one"), copy)]) as disk_logs:
                    one, other = CopiedLogs(disk_logs.user_partitions), CopiedLogs(disk_logs.user_partitions)
                    made = lag_table(one, table_of_rows(some, COMPACT_COLUMNS), now_ms)
                    names = [column.name for column in LAG_COLUMNS]
                    expected = [{name: row[name] for name in names} for row in with_lag(other, some, now_ms)]
                    assert made.to_pylist() == expected
                    assert pa.Table.equals(made, made.cast(table_of_rows([], LAG_COLUMNS).schema))


def test_records_in_remote_storage_are_not_gone(recorded: Recorded) -> None:
    """``DD-2``: of a topic with tiered storage the disk has only the end of the log."""
    with open_logs([str(path) for path in data_directories(recorded("kafka-4.3-one"), "stopped")]) as disk_logs:
        beside = Beside(disk_logs)
        value = committed({"group": "g", "topic": "short", "partition": 0, "committed_offset": 5})
        assert [one.rule for one in beside.iter_stranded([value])] == ["DD-2"]
        assert beside.metadata is not None
        beside.metadata.replay.image.configs["topic", "short"] = {"remote.storage.enable": "true"}
        assert list(beside.iter_stranded([value])) == []


NOISE = (
    b"",
    b"0\n",
    b"0\nx\n",
    b"0\n2\nshort 0 20\n",
    b"\xff\xfe\x00garbage",
    b"7\n1\nshort 0 1\n",
    b"0\n1\na b c d\n",
)
FILES = (
    "replication-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties", ".kafka_cleanshutdown",
    "orders-0/leader-epoch-checkpoint", "orders-0/partition.metadata", "short-0/{}.index", "short-0/{}.log",
    "orders-0/{}.timeindex", "__cluster_metadata-0/{}.log", "__cluster_metadata-0/quorum-state",
)  # fmt: skip
COMMANDS = (
    ("compact", "--lag"), ("groups", "--lag"), ("rebuild", "--lag"), ("check", "--lag"), ("rescue", "--to", "R"),
    ("report", "--to", "R"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_garbage_beside_the_offsets_keeps_no_command_from_answering(
    command: tuple[str, ...], recorded: Recorded, tmp_path: Path
) -> None:
    """Half the files, in turn, each alone, then all: what a checkpoint lost is counted as damage, with its line."""
    (source,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    for number, name in enumerate((*FILES[COMMANDS.index(command) % 2 :: 2], None)):
        data = tmp_path / f"data-{number}"
        shutil.copytree(source, data)
        for i, file in enumerate(FILES):
            if name in (file, None):
                (data / file.format("0" * 20)).write_bytes(NOISE[(number + i) % len(NOISE)])
        arguments = [str(tmp_path / f"out-{number}") if word == "R" else word for word in command[1:]]
        result = run(command[0], data, *arguments)
        assert result.exit_code in (0, 3), (name, result.stderr)
        shutil.rmtree(data)


def test_a_checkpoint_that_is_refused_is_told_with_its_line(recorded: Recorded, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(data_directories(recorded("kafka-4.3-one"), "stopped")[0], data)
    (data / "log-start-offset-checkpoint").write_bytes(b"0\n1\nshort 0\n")
    result = run("compact", data, "--lag", "-o", "jsonl")
    assert result.exit_code == 3
    assert "log-start-offset-checkpoint" in result.stderr
    assert "line 3: 'short 0' is no topic, partition and offset" in result.stderr
    assert all(row["lag"] is not None for row in map(json.loads, result.stdout.splitlines()) if row["topic"] == "short")


def test_alerts_about_ends_know_former_topics_too(recorded: Recorded, tmp_path: Path) -> None:
    """``DD-4``: an offset without an id that was committed before a topic of that name was made has no lag."""
    (source,) = data_directories(recorded("kafka-3.9-one"), "stopped")
    metadata, log = (next((source / name).glob("*.log")) for name in (METADATA_DIRECTORY, "reborn-0"))
    made, _ = topics_made(PartitionLog(None, (Segment("", 0, metadata.read_bytes()),)))
    made_ms = max(one.created_at_ms or 0 for one in made.values() if one.name == "reborn")
    data = tmp_path / "data"
    shutil.copytree(log.parent, data / log.parent.name)
    built = LogBuilder()
    for name, time_ms in {"before": made_ms - 1, "after": made_ms}.items():
        built.commit(5000, group=name, topic="reborn", version=3, commit_timestamp=time_ms)
    folder_of(built, data)
    alerted = ("compact", data, "--follow", "--until-idle", "0ms", "--alert", "beyond-end", "-o", "jsonl")

    def alerts() -> set[str]:
        rows = map(json.loads, run(*alerted).stdout.splitlines())
        return {row["group"] for row in rows if row.get("event") == "alert"}

    assert alerts() == {"before", "after"}, "nothing tells when it was made"
    shutil.copytree(metadata.parent, data / METADATA_DIRECTORY)
    assert alerts() == {"after"}
    topics, growing = GrowingTopics(), data / METADATA_DIRECTORY / metadata.name
    content = metadata.read_bytes()
    for size_bytes in (100, len(content) // 2, len(content) // 2 + 1, len(content) - 1, 50, len(content)):
        growing.write_bytes(content[:size_bytes])
        found = list(topics.look([data]))
    assert {one.topic_id: one.created_at_ms for one in found} == {one: made[one].created_at_ms for one in made}


def test_damage_that_hides_when_a_topic_was_made_is_told_where_lag_is(recorded: Recorded, tmp_path: Path) -> None:
    """``DD-4``: of bytes that no replay reads, and of headers that lead no further."""
    (source,) = data_directories(recorded("kafka-3.9-one"), "stopped")
    data = shutil.copytree(source, tmp_path / "data")
    metadata = next((data / METADATA_DIRECTORY).glob("*.log"))
    content = metadata.read_bytes()
    before = run("compact", data, "--lag")
    for place in (content.index(b"reborn"), 8):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        metadata.write_bytes(damaged)
        result = run("compact", data, "--lag")
        assert (before.exit_code, result.exit_code) == (0, 3)
        (told,) = (line for line in result.stderr.splitlines() if "may not be known as such" in line)
        assert "1 piece" in told
        assert "may not be known as such (DD-4)" in told
        assert metadata.name in told
    made, damages = topics_made(PartitionLog(None, (Segment("", 0, bytes(damaged)),)))
    assert (len(damages), "reborn" in {one.name for one in made.values()}) == (1, True), "what is behind is read"
