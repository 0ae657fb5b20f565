"""What `check` finds in a cleaned log that it did not find in the log that was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.building import encode_legacy_message
from offsets_log.log_format.compression import codec_of
from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder, record_bytes

GZIP = 1
VALUE = {"offset": 1, "metadata": "", "commit_timestamp": TIME, "expire_timestamp": TIME}


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


def doubts(folder: Path) -> list[tuple[str, str, str]]:
    rows = [json.loads(line) for line in run("check", folder, "-o", "jsonl").stdout.splitlines()]
    return [(row["severity"], row["rule"], row["problem"]) for row in rows if row["severity"] in ("damage", "doubt")]


@pytest.mark.parametrize("is_open", [True, False])
def test_what_the_start_cuts_off_is_said_and_then_missing(is_open: bool, tmp_path: Path) -> None:
    """``D-10``: damage explained that offset 4 is missing, and is gone; below the cleaner's checkpoint nobody knows."""
    built = LogBuilder().commit(1).commit(2).commit(3).commit(4, topic="u", producer=7 if is_open else -1).commit(5)
    batches = built.commit(6).commit(7).batches
    files = {0: batches[:3], 3: [batches[3], batches[4][:-1] + b"\xff"], 5: batches[5:6], 6: batches[6:]}
    given, made = tmp_path / "given" / "__consumer_offsets-0", tmp_path / "made"
    given.mkdir(parents=True)
    for base_offset, some in files.items():
        (given / f"{base_offset:020}.log").write_bytes(b"".join(some))
    assert [(severity, rule) for severity, rule, _ in doubts(given)] == [("damage", "L-7")]
    cleaned = run("clean", given.parent, "--to", made)
    assert cleaned.exit_code == 3
    assert f"{3:020}.log: at its start a broker cuts 104 bytes away, from position 104 on" in cleaned.stderr
    found = doubts(made)
    assert [(severity, rule) for severity, rule, _ in found] == [("doubt", "D-10")] * is_open
    assert all("offsets 4 to 4 are missing" in problem for *_, problem in found)
    assert ("4 to 4 are missing" in run("info", made).stderr) == is_open


def test_messages_at_other_offsets_than_the_message_around_them_overlap_once_they_are_out(tmp_path: Path) -> None:
    """``C-24``: a round writes what magic 0 had compressed again, at the offsets of the messages inside."""
    inner = b"".join(
        encode_legacy_message(magic=0, offset=offset, timestamp_ms=0, attributes=0, key=key, value=value)
        for offset, number in enumerate((10, 11), 54)
        for key, value in [record_bytes(1, {"group": "g", "topic": "t", "partition": number}, VALUE, 1)]
    )
    value = codec_of(GZIP).compress(inner, 0)
    outer = encode_legacy_message(magic=0, offset=2, timestamp_ms=0, attributes=GZIP, key=None, value=value)
    given, made = tmp_path / "given" / "__consumer_offsets-0", tmp_path / "made"
    given.mkdir(parents=True)
    built = LogBuilder().commit(1).commit(2).skip(1).commit(3).commit(4)
    (given / f"{0:020}.log").write_bytes(b"".join(built.batches[:2]) + outer)
    (given / f"{3:020}.log").write_bytes(b"".join(built.batches[2:]))
    assert not doubts(given)
    assert run("clean", given.parent, "--to", made).exit_code == 0
    ((severity, rule, problem),) = doubts(made)
    assert (severity, rule) == ("damage", "C-24")
    assert "offsets 54 to 55 are beyond the next batch's 3" in problem


@pytest.mark.parametrize("command", ["clean", "repair"])
def test_folders_that_a_broker_would_take_for_stray_ones_are_said(command: str, tmp_path: Path) -> None:
    """``CL-51``: without the topic's id; with it nothing is to be said."""
    given = tmp_path / "given" / "__consumer_offsets-0"
    given.mkdir(parents=True)
    (given / f"{0:020}.log").write_bytes(b"".join(LogBuilder().commit(1).batches))
    said = run(command, given.parent, "--to", tmp_path / "none").stderr
    assert "1 folder without partition.metadata" in said
    assert "before anything else: __consumer_offsets-0\n" in (tmp_path / "none" / "README.txt").read_text()
    said = run(command, given.parent, "--to", tmp_path / "told", "--topic-id", "HCJdBQf7Qv-GGlbH64RFkg").stderr
    assert "partition.metadata" not in said
