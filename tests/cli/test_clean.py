"""``offsets-log clean``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from offsets_log.broker.hand_over import README
from offsets_log.disk.folder import CHECKPOINTS
from tests.cleaner.cases import Case, Files, all_cases

MILLISECONDS = ("delete_retention", "min_compaction_lag", "producer_id_expiration")
NUMBERS = (
    "segment_bytes", "segment_index_bytes", "index_interval_bytes", "max_message_bytes", "io_buffer_bytes",
    "cleaner_max_message_bytes", "dedupe_buffer_bytes", "load_factor_percent",
)  # fmt: skip
BROKERS = {"4.3.0": "4.3", "3.9.1": "3.9"}
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


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("transactions-mixed-r2", "4.3.0"), ("legacy-r1", "4.3.0"), ("legacy-r1", "3.9.1"), ("legacy-r1", "3.7.2"),
        ("map-full-1", "4.3.0"), ("dirty-from-30", "3.9.1"), ("bad-record", "4.3.0"), ("overflowed-segment", "4.3.0"),
        ("nothing-dirty", "4.3.0"), ("min-lag-no-timestamps", "4.3.0"), ("log-start", "4.3.0"),
        ("last-no-key", "3.9.1"),
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
    assert read(tmp_path / "out" / partition.name) == case.after("4.3.0")


def test_a_dry_run_says_why_a_log_is_not_cleaned(tmp_path: Path) -> None:
    case = all_cases()["transactions-mixed-r1"]
    partition = written(case, tmp_path / "data")
    result = clean(partition, "--dry-run", "-o", "jsonl", *options(case))
    (row,) = rows(result)
    kept = {one["reason"]: one for one in row["kept"]}
    held = kept["an open transaction"]
    assert row["held_by"] == "an open transaction"
    assert held["first_offset"] == case.results["4.3.0"]["last_stable_offset"]
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
        ([], "--to DIR"), (["--to", "x", "--dry-run"], "--to DIR"), (["--dry-run", "--broker", "2.8"], "3.1 to 4.3"),
        (["--dry-run", "--broker", "new"], "no Kafka release"), (["--dry-run", "--delete-retention", "P"], "duration"),
    ],
)  # fmt: skip
def test_wrong_usage(words: list[str], says: str, tmp_path: Path) -> None:
    result = clean(tmp_path, *words)
    assert (result.exit_code, says in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1H", 3_600_000), ("P1DT2M", 86_520_000), ("90s", 90_000), ("60000", 60_000)]
)
def test_durations(text: str, ms: int) -> None:
    from cli.options import Duration

    assert Duration().convert(text, None, None) == ms
