"""`compact` and `decode` as a user has them: formats, columns, filters, bounds."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from offsets_log.kafka_releases import NEWEST
from offsets_log.log_format.batch import BATCH_HEADER_SIZE
from offsets_log.log_format.building import build_marker
from offsets_log.log_format.java_text import MalformedString
from offsets_log.rows.survey import INFO_COLUMNS
from tests.builders import LogBuilder
from tests.cli.runs import ROOT, SAMPLE, batch_of, commit, rows, run, write_partition
from tests.cli.test_damage_told import broken
from tests.conftest import NEVER, BulkFrom, read_json, read_partitions

# --------------------------------------------------------------------------------------------- compact

COMPACT = (
    "group", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "commit_timestamp_ms",
    "expire_timestamp_ms", "topic_id", "record_offset", "offsets_partition",
)  # fmt: skip


def test_compact_rows_have_the_columns_of_the_contract_and_the_brokers_values() -> None:
    found = rows("compact", SAMPLE)
    answer = read_json(ROOT / "samples" / "kafka-4.3-mixed" / "answers" / "restart.json")
    assert all(tuple(row) == COMPACT for row in found)
    names = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
    assert [tuple(row[name] for name in names) for row in found] == sorted(
        tuple(row[name] for name in names) for row in answer["offsets"]
    )


def test_every_output_format_tells_the_same(tmp_path: Path) -> None:
    found = rows("compact", SAMPLE)
    assert json.loads(run("compact", SAMPLE, "-o", "json").stdout) == found
    run("compact", SAMPLE, "-o", "csv", "--to", tmp_path / "offsets.csv")
    table = list(csv.DictReader(io.StringIO((tmp_path / "offsets.csv").read_text(), newline="")))
    assert [{name: "" if row[name] is None else str(row[name]) for name in COMPACT} for row in found] == table
    lines = run("compact", SAMPLE, "-o", "table").stdout.split("\n")
    assert len(lines) == len(found) + 4  # two lines of head, a rule, and the end


AWKWARD = (
    "",
    " ",
    "a,b",
    'say "hi"',
    "two\nlines",
    "tab\tbell\x07",
    "line\u2028separator",
    "\u202egnol",
    "😀 émoji",
    "\\n",
)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_survive_every_output(name: str, tmp_path: Path) -> None:
    folder = write_partition(tmp_path, [batch_of(commit(name, name, metadata=name))])
    (row,) = rows("compact", folder)
    assert (row["group"], row["topic"], row["metadata"]) == (name, name, name)
    assert json.loads(run("compact", folder, "-o", "json").stdout) == [row]
    run("compact", folder, "-o", "csv", "--to", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert (line["group"], line["topic"], line["metadata"]) == (name, name, name)
    table = run("compact", folder, "-o", "table").stdout
    assert len(table.split("\n")) == 5  # nothing in a name breaks a row
    (decoded,) = rows("decode", folder)
    assert decoded["key"] == {"group": name, "topic": name, "partition": 0}


def test_malformed_names_read_as_the_broker_reads_them_with_their_bytes_beside(tmp_path: Path) -> None:
    """``B-7``; two malformed names that read alike are one to the broker."""
    bad, alike = MalformedString(b"gr\xff"), MalformedString(b"gr\xfe")
    batches = [batch_of(commit(bad, offset=1), commit(alike, offset=2), commit("good", alike, metadata=bad))]
    found = rows("compact", write_partition(tmp_path, batches))
    assert [(row["group"], row["topic"], row["committed_offset"]) for row in found] == [
        ("good", "gr\ufffd", 1),
        ("gr\ufffd", "t", 2),
    ]
    assert base64.b64decode(found[0]["topic_base64"]) == b"gr\xfe"
    assert base64.b64decode(found[0]["metadata_base64"]) == b"gr\xff"
    assert base64.b64decode(found[1]["group_base64"]) == b"gr\xfe"
    decoded = rows("decode", tmp_path)
    assert [base64.b64decode(row["group_base64"]) for row in decoded[:2]] == [b"gr\xff", b"gr\xfe"]


def test_filters_keep_groups_topics_and_partitions() -> None:
    everything = rows("compact", SAMPLE)
    assert rows("compact", SAMPLE, "-g", "tx-*", "-g", "alive-metrics") == [
        row for row in everything if row["group"].startswith("tx-") or row["group"] == "alive-metrics"
    ]
    assert rows("compact", SAMPLE, "-t", "T") == [row for row in everything if row["topic"] == "T"]
    assert rows("compact", SAMPLE, "-p", "0", "-p", "2") == [
        row for row in everything if row["offsets_partition"] in (0, 2)
    ]


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
@pytest.mark.parametrize("format_name", ["table", "jsonl", "json", "csv", "parquet"])
def test_offsets_under_an_open_transaction_are_counted_in_words(
    format_name: str, least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``g`` has 120 and 160 pending; of ``h`` nothing but a pending one, which is no answer."""
    bulk_from(least_bytes)
    log = LogBuilder().commit(120).commit(7, partition=1).commit(8, group="i").commit(160, producer=5)
    log.commit(9, partition=1, producer=6).end(6).commit(1, group="h", producer=5)
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"".join(log.batches))
    words = "1 of these offsets has a newer value in an open transaction: --unstable shows which"
    told = {(): True, ("-g", "g"): True, ("-g", "i"): False, ("--unstable",): False, ("-q",): False}
    for number, (options, is_told) in enumerate(told.items()):
        target = ("--to", tmp_path / f"{number}.parquet") if format_name == "parquet" else ()
        result = run("compact", folder, "-o", format_name, *target, *options)
        assert result.exit_code == 0
        assert (words in result.stderr.splitlines()) == is_told
        shown = "".join(pq.read_schema(target[1]).names) if target else result.stdout
        assert ("unstable" in shown) == ("--unstable" in options)


