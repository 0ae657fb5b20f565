"""``offsets-log clean``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.broker.hand_over import README
from offsets_log.disk.folder import CHECKPOINTS
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.cleaner.cases import Case, Files, all_cases

MILLISECONDS = ("delete_retention", "min_compaction_lag", "producer_id_expiration")
NUMBERS = (
    "segment_bytes", "segment_index_bytes", "index_interval_bytes", "max_message_bytes", "io_buffer_bytes",
    "cleaner_max_message_bytes", "dedupe_buffer_bytes", "load_factor_percent",
)  # fmt: skip
BROKERS = {"4.4.0": "4.4", "4.3.0": "4.3", "3.9.1": "3.9"}
"""Releases by a shorter name."""
OFFSETS = ("first_dirty_offset", "high_watermark", "log_start_offset")


def options(case: Case) -> list[str]:
    """A case's settings as options."""
    given = {"now": case.case["now_ms"]}
    given |= {name: f"{case.case[f'{name}_ms']}ms" for name in MILLISECONDS}
    given |= {name: case.case[name] for name in (*NUMBERS, *OFFSETS) if case.case[name] is not None}
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]


def written(case: Case, folder: Path) -> Path:
    """A case's partition folder."""
    partition = folder / str(case.case["partition"])
    partition.mkdir(parents=True)
    for name, data in case.folders["before"].items():
        (partition / name).write_bytes(data)
        if name.endswith(".log"):
            at = case.case["mtime_ms"][name] * 1_000_000
            os.utime(partition / name, ns=(at, at))
    return partition


def clean(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["clean", *map(str, words)])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def read(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_recorded_round_has_its_outcome_and_exit_status(tmp_path: Path) -> None:
    """What is said of a log beside its round stops none."""
    cases = all_cases()
    assert len(cases) >= 160
    for name, case in cases.items():
        partition = written(case, tmp_path / name)
        result = clean(partition.parent, "--dry-run", "-q", "-o", "jsonl", "--shutdown", "clean", *options(case))
        outcome = case.outcome("4.4.0")
        assert [row["outcome"] for row in rows(result)] == [outcome], (name, result.stderr)
        assert result.exit_code == (3 if outcome in ("failed", "aborted") else 0), name


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("transactions-mixed-r2", "4.3.0"), ("legacy-r1", "4.3.0"), ("legacy-r1", "3.9.1"), ("legacy-r1", "3.7.2"),
        ("map-full-1", "4.3.0"), ("dirty-from-30", "3.9.1"), ("bad-record", "4.3.0"), ("overflowed-segment", "4.3.0"),
        ("nothing-dirty", "4.3.0"), ("min-lag-no-timestamps", "4.3.0"), ("log-start", "4.3.0"),
        ("last-no-key", "3.9.1"), ("last-no-key-watermark-at", "4.4.0"), ("legacy-last-tombstone", "4.4.0"),
    ],
)  # fmt: skip
def test_a_round_into_a_folder(name: str, release: str, tmp_path: Path) -> None:
    case = all_cases()[name]
    recorded = case.results[release]
    partition = written(case, tmp_path / "data")
    before = read(partition)
    result = clean(
        partition, "--to", tmp_path / "out", "--broker", BROKERS.get(release, release), "-o", "jsonl", *options(case)
    )
    assert result.exit_code == (3 if recorded["outcome"] in ("failed", "aborted") else 0), result.stderr
    (row,) = rows(result)
    for field in ("outcome", "first_dirty_offset", "first_uncleanable_offset", "end_offset"):
        assert row[field] == recorded[field]
    assert (row["problem"] is not None) == ("exception" in recorded)
    assert sum(kept["bytes"] for kept in row["kept"]) == row["bytes_after"]
    folder = tmp_path / "out" / partition.name
    assert read(folder) == case.after(release)
    for log in folder.glob("*.log"):
        assert log.stat().st_mtime_ns // 1_000_000 == recorded["files"][log.name]["mtime_ms"]
    assert read(partition) == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        partition.name,
        README,
        *CHECKPOINTS.values(),
    }
    checkpoint = (tmp_path / "out" / CHECKPOINTS["cleaned_until"]).read_text().split()
    if recorded["outcome"] == "cleaned":
        assert checkpoint == ["0", "1", "__consumer_offsets", partition.name.split("-")[1], str(row["end_offset"])]


def test_offsets_come_from_the_data_directory(tmp_path: Path) -> None:
    case = all_cases()["dirty-from-30"]
    partition = written(case, tmp_path / "data")
    line = f"{partition.name.replace('-', ' ')} {case.case['first_dirty_offset']}"
    (tmp_path / "data" / "cleaner-offset-checkpoint").write_text(f"0\n1\n{line}\n")
    (tmp_path / "data" / ".kafka_cleanshutdown").write_text("")
    given = [option for option in options(case) if "first-dirty" not in option]
    assert clean(tmp_path / "data", "--to", tmp_path / "out", *given).exit_code == 0
    assert read(tmp_path / "out" / partition.name) == case.after("4.4.0")


