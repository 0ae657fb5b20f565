"""What is said of loads that fail, or that differ by the coordinator of a release."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.cli.checked import Recording
from tests.cli.runs import SAMPLE, run


def test_a_load_that_serves_all_is_not_called_not_loaded(recording: Recording, tmp_path: Path) -> None:
    """Case 45, ``L-39``: by `check`, `compact --as-broker` and `repair`, which leaves nothing out."""
    log, case = recording("load-fails") / "log", ("-p", "45")
    told = run("check", log, *case, "--loads-on", "3.9.1").stderr
    assert "offsets partition 45: 3.9.1 logs that the load failed, and serves all of it" in told
    as_broker = run("compact", log, *case, "--as-broker", "--profile", "classic")
    repaired = run("repair", log, *case, "--drop-unloadable", "3.9.1", "--to", tmp_path / "repaired")
    assert repaired.exit_code == 0
    for result in (as_broker, repaired):
        assert (
            "coordinator of Kafka up to 3.9 logs an error once it has loaded it, and serves it: record offset 5, L-39"
            in result.stderr
        )


def test_the_releases_that_a_name_stands_for_are_said_where_it_matters(recording: Recording) -> None:
    """Case 25 has records of consumer groups, which the Scala coordinator of 3.9 passes over; case 4 fails on both."""
    log = recording("load-fails") / "log"
    words = "3.4.1 stands for all releases up to 3.9 with their default coordinator"
    assert words in run("check", log, "-p", "25", "--all-releases").stderr
    assert words not in run("check", log, "-p", "25", "--loads-on", "3.9.1").stderr
    assert words not in run("check", log, "-p", "4", "--all-releases").stderr


def cells(table: str) -> list[list[str]]:
    """The rows below the line of a table, cut where two spaces are."""
    lines = table.splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines[[line[1:2] for line in lines].index("─") + 1 :]]


def test_notes_that_differ_only_in_numbers_are_one_line() -> None:
    """Each partition has a note of what a load reads (J-1); open transactions of several groups stay apart (C-1)."""
    result = run("check", SAMPLE, "-o", "table")
    rows = cells(result.stdout.split("\n\n")[1])
    assert [row[4] for row in rows if row[0] == "note"].count("J-1") == 1
    assert [
        "note",
        "0",
        "-",
        "-",
        "J-1",
        "all",
        "a load reads 19682 bytes: 59 batches, 123 records; 3 more notes of this kind",
    ] in [row[:7] for row in rows]
    assert {row[3] for row in rows if row[4] == "C-1"} == {"only-pending-metrics", "pending-metrics"}
    findings = json.loads(run("check", SAMPLE, "-o", "json").stdout)["findings"]
    assert [row["rule"] for row in findings].count("J-1") == 4


def test_what_is_skipped_comes_behind_what_counts(recording: Recording) -> None:
    log = recording("kafka-3.7-preview") / "log"
    rows = cells(run("check", log, "--loads-on", "3.4.1,4.3", "-o", "table").stdout.split("\n\n")[1])
    met = [row[0] for row in rows]
    assert met == sorted(met, key=("fails", "skipped", "note").index)


def test_what_differs_between_releases_is_said_of_every_partition(recording: Recording, tmp_path: Path) -> None:
    """Of the damaged partition the stop matters; of the other one not, which some releases serve."""
    log = shutil.copytree(recording("kafka-3.7-preview") / "log", tmp_path / "log")
    segment = max((log / "__consumer_offsets-3").glob("*.log"), key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    table = run("check", log, "-p", "1", "-p", "3", "--loads-on", "3.0,3.4.1,4.2,4.3", "-o", "table").stdout
    rows = {row[0]: row for row in cells(table.split("\n\n")[0])}
    assert rows["1"][1:5] == ["any", "3.4.1", "3.0, 4.2, 4.3", "nothing: 3.0, 4.2, 4.3; all: 3.4.1"]