def test_orphans_and_unstable_are_shown_where_asked(tmp_path: Path) -> None:
    """``J-15``: a group's tombstone leaves its offsets behind."""
    group_tombstone = (b"\x00\x02\x00\x01g", None)
    open_transaction = batch_of(
        commit("h", offset=9), first=2, producer_id=5, producer_epoch=0, is_transactional=True, base_sequence=0
    )
    folder = write_partition(tmp_path, [batch_of(commit("g"), group_tombstone), open_transaction])
    folder = tmp_path
    assert rows("compact", folder) == []
    assert [row["group"] for row in rows("compact", folder, "--orphans")] == ["g"]
    (folder / "__consumer_offsets-0" / "00000000000000000000.log").write_bytes(
        batch_of(commit("h", offset=1), first=0) + batch_of(commit("i"), first=1) + open_transaction
    )
    assert [
        (row["group"], row["committed_offset"], row["unstable"]) for row in rows("compact", folder, "--unstable")
    ] == [
        ("h", 1, True),
        ("i", 1, False),
    ]


def test_values_of_version_1_with_an_explicit_retention_are_read_of_late_brokers_too() -> None:
    """``records:W1``: 4.3 writes them for requests of version 2 to 4; the leader epoch is lost, the expiry is there."""
    found = [row for row in rows("decode", SAMPLE) if row["record_type"] == 1 and row["value_version"] == 1]
    assert found
    for row in found:
        assert set(row["value"]) == {"offset", "metadata", "commitTimestamp", "expireTimestamp"}
        assert row["value"]["expireTimestamp"] > row["value"]["commitTimestamp"]
    assert any(row["expire_timestamp_ms"] for row in rows("compact", SAMPLE))


# ---------------------------------------------------------------------------------------------- bounds