def test_nothing_holds_a_deep_cleaning(tmp_path: Path) -> None:
    """It cleans from an open transaction on, and the active segment, too (C-1); what it keeps of one is told."""
    case = all_cases()["transactions-mixed-r1"]
    partition = written(case, tmp_path / "data")
    (row,) = rows(clean(partition, "--dry-run", "--deep", "-o", "jsonl", *options(case)))
    assert row["held_by"] is None
    assert row["first_uncleanable_offset"] == row["end_offset"] == row["log_end_offset"]
    assert "the active segment" not in {one["reason"] for one in row["kept"]}
    assert "an open transaction" in {one["reason"] for one in row["kept"]}


def test_a_dry_run_says_why_a_log_is_not_cleaned(tmp_path: Path) -> None:
    case = all_cases()["transactions-mixed-r1"]
    partition = written(case, tmp_path / "data")
    result = clean(partition, "--dry-run", "-o", "jsonl", *options(case))
    (row,) = rows(result)
    kept = {one["reason"]: one for one in row["kept"]}
    held = kept["an open transaction"]
    assert row["held_by"] == "an open transaction"
    assert held["first_offset"] == case.results["4.4.0"]["last_stable_offset"]
    assert held["age_ms"] == case.case["now_ms"] - held["since_ms"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    table = clean(partition, "--dry-run", "-o", "table", *options(case))
    assert "an open transaction" in table.stdout
    assert clean(partition, "--dry-run", "-o", "csv", *options(case)).stdout.startswith("offsets_partition,outcome,")


def test_tombstones_that_wait_are_told_with_their_time(tmp_path: Path) -> None:
    case = all_cases()["tombstones-r1"]
    result = clean(written(case, tmp_path), "--dry-run", "-o", "jsonl", *options(case))
    kept = {one["reason"]: one for one in rows(result)[0]["kept"]}
    assert kept["tombstones waiting"]["until_ms"] == case.case["now_ms"] + case.case["delete_retention_ms"]


def test_no_output_inside_of_an_input(tmp_path: Path) -> None:
    case = all_cases()["plain-1"]
    partition = written(case, tmp_path / "data")
    (tmp_path / "data" / "meta.properties").write_text("version=1\n")
    for given in (tmp_path / "data", partition, next(partition.glob("*.log"))):
        result = clean(given, "--to", tmp_path / "data" / "out")
        assert (result.exit_code, "which is an input" in result.stderr) == (1, True), given
    assert {path.name for path in (tmp_path / "data").iterdir()} == {partition.name, "meta.properties"}


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    partition = written(all_cases()["plain-1"], tmp_path / "data")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    assert clean(partition, "--to", tmp_path / "out").exit_code == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_nothing_is_left_of_a_run_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = written(all_cases()["plain-1"], tmp_path / "data")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("offsets_log.disk.folders.write_file", full)
    result = clean(partition, "--to", tmp_path / "out")
    assert (result.exit_code, "No space left" in result.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--to DIR"), (["--to", "x", "--dry-run"], "exclude each other"),
        (["--dry-run", "--broker", "2.8"], "known from 3.1 on"),
        (["--dry-run", "--broker", "new"], "no release"), (["--dry-run", "--delete-retention", "P"], "duration"),
    ],
)  # fmt: skip
def test_wrong_usage(words: list[str], says: str, tmp_path: Path) -> None:
    result = clean(tmp_path, *words)
    assert (result.exit_code, says in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1H", 3_600_000), ("P1DT2M", 86_520_000), ("90s", 90_000), ("60000", 60_000)]
)
def test_durations(text: str, ms: int) -> None:
    from offsets_log_cli.options import Duration

    assert Duration().convert(text, None, None) == ms


DATA = ("kafka-4.3-mixed", "kafka-lifetime", "kafka-3.9-classic")


def told(*words: str | Path) -> str:
    """What a command prints, whatever its exit status."""
    return CliRunner().invoke(main, [str(word) for word in (*words, "-q")]).stdout


def findings(folder: Path) -> set[tuple[Any, ...]]:
    """What `check` finds: releases that do not load a partition, whatever record they fail at, and other faults."""
    found = [json.loads(line) for line in told("check", folder, "-o", "jsonl").splitlines()]
    loads = {(row["offsets_partition"], *row["releases"]) for row in found if row["kind"] == "load" and not row["ok"]}
    return loads | {(row["offsets_partition"], row["rule"]) for row in found if row["severity"] in ("damage", "doubt")}


