"""Groups, members, what is pending and the whole state as tables: the rows of `groups` and `rebuild`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import offsets_log as ol
from tests.cli.runs import run
from tests.conftest import DISTINCT, BulkFrom, log_directories
from tests.library.answers import PLAIN_FIRST, as_told, told

NOW_MS = 1_800_000_000_000


def places(cells: list[dict[str, Any]]) -> list[list[Any]]:
    """An assignment in the form of JSON."""
    return [
        [cell["topic"], cell["partition"]]
        if cell["kind"] is None
        else [cell["kind"], cell["subtopology"], cell["partition"]]
        for cell in cells
    ]


LISTS = {
    "assignment": places,
    "target_assignment": places,
    "unresolved": lambda cells: [[*cell.values()] for cell in cells],
}


@pytest.mark.parametrize(("name", "least_bytes"), PLAIN_FIRST)
def test_rows_are_those_of_the_commands(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            assert as_told(copy.groups(now_ms=NOW_MS)) == told("groups", log, "--now", str(NOW_MS))
            stale = copy.groups("*e*", now_ms=NOW_MS, stale_ms=1000)
            assert as_told(stale) == told("groups", log, "--now", str(NOW_MS), "--stale", "1000ms", "-g", "*e*")
            assert as_told(copy.members(), **LISTS) == told("rebuild", log, "--table", "members")
            assert as_told(copy.pending()) == told("rebuild", log, "--table", "pending")
            state = json.loads(json.dumps(copy.state("*o*"), default=str))
            assert state == json.loads(run("rebuild", log, "-g", "*o*", "-o", "json").stdout)


def test_members_of_all_kinds_of_groups_have_the_same_columns_in_every_format(
    recording: Callable[[str], Path], tmp_path: Path
) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        names = copy.members().schema.names
    for name in DISTINCT:
        for log in log_directories(recording(name))[:1]:
            rows = told("rebuild", log, "--table", "members")
            assert all(list(row) == names for row in rows)
            head, *_ = run("rebuild", log, "--table", "members", "-o", "csv").stdout.split("\n")
            assert head == ",".join(names)
    file = tmp_path / "members.parquet"
    run("rebuild", log, "--table", "members", "-o", "parquet", "--to", file)
    assert pq.read_schema(file).names == names


def test_lists_are_nested(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        members = copy.members("alive-metrics").to_arrow()
    (place,) = {pa.types.is_list(members.schema.field(name).type) for name in (*LISTS, "subscribed_topics")}
    assert place
    assert members["assignment"][0].as_py()[0] == {
        "topic": "metrics-events",
        "partition": 0,
        "kind": None,
        "subtopology": None,
    }


def test_which_groups_are_stale_is_not_asked_of_topics(recording: Callable[[str], Path]) -> None:
    with (
        ol.open(recording("kafka-4.3-mixed") / "log") as copy,
        pytest.raises(ol.OffsetsLogError, match="whole groups"),
    ):
        copy.groups(topic="t", stale_ms=1).to_arrow()
