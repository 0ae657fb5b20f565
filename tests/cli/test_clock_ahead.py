"""One record of a time far beyond the logs' end: ages are counted to that end, and the record is told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from tests.builders import TIME, LogBuilder
from tests.cli.runs import rows, run
from tests.conftest import NEVER, BulkFrom

DAY_MS = 86_400_000
MAX_TIMESTAMP = 35
"""Where it stands in a batch's header."""


def written(folder: Path, ahead_ms: int) -> Path:
    """A commit, an open transaction, a record of another time, and commits 2 s later."""
    log = LogBuilder().commit(0).commit(5, group="open", producer=7)
    at = log.offset
    ahead = LogBuilder().skip(ahead_ms).commit(2, group="ahead").batches[0]
    log.batches.append(at.to_bytes(8) + ahead[8:])
    log.skip(2_000)
    log.commit(3)
    directory = folder / "__consumer_offsets-3"
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(b"".join(log.batches))
    return folder


@pytest.fixture(params=[0, NEVER], ids=["bulk", "small"])
def engine(request: pytest.FixtureRequest, bulk_from: BulkFrom) -> None:
    bulk_from(request.param)


def age_and_severity(folder: Path, *how: str) -> tuple[int, str]:
    document = json.loads(run("check", folder, "-o", "json", *how).stdout)
    (found,) = [row for row in document["findings"] if row["rule"] == "C-1"]
    return found["detail"]["age_ms"], found["severity"]


@pytest.mark.usefixtures("engine")
def test_ages_are_counted_to_the_logs_end_and_the_record_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path, 5 * DAY_MS)
    age_ms, severity = age_and_severity(folder)
    assert (age_ms < 10_000, severity) == (True, "note")
    told = "offsets partition 3: 1 batch, the first at record offset 2, of times up to 2023-11-19"
    for command in ("check", "info", "transactions"):
        result = run(command, folder)
        assert (result.exit_code, result.stderr.count(told)) == (0, 1), command
    (row,) = rows("transactions", folder)
    assert row["log_age_ms"] < 10_000
    asked = str(TIME + 10 * DAY_MS)
    assert age_and_severity(folder, "--now", asked)[1] == "doubt"
    assert told not in run("check", folder, "--now", asked).stderr


@pytest.mark.usefixtures("engine")
def test_a_little_ahead_is_how_records_are(tmp_path: Path) -> None:
    folder = written(tmp_path, 600_000)
    assert age_and_severity(folder) == (600_000 - 1, "note")
    assert "a clock was wrong" not in run("info", folder).stderr


@pytest.mark.usefixtures("engine")
def test_the_logs_end_is_not_to_come(tmp_path: Path) -> None:
    """The last batch is of a time ten years later: nobody is old by it, and `end` is the time before."""
    path = written(tmp_path, 3650 * DAY_MS) / "__consumer_offsets-3" / f"{0:020}.log"
    *before, _ = (item.raw for item in iter_batches(path.read_bytes()) if isinstance(item, RecordBatch))
    path.write_bytes(b"".join(before))
    result = run("groups", tmp_path, "--stale", "1h", "-o", "jsonl")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert "1 batch, the first at record offset 2, of times up to 2033" in result.stderr
    until = run("compact", tmp_path, "--until-time", "end-0s")
    assert (until.exit_code, "end at 2033" in until.stderr, "a clock was wrong" in until.stderr) == (3, False, True)
    assert until.stdout.count("ahead") == 0


@pytest.mark.parametrize("changed", ["a byte of its time", "its time and all behind it are zeros"])
def test_the_logs_end_is_told_by_what_is_sound(changed: str, recording: Callable[[str], Path], tmp_path: Path) -> None:
    """What no checksum confirms tells no time, whichever it would be."""
    sound = recording("kafka-4.3-mixed") / "log"
    shutil.copytree(sound, tmp_path / "log")
    for path in (tmp_path / "log").rglob("*.log"):
        data = bytearray(path.read_bytes())
        *_, last = (item for item in iter_batches(data) if isinstance(item, RecordBatch))
        at = last.position + MAX_TIMESTAMP
        data[at] = 0x7F
        if "zeros" in changed:
            data[at:] = bytes(len(data) - at + 5_000)
        path.write_bytes(data)
    words = [run("groups", log, "--stale", "1h").stderr for log in (sound, tmp_path / "log")]
    ends = [re.search(r"ages are counted to the end of the copy, 2026-11-21 (\S+)Z", text) for text in words]
    hours = [end[1][:5] for end in ends if end is not None]
    assert hours == ["05:37", "05:37"], words
    assert not run("groups", tmp_path / "log", "--stale", "1h", "-o", "csv").stdout.splitlines()[1:]