@pytest.mark.parametrize("name", DATA)
def test_deep_is_answered_from_as_before(name: str, tmp_path: Path, recording: Callable[[str], Path]) -> None:
    log, out = recording(name) / "log", tmp_path / "out"
    result = clean(log, "--deep", "--to", out, "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    for row in rows(result):
        assert row["outcome"] == "cleaned"
        assert row["end_offset"] == row["log_end_offset"] == row["first_uncleanable_offset"]
        assert row["bytes_after"] == sum(kept["bytes"] for kept in row["kept"]) < row["bytes_before"]
        assert row["records_after"] < row["records_before"]
    for profile in ("modern", "classic"):
        assert told("compact", out, "--profile", profile) == told("compact", log, "--profile", profile)
        before, after = (json.loads(told("rebuild", folder, "--profile", profile)) for folder in (log, out))
        assert before["groups"]
        for part in ("groups", "offsets", "pending", "orphans", "problems"):
            assert after[part] == before[part], part
    assert findings(out) <= findings(log)
    again = clean(out, "--deep", "--to", tmp_path / "again", "-o", "jsonl")
    assert again.exit_code == 0, again.stderr
    for folder in out.glob("__consumer_offsets-*"):
        first, second = read(folder), read(tmp_path / "again" / folder.name)
        assert {k: v for k, v in first.items() if k.endswith(".log")} == {
            k: v for k, v in second.items() if k.endswith(".log")
        }


def test_a_log_as_it_was(tmp_path: Path, recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    result = clean(log, "-p", "1", "--until-offset", "1:200", "--to", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert told("compact", tmp_path / "out") == told("compact", log, "-p", "1", "--until-offset", "1:200")
    assert rows(result)[0]["log_end_offset"] == 200


def test_a_record_that_is_not_there_is_not_dropped(tmp_path: Path, recording: Callable[[str], Path]) -> None:
    result = clean(recording("kafka-4.3-mixed") / "log", "-p", "1", "--drop-record", "1:9999", "--to", tmp_path / "out")
    assert result.exit_code == 3
    assert "no record of data with offset 9999" in result.stderr
    assert not list((tmp_path / "out").glob("__*"))


def test_groups_and_what_has_expired_are_not_there(tmp_path: Path, recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-expired") / "log"
    groups = {json.loads(line)["group"] for line in told("compact", log, "-o", "jsonl").splitlines()}
    result = clean(
        log, "--deep", "--keep-group", "[l-o]*", "--drop-expired", "--retention", "1ms", "--to", tmp_path / "o"
    )
    assert result.exit_code == 0, result.stderr
    left = {json.loads(line)["group"] for line in told("compact", tmp_path / "o", "-o", "jsonl").splitlines()}
    assert left == {"live-amber", "live-new-amber"} < {group for group in groups if group[0] in "lmno"}


def test_a_retention_without_expiry_is_refused(tmp_path: Path) -> None:
    assert clean(tmp_path, "--dry-run", "--retention", "1d").exit_code == 2


def log_of(tmp_path: Path, *batches: bytes) -> Path:
    """A data directory with one segment of partition 0."""
    folder = tmp_path / "data" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    return folder.parent


def test_what_matches_nothing_is_said(tmp_path: Path) -> None:
    """A group to leave out that is not here ends with 3; an offset of no partition does not change the status."""
    data = log_of(tmp_path, *LogBuilder().commit(1).batches)
    words = ("--drop-group", "nobody*", "--drop-group", "g*", "--high-watermark", "7:1", "--first-dirty-offset", "0:0")
    result = clean(data, "--dry-run", *words)
    assert result.exit_code == 3
    assert clean(data, "--dry-run", *words[2:]).exit_code == 0
    assert "--drop-group nobody* drops nothing: no record names such a group" in result.stderr
    assert "--drop-group g*" not in result.stderr
    assert "--high-watermark 7:1 has no effect: no such offsets partition was found" in result.stderr
    assert "--first-dirty-offset" not in result.stderr
    words = ("--keep-group", "x", "--keep-group", "g")
    assert "--keep-group x keeps nothing" in clean(data, "--dry-run", *words).stderr


def test_a_place_and_none_exclude_each_other(tmp_path: Path) -> None:
    data = log_of(tmp_path, *LogBuilder().commit(1).batches)
    for command in ("clean", "repair"):
        result = CliRunner().invoke(main, [command, str(data), "--dry-run", "--to", str(tmp_path / "to")])
        assert (result.exit_code, "--dry-run and --to exclude each other" in result.stderr) == (2, True)


def test_no_log_is_written_without_any_group(tmp_path: Path) -> None:
    data = log_of(tmp_path, *LogBuilder().commit(1).batches)
    for words in (("--dry-run",), ("--to", tmp_path / "out")):
        result = clean(data, "--keep-group", "x", *words)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "--keep-group x keeps nothing" in result.stderr
        assert "nothing is written: no group is to be kept" in result.stderr
    assert not (tmp_path / "out").exists()
    assert clean(data, "--keep-group", "x", "--keep-group", "g", "--to", tmp_path / "out").exit_code == 3


def test_a_log_of_which_a_start_leaves_nothing_fails(tmp_path: Path) -> None:
    """A log start behind its end, a segment without any batch."""
    data = log_of(tmp_path, *LogBuilder().commit(1).batches)
    for segment, words, why in (
        (None, ("--log-start-offset", "0:9"), "the log start 9 lies behind the log's end"),
        (b"\xff" * 500, ("--deep",), "no batch at its beginning is sound"),
        (b"\xff" * 500, (), "no batch at its beginning is sound"),
    ):
        if segment is not None:
            (data / "__consumer_offsets-0" / f"{0:020}.log").write_bytes(segment)
        result = clean(data, "--to", tmp_path / "out", "-o", "jsonl", *words)
        (row,) = rows(result)
        assert result.exit_code == 3
        assert row["outcome"] == "failed"
        assert why in row["problem"]
        assert row["bytes_before"] == (data / "__consumer_offsets-0" / f"{0:020}.log").stat().st_size
        assert not (tmp_path / "out" / "__consumer_offsets-0").exists()
        shutil.rmtree(tmp_path / "out")


def test_a_log_that_lost_what_was_asked_for_is_changed(tmp_path: Path) -> None:
    batches = LogBuilder().commit(1).commit(2).batches
    data = log_of(tmp_path, *batches)
    for outcome, words in (
        ("not started", ()), ("not started", ("--drop-group", "x")), ("changed", ("--drop-record", "0:0")),
        ("changed", ("--until-offset", "1")), ("cleaned", ("--drop-record", "0:0", "--deep")),
    ):  # fmt: skip
        result = clean(data, "--dry-run", "-o", "jsonl", *words)
        (row,) = rows(result)
        assert row["outcome"] == outcome, words
        assert row["bytes_before"] == sum(map(len, batches))
        assert f"1 partition: 1 {outcome}; " in result.stderr


@pytest.mark.parametrize(
    "words",
    [("--now", str(1 << 63)), ("--now", "9" * 5000), ("--now", str((1 << 63) - 1)), ("--now", "9" * 40 + "d"),
     ("--delete-retention", "9" * 40 + "d")],
)  # fmt: skip
def test_times_are_those_of_64_bits(words: tuple[str, ...], tmp_path: Path) -> None:
    result = clean(log_of(tmp_path, *LogBuilder().commit(1).batches), "--dry-run", *words)
    assert result.exit_code == 2
    assert "64 bits" in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0\n1\n__consumer_offsets 0 x\n", "line 3: '__consumer_offsets 0 x' has no numbers as partition and offset"),
        ("0\n2\n__consumer_offsets 0 1\n", "line 2: 2 entries are declared, 1 follow"),
        ("1\n1\n__consumer_offsets 0 1\n", "line 1: the version is '1', not 0"),
        ("0\n1\n__consumer_offsets 0 1\n", None), ("0\n0\n", None), ("", None), ("0\n", None),
    ],
)  # fmt: skip
def test_a_broken_checkpoint_is_said(text: str, problem: str | None, tmp_path: Path) -> None:
    """``CL-48``."""
    data = log_of(tmp_path, *LogBuilder().commit(1).batches)
    (data / "cleaner-offset-checkpoint").write_text(text)
    said = clean(data, "--dry-run").stderr
    assert ("is broken" in said) == (problem is not None)
    assert problem is None or "cleaner-offset-checkpoint is broken and says nothing: " in said
    assert problem is None or problem in said


def test_a_round_says_what_the_recovery_will_not_take_that_is_to_come(tmp_path: Path) -> None:
    """A cleaner copies a control record of another kind, over which no broker starts that recovers it (``D-8``)."""
    sound, kind = LogBuilder().commit(1), LogBuilder().commit(1).control(7, 6)
    broken = LogBuilder().commit(1).commit(2)
    broken.batches[1] = broken.batches[1][:-1] + b"\xff"
    for name, builder, said in (
        ("sound", sound, None), ("kind", kind, "control record of type KRAFT_VOTERS"),
        ("broken", broken, "it cuts all away"),
    ):  # fmt: skip
        data = log_of(tmp_path / name, *builder.batches)
        (data / "__consumer_offsets-0" / f"{0:020}.index").write_bytes(b"")
        result = clean(data, "--dry-run", "--shutdown", "clean")
        assert result.exit_code == 0
        assert ("no broker that recovers it takes all of it" in result.stderr) == (said is not None)
        assert said is None or said in result.stderr
