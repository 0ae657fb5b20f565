"""A bound by time ends a log at the first later batch: what is behind it and is not later is told, with numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.columnar import large
from tests.builders import TIME, LogBuilder
from tests.cli.runs import rows, run
from tests.conftest import read_json

BOUND = str(TIME + 5_000)
LATE = "2023-11-14 23:13:20.000Z"


def write(log: LogBuilder, folder: Path, partition: int = 3) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(b"".join(log.batches))
    return folder


def jumped(late_ms: int = 3_600_000, behind: int = 3) -> LogBuilder:
    """Two commits, one of a clock that jumped, and some after it went back."""
    log = LogBuilder().commit(0).commit(1)
    log.batches += LogBuilder().skip(late_ms).commit(2, group="late").batches
    log.batches[-1] = (2).to_bytes(8) + log.batches[-1][8:]
    log.skip(1)
    for offset in range(behind):
        log.commit(offset, group="behind")
    return log


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(jumped(), tmp_path / "data")


TOLD = (
    f"offsets partition 3 is read only below record offset 2, where a batch has the time {LATE}; 3 later batches, the "
    "last of which ends with record offset 5, are of times before the bound again and not read"
)
INSTEAD = "instead of the time, {} 3:6 reads them, too"


@pytest.mark.parametrize("bulk_from", [0, 1 << 30])
@pytest.mark.parametrize(
    "command", ["info", "compact", "rebuild", "check", "decode", "groups", "history", "rebalances", "top", "expire"]
)
def test_every_command_with_the_option_tells_it(
    command: str, bulk_from: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "BULK_FROM_BYTES", bulk_from)
    groups = ["-g", "*"] if command == "history" else []
    result = run(command, data, *groups, "--until-time", BOUND)
    assert {TOLD, INSTEAD.format("--until-offset")} <= {*result.stderr.splitlines()}
    assert result.exit_code == 3
    assert run(command, data, *groups, "--until-time", BOUND, "-q").exit_code == 3
    with_offset = run(command, data, *groups, "--until-time", BOUND, "--until-offset", "2")
    assert ("is read only" in with_offset.stderr, with_offset.exit_code) == (False, 0)
    assert "is read only" not in run(command, data, *groups, "--until-time", str(TIME + 10**8)).stderr
    assert "is read only" not in run(command, data, *groups).stderr


def test_what_it_names_reads_them(data: Path) -> None:
    assert "behind" not in run("compact", data, "--until-time", BOUND).stdout
    assert "behind" in run("compact", data, "--until-offset", "3:6").stdout


def test_one_batch_and_a_file_of_no_partition(tmp_path: Path) -> None:
    data = write(jumped(behind=1), tmp_path)
    path = tmp_path / "copy.log"
    (data / "__consumer_offsets-3" / f"{0:020}.log").rename(path)
    said = run("compact", path, "--until-time", BOUND).stderr
    assert "1 later batch, the last of which ends with record offset 3, is of a time before the bound again" in said
    assert "instead of the time, --until-offset 4 reads them, too" in said


@pytest.mark.parametrize("bulk_from", [0, 1 << 30])
def test_what_helps_bounds_all_partitions(bulk_from: int, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the time ends rightly where it ends them; those that it does not end not at all."""
    monkeypatch.setattr(large, "BULK_FROM_BYTES", bulk_from)
    for partition, log in (5, LogBuilder().commit(0).skip(9_000).commit(1)), (6, LogBuilder().commit(0)):
        write(log, data, partition=partition)
    said = run("compact", data, "--until-time", BOUND).stderr.splitlines()
    assert said.count("instead of the time, --until-offset 3:6 --until-offset 5:9001 reads them, too") == 1
    assert (
        run("compact", data, "--until-offset", "3:2", "--until-offset", "5:9001").stdout
        == run("compact", data, "--until-time", BOUND).stdout
    )


def test_a_time_within_logs_whose_clock_jumped_is_not_beyond_them(tmp_path: Path) -> None:
    log = LogBuilder().commit(0).skip(3_600_000).commit(1)
    log.batches += jumped(late_ms=0).batches[:1]
    log.batches[-1] = (log.offset).to_bytes(8) + log.batches[-1][8:]
    said = run("compact", write(log, tmp_path), "--until-time", str(TIME + 100)).stderr
    assert "1 later batch" in said
    assert "after the logs end" not in said


def test_damage_is_not_counted(data: Path) -> None:
    path = data / "__consumer_offsets-3" / f"{0:020}.log"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert (
        "2 later batches, the last of which ends with record offset 4, are of"
        in run("compact", data, "--until-time", BOUND).stderr
    )


def test_a_time_beyond_the_calendar(tmp_path: Path) -> None:
    said = run("compact", write(jumped(late_ms=(1 << 62)), tmp_path), "--until-time", BOUND).stderr
    assert f"where a batch has the time {TIME + (1 << 62)}; 3 later" in said


@pytest.mark.parametrize("bulk_from", [0, 1 << 30])
def test_rescue_has_it_first(bulk_from: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "BULK_FROM_BYTES", bulk_from)
    to = tmp_path / "rescued"
    result = run("rescue", data, "--until-time", BOUND, "--to", to)
    told = [TOLD, INSTEAD.format("--until-offset")]
    assert (result.exit_code, *map(result.stderr.splitlines().count, told)) == (3, 1, 1)
    assert read_json(to / "plan.json")["doubts"][:2] == told
    assert run("rescue", data, "--until-time", BOUND, "-q", "--to", tmp_path / "quiet").exit_code == 3
    text = (to / "README.txt").read_text()
    assert f"doubtful\n---------------------------\n\n- {TOLD}\n" in text
    assert f"until 2023-11-14 22:13:25.000Z ({BOUND} ms)." in text


def test_the_report_has_it(data: Path, tmp_path: Path) -> None:
    run("report", data, "--until-time", BOUND, "--to", tmp_path / "page.html")
    assert "is read only below record offset 2" in (tmp_path / "page.html").read_text()


def test_clean_tells_it(data: Path, tmp_path: Path) -> None:
    said = run("clean", data, "--until-time", BOUND, "--to", tmp_path / "cleaned").stderr
    assert TOLD in said.splitlines()


def test_both_moments_of_diff(data: Path) -> None:
    said = run("diff", data, "--from-time", BOUND, "--until-time", str(TIME + 6_000)).stderr
    assert said.count("is read only below") == 2
    assert INSTEAD.format("--from-offset") in said.splitlines()
    assert TOLD in said.splitlines()
    assert run("diff", data, "--from-time", BOUND).exit_code == 3
    assert run("diff", data, data, "--until-time", BOUND).exit_code == 3


def test_from_time_of_history_ends_nothing(data: Path) -> None:
    result = run("history", data, "-g", "*", "--from-time", str(TIME + 1))
    assert "behind" in result.stdout
    assert "is read only" not in result.stderr


@pytest.mark.parametrize("partitions", ["0", "1", "2", "3", "0 1 2 3"])
def test_a_log_that_begins_without_times_tells_its_end(partitions: str, recording: Callable[[str], Path]) -> None:
    """As `info` has it: before 0.10 messages had no time."""
    folder = recording("kafka-lifetime") / "log"
    asked = [word for number in partitions.split() for word in ("-p", number)]
    last_ms = max(row["last_timestamp_ms"] for row in rows("info", folder, *asked))
    at_end = rows("compact", folder, *asked, "--until-time", "end-10s")
    assert at_end == rows("compact", folder, *asked, "--until-time", str(last_ms - 10_000))
    counted = rows("groups", folder, *asked, "--now", str(last_ms))
    assert rows("groups", folder, *asked) == counted
