"""``history --table share-offsets`` beside what kafka-dump-log says of the same records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import offsets_log as ol
from offsets_log.data_directory import share_history
from tests.data_directories.copies import Recorded, dumps
from tests.data_directories.test_decisions import rows, run
from tests.library.answers import as_told

_RECORD = re.compile(r"^\| offset: (\d+) CreateTime: (\d+) .*? key: (\{.*\}) payload: (\{.*\}|null)\s*$", re.MULTILINE)
STATE = "__share_group_state"
HISTORY = ("history", "--table", "share-offsets", "-g")


@pytest.mark.parametrize("name", ["kafka-4.3-one", "kafka-4.3-busy"])
def test_each_record_of_the_log_is_a_row_and_the_last_is_what_compact_tells(name: str, recorded: Recorded) -> None:
    """Of the busy one there are no dumps: it has updates and snapshots by the hundred."""
    folder = recorded(name)
    copy = folder / "copies" / ("running" if name == "kafka-4.3-one" else "held")
    found = rows("history", str(copy), *HISTORY[1:], "s-*")
    last = {(row["group"], row["topic"], row["partition"]): row for row in found}
    columns = ("start_offset", "delivery_complete_count", "acknowledged", "archived", "available", "record_offset")
    for row in rows("compact", str(copy), "--table", "share-offsets"):
        behind = last[row["group"], row["topic"], row["partition"]]
        assert {column: behind[column] for column in columns} == {column: row[column] for column in columns}
    offsets = [(row["state_partition"], row["record_offset"]) for row in found]
    assert len(offsets) == len(set(offsets))
    assert {row["event"] for row in found} == {"snapshot", "update"}
    assert {"new", "advanced"} <= {row["change"] for row in found}
    dumped = list(dumps(folder, copy.name, STATE))
    assert len(found) == (len(said(dumped)) if dumped else len(found)) > 15
    for row in found if dumped else ():
        time_ms, key, value = said(dumped)[row["state_partition"], row["record_offset"]]
        assert row["timestamp_ms"] == time_ms
        assert (row["group"], row["partition"]) == (key["data"]["groupId"], key["data"]["partition"])
        assert row["event"] == ("snapshot" if key["type"] == "0" else "update")
        if value["data"]["startOffset"] >= 0:
            assert row["start_offset"] == value["data"]["startOffset"]


def test_the_time_of_a_state_is_that_of_its_last_snapshot(recorded: Recorded) -> None:
    folder = recorded("kafka-4.3-one")
    dumped = said([*dumps(folder, "running", STATE)])
    times = {}
    for _, (_, key, value) in sorted(dumped.items()):
        if key["type"] == "0":
            fields = key["data"]
            times[fields["groupId"], fields["topicId"], fields["partition"]] = value["data"]["writeTimestamp"]
    found = rows("compact", str(folder / "copies" / "running"), "--table", "share-offsets")
    told = {(row["group"], row["topic_id"], row["partition"]): row["write_timestamp_ms"] for row in found}
    assert told
    assert told == {key: times[key] for key in told}


def said(dumped: list[tuple[Path, str]]) -> dict[tuple[int, int], tuple[int, Any, Any]]:
    """State partition and record offset → time, key and value, as kafka-dump-log printed them."""
    return {
        (int(file.parent.name.rpartition("-")[2]), int(match[1])): (int(match[2]), *map(json.loads, match.groups()[2:]))
        for file, text in dumped
        for match in _RECORD.finditer(text)
    }


def test_filters_formats_and_what_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    copy = str(recorded("kafka-4.3-one") / "copies" / "running")
    found = rows("history", copy, *HISTORY[1:], "s-half")
    some = rows("history", copy, *HISTORY[1:], "s-half", "-t", "orders", "--topic-partition", "1")
    assert some == [row for row in found if row["partition"] == 1]
    assert rows("history", copy, *HISTORY[1:], "s-half", "--rewinds") == []
    for command in ((*HISTORY, "s-half"), ("compact", "--table", "share-offsets")):
        to = tmp_path / f"{command[0]}.parquet"
        run(command[0], copy, *command[1:], "-o", "parquet", "--to", str(to))
        assert pq.read_table(to).to_pylist() == rows(command[0], copy, *command[1:])
    classic = str(recorded("kafka-3.9-one") / "copies" / "running")
    assert "no __share_group_state lies beside" in run("history", classic, *HISTORY[1:], "s-half", "-o", "jsonl").stderr


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(None, None, None), (None, 0, "new"), (3, None, "deleted"), (3, 3, "same"), (3, 4, "advanced"), (4, 3, "rewound")],
)
def test_moves_of_a_start_offset_have_names(before: int | None, after: int | None, change: str | None) -> None:
    assert share_history.moved(before, after) == change


def test_the_table_of_the_library_has_these_rows(recorded: Recorded) -> None:
    copy = recorded("kafka-4.3-one") / "copies" / "running"
    with ol.open(copy) as opened:
        table = opened.share_history("s-*")
        assert as_told(table) == rows("history", str(copy), *HISTORY[1:], "s-*")
