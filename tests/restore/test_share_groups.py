"""Where share groups start, set on a real broker, put back, and judged beforehand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from offsets_log.cluster.admin import Cluster
from offsets_log.protocol.api import Header
from offsets_log.protocol.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from offsets_log.protocol.share_group_offsets import (
    ALTER_SHARE_GROUP_OFFSETS,
    DELETE_SHARE_GROUP_OFFSETS,
)
from offsets_log.restore.target import Committed
from tests.coordinator import broker
from tests.restore import live

START = Committed(7, None, "")


def test_requests_are_those_of_kafkas_own_classes() -> None:
    """Bytes of ``AlterShareGroupOffsetsRequestData`` and its like of 4.3.0, behind a header of version 2."""
    header = Header(0, 0, 1, "c")
    topics = [{"topic_name": "orders", "partitions": [{"partition_index": 2, "start_offset": 7}]}]
    asked = {"groups": [{"group_id": "g", "topics": None}]}
    for api, body, expected in (
        (ALTER_SHARE_GROUP_OFFSETS, {"group_id": "g", "topics": topics}, ALTER),
        (DELETE_SHARE_GROUP_OFFSETS, {"group_id": "g", "topics": [{"topic_name": "orders"}]}, DELETE),
        (DESCRIBE_SHARE_GROUP_OFFSETS, asked, DESCRIBE),
    ):
        assert api.encode_request(header, body)[-len(bytes.fromhex(expected)) :].hex() == expected


ALTER = "026702076f72646572730200000002000000000000000700" + "0000"
DELETE = "026702076f726465727300" + "00"
DESCRIBE = "020267000000"


def plan(file: Path, **starts: int) -> Path:
    rows = [
        {"group": group, "topic": "orders", "partition": 0, "start_offset": start, "status": "initialized"}
        for group, start in starts.items()
    ]
    document = {"format": "offsets-log rescue plan", "format_version": 1, "offsets": [], "share_offsets": rows}
    file.write_text(json.dumps(document))
    return file


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[broker.Broker]:
    made = live.make(tmp_path_factory.mktemp("share") / "broker")
    with made.running():
        live.fill(made)
        live.make_coordinators(made, ["any"])
        yield made


def starts(real: broker.Broker, *groups: str) -> dict[str, Any]:
    with closing(Cluster(live.server(real), {})) as cluster:
        return {group: dict(cluster.share_groups.offsets(group)) for group in groups}


@pytest.mark.kafka
def test_share_groups_are_restored_and_put_back(real: broker.Broker, tmp_path: Path) -> None:
    file = plan(tmp_path / "plan.json", sharing=7, new=9)
    with closing(Cluster(live.server(real), {})) as cluster:
        assert cluster.share_groups.offsets("sharing") == {}
        assert cluster.share_groups.commit("sharing", {("orders", 0): Committed(3, None, "")}) == {}
    before = starts(real, "sharing", "new")
    where = (file, "--bootstrap-server", live.server(real))
    status, rows, words = live.restore(*where)
    assert (status, [row["change"] for row in rows]) == (0, ["new", "advanced"]), words
    status, rows, words = live.restore(*where, "--execute")
    assert (status, {row["applied"] for row in rows}) == (0, {True}), words
    assert starts(real, "sharing", "new") == {
        "sharing": {("orders", 0): START},
        "new": {("orders", 0): Committed(9, None, "")},
    }
    assert [row["change"] for row in live.restore(*where, "--execute")[1]] == ["unchanged", "unchanged"]
    journal = tmp_path / "restore-journal.jsonl"
    undone = live.restore("--undo", journal, "--bootstrap-server", live.server(real), "--execute")
    assert undone[0] == 0, undone[2]
    assert starts(real, "sharing", "new") == before
