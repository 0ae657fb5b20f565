"""`top` against Kafka's own dump of the recordings: who wrote how much, what is superseded, what is the same again."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.builders import LogBuilder, member, record_bytes
from tests.conftest import NEVER, BulkFrom, json_lines, read_json, read_json_lines
from tests.dump_log import DumpedBatch, DumpedRecord, read_dump
from tests.investigate.test_groups import folder_of
from tests.investigate.test_history import holders
from tests.replay.test_compact_recordings import Recording

Json = dict[str, Any]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["top", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object, status: int = 0) -> list[Json]:
    result = run(*arguments, "-o", "jsonl")
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def dumped(folder: Path) -> list[Json]:
    """Every record that Kafka's dump shows, with its share of the bytes."""
    found = []
    for dump in sorted((folder / "answers" / "dump-log").glob("?.txt.gz")):
        batches: list[tuple[int, list[DumpedRecord]]] = []
        for entry in read_dump(dump):
            if isinstance(entry, DumpedBatch):
                batches.append((int(entry.facts["size"] or 0), []))
            elif isinstance(entry, DumpedRecord):
                batches[-1][1].append(entry)
        for size, records in batches:
            sizes = [
                max(int(r.facts["key_size"] or 0), 0) + max(int(r.facts["value_size"] or 0), 0) + 1 for r in records
            ]
            ends = [size * sum(sizes[: i + 1]) // sum(sizes) for i in range(len(sizes))]
            for record, begin, end in zip(records, [0, *ends], ends, strict=False):
                found.append(fact(record, end - begin, int(dump.name[0])))
    return found


def fact(record: DumpedRecord, size: int, partition: int) -> Json:
    is_data = record.marker is None and record.key is not None
    key = json.loads(record.key or "") if is_data else None
    payload = json.loads(record.payload) if is_data and record.payload not in (None, "<DELETE>", "null") else None
    data = key["data"] if key else {}
    return {
        "key": record.key if is_data else None,
        "group": data.get("group", data.get("groupId")),
        "topic": data.get("topic") if key and key["type"] in ("0", "1") else None,
        "offset": payload["data"]["offset"] if payload and key and key["type"] in ("0", "1") else None,
        "is_tombstone": is_data and payload is None,
        "time": record.facts["timestamp_ms"],
        "bytes": size,
        "offsets_partition": partition,
    }


def expected(facts: list[Json], name: str) -> dict[Any, Json]:
    found: dict[Any, Json] = {}
    latest: dict[Any, Json] = {}
    minutes: Counter[tuple[Any, int]] = Counter()
    for one in facts:
        tally = found.setdefault(one[name], Counter())
        tally.update(records=1, bytes=one["bytes"], tombstones=one["is_tombstone"], commits=one["offset"] is not None)
        key = one["offsets_partition"], one["key"]
        if one["key"] is not None:
            if before := latest.get(key):
                found[before[name]]["garbage_bytes"] += before["bytes"]
                tally["noop_commits"] += one["offset"] is not None and before["offset"] == one["offset"]
            latest[key] = one
        if one["offset"] is not None:
            minutes[one[name], one["time"] // 60_000] += 1
    for (writer, _), count in minutes.items():
        found[writer]["peak"] = max(found[writer]["peak"], count)
    return found


COUNTS = ("records", "bytes", "tombstones", "commits", "garbage_bytes", "noop_commits")


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-4.3-compressed"])
@pytest.mark.parametrize("per", ["group", "topic", "offsets_partition", "hour"])
def test_counts_are_those_of_kafkas_dump(per: str, name: str, recording: Recording) -> None:
    """``C-4``–``C-6``."""
    folder = recording(name)
    facts = dumped(folder)
    for one in facts:
        one["hour_timestamp_ms"] = one["time"] // 3_600_000 * 3_600_000
    column = "hour_timestamp_ms" if per == "hour" else per
    wanted = expected(facts, column)
    found = rows(folder / "log", "--per", per)
    assert {row[column] for row in found} == set(wanted)
    for row in found:
        tally = wanted[row[column]]
        assert {count: row[count] for count in COUNTS} == {count: tally[count] for count in COUNTS}, row[column]
        assert row["peak_commits_per_second"] == (round(tally["peak"] / 60, 3) if tally["commits"] else None)
    assert sum(row["bytes"] for row in found) == sum(path.stat().st_size for path in (folder / "log").glob("*/*.log"))
    assert all(one["bytes"] >= other["bytes"] for one, other in pairwise(found))


def test_clients_are_those_that_the_brokers_answers_name(recording: Recording) -> None:
    """Commits between two steps that show the same holder of the partition, and never another one."""
    folder = recording("kafka-4.3-mixed")
    lines = [
        line for line in read_json_lines(folder / "timeline.jsonl") if "groups" in line and "not_quiet" not in line
    ]
    sure: Counter[tuple[str, str]] = Counter()
    history = json_lines(CliRunner().invoke(main, ["history", str(folder / "log"), "-g", "*", "-o", "jsonl"]).stdout)
    commits = [row for row in history if row["event"] == "commit"]
    for before, after in pairwise(lines):
        held, same = holders(before), holders(after)
        for row in commits:
            partition = str(row["offsets_partition"])
            key = (row["group"], row["topic"], row["partition"])
            inside = before["end_offsets"][partition] <= row["record_offset"] < after["end_offsets"][partition]
            if inside and key in held and held[key] == same.get(key):
                sure[held[key][1:3]] += 1
    found = {(row["client_id"], row["host"]): row["commits"] for row in rows(folder / "log", "--per", "client")}
    assert sure
    assert all(found[client] >= count for client, count in sure.items())
    assert sum(found.values()) == len(commits)


def test_every_order_and_the_limit(recording: Recording) -> None:
    folder = recording("kafka-4.3-mixed")
    for by, column in (
        ("records", "records"), ("bytes", "bytes"), ("garbage", "garbage_bytes"), ("noop", "noop_commits"),
        ("rate", "peak_commits_per_second"),
    ):  # fmt: skip
        values = [row[column] or 0 for row in rows(folder / "log", "--by", by, "--per", "member")]
        assert values == sorted(values, reverse=True)
        assert rows(folder / "log", "--by", by, "--limit", 3) == rows(folder / "log", "--by", by)[:3]


def gone_in(stderr: str) -> tuple[int, int] | None:
    """How many offsets are gone, of how many, as standard error says."""
    match = re.search(r"^(\d+) of the (\d+) offsets .* hold no record any more", stderr, re.MULTILINE)
    return (int(match[1]), int(match[2])) if match else None


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
def test_offsets_that_hold_no_record_are_told(least_bytes: int, tmp_path: Path, bulk_from: BulkFrom) -> None:
    """At the begin, between batches, inside a batch, between segments and behind the last batch."""
    bulk_from(least_bytes)
    log = LogBuilder().skip(5).commit(1).skip(39_943).commit(2).commit(3, producer=7).end(7)
    folder = folder_of(log, tmp_path)
    assert gone_in(run(folder).stderr) == (39_948, 39_952)
    assert gone_in(run(folder, "--until-offset", log.offset - 2).stderr) == (39_948, 39_950)
    assert gone_in(run(folder, "--until-offset", 6).stderr) == (5, 6)
    assert gone_in(run(folder, "-g", "nobody").stderr) == (39_948, 39_952)
    empty = folder / "__consumer_offsets-0" / f"{log.offset + 8:020}.log"
    empty.write_bytes(b"")
    assert gone_in(run(folder).stderr) == (39_956, 39_960)
    empty.write_bytes(LogBuilder().skip(log.offset + 8).commit(5).batches[0])
    assert gone_in(run(folder).stderr) == (39_956, 39_961)
    folder_of(LogBuilder().commit(1).commit(2), tmp_path / "whole")
    assert gone_in(run(tmp_path / "whole").stderr) is None
    assert gone_in(run(tmp_path / "whole", folder, "-q").stderr) is None
    assert rows(folder)[0]["bytes_share"] > 0


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
def test_what_a_real_cleaner_took_is_told(least_bytes: int, recording: Recording, bulk_from: BulkFrom) -> None:
    """Against the end of the log and the records that Kafka's dump shows."""
    bulk_from(least_bytes)
    folder = recording("kafka-4.3-cleaned")
    left = dumped(folder)
    ends = read_json(folder / "answers" / "restart.json")["end_offsets"]
    found = gone_in(run(folder / "log").stderr)
    assert found == (sum(ends.values()) - len(left), sum(ends.values()))


def test_dumps_without_markers_do_not_claim_that_offsets_are_gone(tmp_path: Path) -> None:
    log = folder_of(LogBuilder().commit(1).commit(2, producer=5).end(5), tmp_path)
    dump = CliRunner().invoke(main, ["decode", str(log), "--as", "dump-log"]).stdout
    (tmp_path / "kcat").write_text("0 7 1 00 NULL\n")
    assert gone_in(run(tmp_path / "kcat", "--input-format", "kcat").stderr) is None
    (tmp_path / "dump").write_text(dump)
    assert gone_in(run(tmp_path / "dump").stderr) is None


def test_filters_count_what_they_show(recording: Recording) -> None:
    folder = recording("kafka-4.3-mixed")
    (one,) = rows(folder / "log", "-g", "wide-metrics")
    assert one == next(row for row in rows(folder / "log") if row["group"] == "wide-metrics") | {"bytes_share": 1.0}
    assert {row["topic"] for row in rows(folder / "log", "-t", "T", "--per", "topic")} == {"T"}


# ------------------------------------------------------------------------------------------ small logs


def test_who_is_named_for_commits(tmp_path: Path) -> None:
    """``W-7``."""
    log = LogBuilder().commit(1).group(member("m", client_id="one", client_host="/h1")).commit(1).commit(1, producer=4)
    log.group(member("m"), member("n")).commit(2).end(4).commit(None)
    found = rows(folder_of(log, tmp_path), "--per", "client")
    named = {row["client_id"]: (row["commits"], row["noop_commits"], row["records"]) for row in found}
    assert named == {"one": (1, 1, 1), None: (3, 1, 7)}


@pytest.mark.parametrize("least_bytes", [NEVER, 0])
def test_a_producers_commit_is_of_a_transaction_whatever_its_bit_says(
    least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``J-5``: the only member of the group need not have sent it."""
    bulk_from(least_bytes)
    value = {"offset": 1, "metadata": "", "commit_timestamp": 1}
    commit = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, value, 3)
    log = LogBuilder().group(member("m", client_id="one")).add(commit)
    log.add(commit, producer_id=4, producer_epoch=0, base_sequence=0)
    found = rows(folder_of(log, tmp_path), "--per", "client")
    assert {row["client_id"]: row["commits"] for row in found} == {"one": 1, None: 1}


def test_bytes_of_a_cut_batch_are_shares_of_the_whole(tmp_path: Path) -> None:
    value = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 1}
    pairs = [record_bytes(1, {"group": "g", "topic": "t", "partition": i}, value, 3) for i in range(4)]
    log = LogBuilder().add(*pairs)
    folder = folder_of(log, tmp_path)
    (whole,) = rows(folder)
    (half,) = rows(folder, "--until-offset", 2)
    assert (half["records"], half["bytes"]) == (2, whole["bytes"] // 2)


def test_damage_is_counted_for_nobody_and_told(tmp_path: Path) -> None:
    log = LogBuilder().commit(1).add((b"\0\1", b"")).commit(2)
    found = rows(folder_of(log, tmp_path), status=3)
    assert {row["group"]: row["records"] for row in found} == {"g": 2, None: 1}


def test_old_messages_have_no_times(recording: Recording) -> None:
    folder = recording("kafka-0.8.2")
    found = rows(folder / "log", "--per", "hour")
    assert [row["hour_timestamp_ms"] for row in found] == [None]
    assert found[0]["records"] == sum(1 for _ in json_lines(decoded(folder)))
    assert found[0]["peak_commits_per_second"] is None


def decoded(folder: Path) -> str:
    return CliRunner().invoke(main, ["decode", str(folder / "log"), "-o", "jsonl"]).stdout


def test_no_mean_is_above_the_peak(recording: Recording) -> None:
    """Commits of milliseconds are no thousands a second, where their whole minute has few."""
    found = rows(recording("kafka-4.3-mixed") / "log")
    rates = [(row["commits_per_second"], row["peak_commits_per_second"]) for row in found if row["commits"]]
    assert rates
    assert all(0 < mean <= peak for mean, peak in rates)
