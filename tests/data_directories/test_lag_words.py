"""``compact --lag`` beside what ``kafka-consumer-groups --describe`` printed when the copies were taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main
from tests.data_directories.copies import COPIES, WORDS, Recorded, data_directories
from tests.data_directories.test_log_ends import answers

_LINE = re.compile(r"^(\S+) +(\S+) +([0-9]+) +([0-9]+) +([0-9]+) +(-?[0-9]+) ", re.MULTILINE)
"""GROUP, TOPIC, PARTITION, CURRENT-OFFSET, LOG-END-OFFSET, LAG."""

Key = tuple[str, str, int]
WITHOUT_WORDS = "kafka-4.3-blocked"
"""Where the tool failed: see the README beside."""
THREE = "kafka-4.3-three"


def described(folder: Path, words: str) -> dict[Key, tuple[int, int, int]]:
    """Group, topic and partition → committed offset, log end offset, lag, as the tool printed them."""
    text = (folder / "words" / words / "groups-offsets.txt").read_text()
    return {
        (match[1], match[2], int(match[3])): (int(match[4]), int(match[5]), int(match[6]))
        for match in _LINE.finditer(text)
    }


def rows_of(folder: Path, *copies: str, more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Rows of ``compact --lag`` over the data directories of these copies together."""
    paths = [str(path) for copy in copies for path in data_directories(folder, copy)]
    done = CliRunner().invoke(main, ["compact", *paths, "--lag", "-o", "jsonl", *more], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def told(rows: list[dict[str, Any]]) -> dict[Key, tuple[int, Any, Any]]:
    return {
        (row["group"], row["topic"], row["partition"]): (row["committed_offset"], row["log_end_offset"], row["lag"])
        for row in rows
    }


@pytest.mark.parametrize(
    ("name", "copy"), [item for item in COPIES if item[0] not in (WITHOUT_WORDS, THREE)], ids="-".join
)
def test_offsets_ends_and_lag_are_what_the_tool_printed(name: str, copy: str, recorded: Recorded) -> None:
    """Every line, and no other; nothing that these lines are about was written between copy and question."""
    folder = recorded(name)
    said = described(folder, WORDS.get(copy, copy))
    assert len(said) >= 20
    assert told(rows_of(folder, copy)) == said


@pytest.mark.parametrize(
    "copies", [("broker-1", "broker-2"), ("broker-3", "broker-2", "broker-1"), ("broker-1", "broker-2", "broker-3")]
)
def test_copies_of_several_brokers_together_tell_what_the_tool_printed(
    copies: tuple[str, ...], recorded: Recorded
) -> None:
    """In any order, and with one that is old among them."""
    folder = recorded(THREE)
    assert told(rows_of(folder, *copies)) == described(folder, "running")


@pytest.mark.parametrize("copy", ["broker-1", "broker-2", "broker-3"])
def test_of_one_broker_among_several_what_it_has_no_copy_of_is_null(copy: str, recorded: Recorded) -> None:
    """Each broker has replicas of some partitions only; all others are as the tool printed them."""
    folder = recorded(THREE)
    said = described(folder, WORDS[copy])
    found = told(rows_of(folder, copy))
    here = {path.name for data in data_directories(folder, copy) for path in data.iterdir()}
    assert found == {key: line if f"{key[1]}-{key[2]}" in here else (line[0], None, None) for key, line in said.items()}


@pytest.mark.parametrize("copy", ["running", "killed"])
def test_where_the_tool_failed_the_same_parts_are_what_others_answered(copy: str, recorded: Recorded) -> None:
    """AdminClient's committed offsets, and ``kafka-get-offsets`` for the ends."""
    folder = recorded(WITHOUT_WORDS)
    ends = answers(folder, copy, "latest")
    for (_, topic, partition), (committed, end, lag) in told(rows_of(folder, copy)).items():
        if (topic, partition) in ends:
            assert (end, lag) == (ends[topic, partition], ends[topic, partition] - committed)
        else:
            assert (topic, end, lag) == ("gone", None, None)
