"""One record of a time far beyond the logs' end: ages are counted to that end, and the record is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import TIME, LogBuilder
from tests.cli.runs import rows, run
from tests.conftest import NEVER, BulkFrom

DAY_MS = 86_400_000


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
