"""Differences as a table: the rows of `diff`, for everything that reads Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import offsets_log as ol
from tests.cli.runs import run
from tests.conftest import DISTINCT, log_directories
from tests.library.answers import Row, as_told

FROM_OFFSET = 5
LISTS = [f"{side}_{name}" for name in ("subscribed_topics", "assignment") for side in ("from", "to")]
"""Columns that are JSON in a table: two states' lists stand beside each other."""


def told(*arguments: object) -> list[Row]:
    return [json.loads(line) for line in run("diff", *arguments, "-o", "jsonl").stdout.split("\n") if line]


@pytest.mark.parametrize("name", DISTINCT)
def test_rows_are_those_of_the_command(name: str, recording: Callable[[str], Path]) -> None:
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            since = copy.diff(since_offset=FROM_OFFSET, why=True)
            assert as_told(since) == told(log, "--from-offset", FROM_OFFSET, "--why")
            groups = copy.diff(since_offset=FROM_OFFSET, table="groups")
            assert as_told(groups) == told(log, "--from-offset", FROM_OFFSET, "--table", "groups")
            members = copy.diff(since_offset=FROM_OFFSET, table="members")
            shapes = dict.fromkeys(LISTS, json.loads)
            assert as_told(members, **shapes) == told(log, "--from-offset", FROM_OFFSET, "--table", "members")


def test_two_copies_are_compared(recording: Callable[[str], Path]) -> None:
    one, other = (log_directories(recording(name))[0] for name in ("kafka-4.3-mixed", "kafka-4.4-mixed"))
    with ol.open(one) as before, ol.open(other) as after:
        differences = before.diff(after)
        assert as_told(differences) == told(one, other)
        assert any("unchanged" in words for words in differences.notes)
        with pytest.raises(ValueError, match="later copy"):
            before.diff()
        with pytest.raises(ValueError, match="later copy"):
            before.diff(after, since_offset=3)
