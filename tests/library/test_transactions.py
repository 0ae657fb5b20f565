"""Open transactions as a table, and by `transactions`: what `check`, `info`, `rebuild` and `clean` tell of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import offsets_log as ol
from offsets_log.data_directory.decisions import first_batches
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.partition_log import batches_of, beginnings
from tests.cli.runs import run
from tests.conftest import DISTINCT, BulkFrom, log_directories
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.library.answers import PLAIN_FIRST, Row, as_told, told

__all__ = ["recorded"]

NOW_MS = 1_800_000_000_000
NOW = ("--now", str(NOW_MS))
OUTCOME = ("transactional_id", "transaction_state", "transaction_timeout_ms", "outcome", "abort_command")


@pytest.mark.parametrize(("name", "least_bytes"), PLAIN_FIRST)
def test_rows_are_those_of_the_command_and_what_check_finds(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            rows = as_told(copy.transactions(now_ms=NOW_MS))
        assert rows == told("transactions", log, *NOW)
        assert_as_checked(rows, log)


def assert_as_checked(rows: list[Row], *paths: Path) -> None:
    """What `check`, `info` and `rebuild` tell of the same."""
    findings = [row for row in told("check", paths[0], *map(str, paths[1:])) if row["rule"] == "C-1"]
    details = {(row["offsets_partition"], row["detail"]["producer_id"]): row["detail"] for row in findings}
    of_records = {
        (row["offsets_partition"], row["producer_id"]): row for row in rows if row["first_offset"] is not None
    }
    of_records = {key: row for key, row in of_records.items() if row["records"]}
    assert of_records.keys() == details.keys()
    for key, row in of_records.items():
        assert row["first_timestamp_ms"] == details[key]["first_timestamp_ms"]
        assert row["first_offset"] <= details[key]["first_offset"], "a batch without records may be the first (CL-58)"
    pending: dict[tuple[int, int], set[str]] = {}
    for row in told("rebuild", paths[0], *map(str, paths[1:]), "--table", "pending"):
        pending.setdefault((row["offsets_partition"], row["producer_id"]), set()).add(row["group"])
    groups = {(row["offsets_partition"], row["producer_id"]): set(row["groups"]) for row in rows if row["groups"]}
    assert groups == pending
    surveyed = [
        (row["offsets_partition"], one["producer_id"], one["first_record_offset"], one["records"])
        for row in told("info", paths[0], *map(str, paths[1:]))
        for one in row["open_transactions"] or ()
    ]
    names = ("offsets_partition", "producer_id", "first_record_offset", "records")
    assert sorted(tuple(row[name] for name in names) for row in of_records.values()) == sorted(surveyed)


@pytest.mark.parametrize("name", ["kafka-4.3-one", "kafka-3.9-one"])
@pytest.mark.parametrize("copy_name", ["running", "stopped"])
def test_what_becomes_of_them_is_told(name: str, copy_name: str, recorded: Recorded) -> None:
    paths = data_directories(recorded(name), copy_name)
    with ol.open(*paths) as copy:
        table = copy.transactions(now_ms=0)
        rows = as_told(table)
        hanging = [row for row in rows if row["outcome"] == "hanging"]
        assert {row["transactional_id"] for row in hanging} >= {"tx-hanging-empty"}
        for row in hanging:
            assert row["abort_command"].endswith(f"--start-offset {row['first_offset']}")
            assert any(row["abort_command"] in words for words in table.notes)
        of_pending = {row["producer_id"]: row for row in copy.pending().rows()}
        for row in rows:
            assert [row[name] for name in OUTCOME] == [of_pending[row["producer_id"]][name] for name in OUTCOME]
        late = as_told(copy.transactions(now_ms=NOW_MS))
        assert {row["outcome"] for row in rows if row["outcome"] != "timed out"} >= {"hanging", "undecided"}
        assert "timed out" in {row["outcome"] for row in late}
    assert_as_checked(rows, *paths)
    page = run("transactions", *paths, "-o", "table").stdout
    assert page.rstrip().split("\n")[-1] == hanging[-1]["abort_command"]


def test_a_group_chooses_whole_transactions(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        assert [row["groups"] for row in copy.transactions("only-*").rows()] == [["only-pending-metrics"]]
        assert copy.transactions("metrics-*").rows() == []
        assert any("nothing here fits" in words for words in copy.transactions("none").notes)
        before = copy.at("2026-11-21T05:37:19.200Z").transactions()
        assert [(row["producer_id"], row["kept_bytes"]) for row in before.rows()] == [(9, None)]
        assert any("leave out the bounds" in words for words in before.notes)
        (first, *_) = copy.transactions(now_ms=NOW_MS).rows()
        assert first["age_ms"] == NOW_MS - first["first_timestamp_ms"]
        assert first["log_age_ms"] == 338


def test_what_is_kept_is_what_no_round_of_the_cleaner_touches(recording: Callable[[str], Path], tmp_path: Path) -> None:
    """Of the partition's oldest transaction; the log is cut into segments of a few batches."""
    log = recording("kafka-4.3-mixed") / "log" / "__consumer_offsets-1"
    folder = tmp_path / log.name
    folder.mkdir()
    with open_logs([str(log)]) as opened:
        batches = [*batches_of(opened.logs[0])]
        for n in range(0, len(batches), 2):
            raw = b"".join(bytes(batch.raw) for batch in batches[n : n + 2])
            (folder / f"{batches[n].base_offset:020}.log").write_bytes(raw)
    (report,) = [json.loads(run("clean", folder, "--dry-run", "-o", "jsonl").stdout)]
    assert report["held_by"] == "an open transaction"
    *closed, _ = sorted(folder.iterdir())
    kept = [path for path in closed if int(path.stem) >= report["first_uncleanable_offset"]]
    with ol.open(folder) as copy:
        oldest, *others = copy.transactions().rows()
    assert oldest["pins_last_stable_offset"]
    assert oldest["kept_bytes"] == sum(path.stat().st_size for path in kept) > 0
    assert all(not row["pins_last_stable_offset"] and row["kept_bytes"] <= oldest["kept_bytes"] for row in others)


@pytest.mark.parametrize("name", DISTINCT)
def test_a_walk_over_headers_finds_where_they_begin(name: str, recording: Callable[[str], Path]) -> None:
    with open_logs([str(path) for path in log_directories(recording(name))[:1]]) as opened:
        for log in opened.logs:
            assert first_batches(beginnings(log)) == first_batches(batches_of(log))