def test_until_offset_takes_one_bound_for_all_or_one_for_a_partition(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    everything = rows("decode", log)
    assert rows("decode", log, "--until-offset", "10") == [row for row in everything if row["record_offset"] < 10]
    assert rows("decode", log, "--until-offset", "1:5", "--until-offset", "3:7") == [
        row for row in everything if row["record_offset"] < {1: 5, 3: 7}.get(row["offsets_partition"], 10**9)
    ]
    of_both = rows("decode", log, "--until-offset", "10", "--until-offset", "3:7")
    assert of_both == [row for row in everything if row["record_offset"] < {3: 7}.get(row["offsets_partition"], 10)]


def test_until_time_reads_batches_up_to_the_first_that_is_later(tmp_path: Path) -> None:
    batches = [
        batch_of(commit("a"), first=0, time_ms=1_000),
        batch_of(commit("b"), first=1, time_ms=90_000),
        batch_of(commit("c"), first=2, time_ms=2_000),
    ]
    folder = write_partition(tmp_path, batches)
    for text in ("1970-01-01T00:00:02Z", "1970-01-01T00:00:02", "1970-01-01T01:00:02+01:00"):
        result = run("compact", folder, "--until-time", text, "-o", "jsonl")
        assert result.exit_code == 3, "what is within the bound is not read"
        assert [json.loads(line)["group"] for line in result.stdout.splitlines()] == ["a"]
    assert [row["group"] for row in rows("compact", folder, "--until-time", "2h")] == ["a", "b", "c"]
    assert run("compact", folder, "--until-time", "some day").exit_code == 2


@pytest.mark.parametrize(
    ("text", "told", "status"),
    [
        ("1795239383", "1970-01-21 18:40:39.383Z", 2), ("20260101", "1970-01-01 05:37:40.101Z", 0),
        ("-1", "1969-12-31", 0),
    ],
)  # fmt: skip
def test_of_a_number_that_is_hardly_a_time_of_kafka_it_is_said_how_it_is_read(
    text: str, told: str, status: int
) -> None:
    """Seconds are wrong usage: the answer would be that of 1970."""
    result = run("compact", SAMPLE, "--until-time", text)
    assert (result.exit_code, result.stdout) == (status, "")
    assert f"{text} as epoch ms is {told}" in result.stderr
    assert "2026-01-31T14:05:00Z" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("groups", SAMPLE, "--now", "1795239383"),
        ("groups", SAMPLE, "--stale", "30"),
        ("history", SAMPLE, "-g", "*", "--from-time", "1795239383"),
        ("diff", SAMPLE, "--from-time", "1795239383"),
        ("compact", SAMPLE, "--follow", "--until-idle", "5"),
        ("groups", SAMPLE, "--follow", "--alert", "group-empty:7"),
    ],
    ids=lambda words: " ".join(map(str, words[-2:])),
)
def test_seconds_and_numbers_without_a_unit_are_wrong_usage(words: tuple[str, ...]) -> None:
    """``30`` of what: a reader of minutes or days gets another answer than of milliseconds, and no line."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "before there was Kafka" in result.stderr or f"Give a unit: {words[-1].partition(':')[2] or words[-1]}m" in (
        result.stderr
    )


def test_a_retention_without_a_unit_is_milliseconds_and_few_of_them_are_told() -> None:
    result = run("expire", SAMPLE, "--retention", "10080")
    assert result.exit_code == 0
    assert "10080 is read as 10080 ms; with a unit it is 10080m or 10080d" in result.stderr
    assert "is read as" not in run("expire", SAMPLE, "--retention", "604800000").stderr


def test_only_columns_of_the_command_are_named_where_a_dump_does_not_tell_them() -> None:
    named = run("compact", ROOT / "tests" / "dumps" / "data" / "dump-log-2.4.1.txt.gz").stderr
    assert "null for: commit_timestamp_ms, expire_timestamp_ms, leader_epoch, topic_id\n" in named


def test_how_a_broker_was_stopped_is_asked_of_a_broker_only() -> None:
    result = run("compact", SAMPLE, "--shutdown", "clean")
    assert (result.exit_code, "give --as-broker too" in result.stderr) == (2, True)


def test_bounds_inside_a_transaction_leave_it_open(tmp_path: Path) -> None:
    facts = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True, "base_sequence": 0}
    marker = build_marker(1, commit=True, producer_id=5, producer_epoch=1, timestamp_ms=5)
    folder = write_partition(tmp_path, [batch_of(commit("g", offset=8), **facts), marker])
    assert [row["committed_offset"] for row in rows("compact", folder)] == [8]
    assert rows("compact", folder, "--until-offset", "1") == []


# ---------------------------------------------------------------------------------------------- decode

DECODE = (
    "file", "offsets_partition", "position", "batch_base_offset", "record_offset", "timestamp_ms", "timestamp_type",
    "magic", "compression", "producer_id", "producer_epoch", "is_transactional", "is_control", "record_type", "name",
)  # fmt: skip


def test_decode_rows_have_the_columns_of_the_contract_in_order() -> None:
    found = rows("decode", SAMPLE)
    for row in found:
        assert tuple(row)[: len(DECODE)] == DECODE
        if row["is_control"]:
            assert set(row["control"]) == {"type", "coordinatorEpoch"}
            assert not {"key", "value", "value_version"} & set(row)
        else:
            assert {"key", "value", "value_version"} <= set(row)
            assert (row["value"] is None) == (row["value_version"] is None)
    first = found[0]
    assert first["position"] == BATCH_HEADER_SIZE


def test_positions_lead_to_the_records_in_the_file(recording: Callable[[str], Path]) -> None:
    for name in ("kafka-4.3-mixed", "kafka-lifetime"):
        log = recording(name) / "log"
        data = {p: log.segments for p, log in read_partitions(log).items()}
        for row in rows("decode", log):
            if row["compression"] == "none" and "key_hex" not in row and row["record_type"] is not None:
                (segment,) = (s for s in data[row["offsets_partition"]] if row["file"].endswith(s.file))
                key_head = row["record_type"].to_bytes(2)
                assert key_head in bytes(segment.buffer[row["position"] : row["position"] + 40])


def test_unknown_tags_and_trailing_bytes_stand_beside_key_and_value(tmp_path: Path) -> None:
    key, value = commit("g")
    assert value.endswith(b"\x00")
    tagged = value[:-1] + b"\x01\x07\x02hi"
    found = rows("decode", write_partition(tmp_path, [batch_of((key + b"k", tagged + b"\xaa\xbb"))]))
    (row,) = found
    assert row["unknown_tags"] == [{"path": "value", "tag": 7, "hex": b"hi".hex()}]
    assert (row["trailing_hex"], row["key_trailing_hex"]) == ("aabb", b"k".hex())
    assert set(row["value"]) == {"offset", "leaderEpoch", "metadata", "commitTimestamp"}


def test_expand_opens_subscriptions_and_keeps_what_does_not_parse() -> None:
    plain, expanded = rows("decode", SAMPLE), rows("decode", SAMPLE, "--expand")
    opened = opaque = 0
    for before, after in zip(plain, expanded, strict=True):
        if before["record_type"] == 2 and before["value"]:
            for raw, shown in zip(before["value"]["members"], after["value"]["members"], strict=True):
                if isinstance(shown["subscription"], dict):
                    opened += 1
                else:
                    opaque += 1
                    assert raw["subscription"] == shown["subscription"]
        else:
            assert before == after
    assert opened > 20
    assert opaque >= 1


def test_layouts_of_an_earlier_release_can_be_asked_for(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-3.7-preview") / "log"
    guessed, told = rows("decode", log), rows("decode", log, "--kafka", "3.7.2")
    assert guessed == told
    assert any("assignors" in (row.get("value") or {}) for row in told)


def test_a_bound_for_a_partition_that_is_not_there_is_told() -> None:
    assert "--until-offset 99:3 has no effect" in run("compact", SAMPLE, "--until-offset", "99:3").stderr


def test_csv_of_decode_keeps_raw_bytes(tmp_path: Path) -> None:
    folder = broken(tmp_path / "data")
    run("decode", folder, "-o", "csv", "--to", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert lines[1]["key_hex"] == b"\x00\x63rest".hex()
    assert lines[1]["value_hex"] == b"new".hex()


@pytest.mark.parametrize("of_transactions", [False, True])
def test_rows_of_info_have_the_columns_that_are_told(of_transactions: bool) -> None:
    folder = ROOT / "samples" / "kafka-4.3-data-directory" if of_transactions else SAMPLE
    for row in rows("info", folder):
        assert list(row) == [column.name for column in INFO_COLUMNS]


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_the_page_of_info_tells_no_group_from_none_that_fits(
    least_bytes: int, bulk_from: BulkFrom, tmp_path: Path
) -> None:
    bulk_from(least_bytes)
    assert "groups after a load: none of 34 fits\n" in run("info", SAMPLE, "-g", "zz*", "-o", "table").stdout
    assert (
        "groups after a load: simple 6 (simple: classic, with offsets only)\n"
        in run("info", SAMPLE, "-g", "tx-*", "-o", "table").stdout
    )
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").touch()
    assert "groups after a load: none\n" in run("info", folder, "-g", "zz*", "-o", "table").stdout


@pytest.mark.parametrize("is_bulk", [False, True])
def test_lines_of_dump_log_say_that_they_leave_out_unknown_tags(
    is_bulk: bool, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    bulk_from(0 if is_bulk else NEVER)
    key, value = commit("g")
    log = write_partition(tmp_path, [batch_of((key, value[:-1] + b"\x01\x07\x02hi"), commit("h"))])
    told = f"tagged fields that no release up to {NEWEST.name} has"
    assert told in run("decode", log, "--as", "dump-log").stderr
    assert told not in run("decode", log, "--as", "dump-log", "-g", "h").stderr
    assert told not in run("decode", log, "-o", "jsonl").stderr
