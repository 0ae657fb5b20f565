"""Copies that are not whole: clients are told, and so is whoever serves them, on standard error and by exit status."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from offsets_log.serving.state import OffsetsPartitions, Served
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.serving.client import (
    CONSUMER_GROUPS,
    DESCRIBE_GROUPS,
    DESCRIBING,
    FIND_COORDINATOR,
    GROUP_ID_NOT_FOUND,
    LIST_GROUPS,
    OFFSET_FETCH,
    SHARE_OFFSETS,
    ask,
    moments,
)
from tests.serving.test_serve import serving

__all__ = ["recorded"]
UNKNOWN_SERVER_ERROR = -1


def said(*arguments: object, status: int) -> str:
    """What a server that ends at once says on standard error."""
    with serving(*arguments) as run:
        return run.end(status)


def codes(state: Served, group: str) -> dict[str, list[Any]]:
    """Error codes and messages of a group in all that is asked about groups, old versions too."""
    offsets = {"member_id": None, "member_epoch": -1, "topics": None}
    asked = [{"name": "t", "partition_indexes": [3]}]
    found = {
        **{
            f"describe {kind}": ask(state, key, {"groups" if key == DESCRIBE_GROUPS else "group_ids": [group]})[
                "groups"
            ]
            for kind, key in DESCRIBING.items()
        },
        "offsets": ask(state, OFFSET_FETCH, {"groups": [{"group_id": group} | offsets]})["groups"],
        "offsets 2": [ask(state, OFFSET_FETCH, {"group_id": group, "topics": asked}, 2)],
        "offsets 1": ask(state, OFFSET_FETCH, {"group_id": group, "topics": asked}, 1)["topics"][0]["partitions"],
        "share": ask(state, SHARE_OFFSETS, {"groups": [{"group_id": group, "topics": None}]})["groups"],
        "find": ask(state, FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": [group]})["coordinators"],
        "find 0": [ask(state, FIND_COORDINATOR, {"key": group}, 0)],
    }
    return {what: [row["error_code"], row.get("error_message")] for what, (row,) in found.items()}


def test_a_group_of_a_partition_that_is_not_here_is_not_said_to_be_none(recorded: Recorded) -> None:
    """Of two directories of a broker one: clients are not told that a group does not exist, nor to ask again."""
    both = data_directories(recorded("kafka-4.3-three"), "broker-1")
    with moments(*both) as (asked, session):
        whole = asked.load(session)
    with moments(both[0]) as (asked, session):
        half = asked.load(session)
    assert list(half.offsets_partitions.absent()) == [1, 2, 6, 7]
    lost = whole.groups.keys() - half.groups.keys()
    assert len(lost) == 9
    for group in lost:
        message = f"Group {group} belongs to offsets partition {half.offsets_partitions.lack(group)}, which is not in"
        for what, (code, said) in codes(half, group).items():
            assert code == UNKNOWN_SERVER_ERROR, what
            assert said is None or said.startswith(message), what
    assert {row["group_id"] for row in ask(half, LIST_GROUPS, {})["groups"]} == set(half.groups)
    nobody = next(name for name in map(str, range(99)) if half.offsets_partitions.lack(name) is None)
    found = codes(half, nobody)
    assert found["describe consumer"][0] == GROUP_ID_NOT_FOUND
    assert (found["offsets"][0], found["find"][0]) == (0, 0)


def test_partitions_that_are_not_here_are_told_at_the_start(recorded: Recorded) -> None:
    both = data_directories(recorded("kafka-4.3-three"), "broker-1")
    words = "4 offsets partitions of 8 (1, 2, 6, 7) are not in this copy: groups in there are not served"
    assert words in said(both[0], status=3)
    assert "not in this copy" not in said(*both, status=0)
    words = "7 offsets partitions of 8 (0, 1, 2, 4, 5, 6, 7) are not in this copy"
    assert words in said(*both, "--offsets-partition", "3", status=0)


def test_a_partition_that_only_a_checkpoint_names_is_told(recorded: Recorded, tmp_path: Path) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    copy = tmp_path / "data"
    shutil.copytree(directory, copy)
    with moments(copy) as (asked, session):
        group = next(iter(asked.load(session).groups))
        number = OffsetsPartitions(asked.load(session).offsets_partitions.count).lack(group)
    shutil.rmtree(copy / f"__consumer_offsets-{number}")
    words = said(copy, status=3)
    assert f"missing: offsets partition {number}:" in words
    assert f"({number}) is not in this copy" in words
    with moments(copy) as (asked, session):
        (row,) = ask(asked.load(session), CONSUMER_GROUPS, {"group_ids": [group]})["groups"]
    assert row["error_code"] == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("count", [None, 0])
def test_without_the_number_of_partitions_nobody_knows_what_lacks(count: int | None) -> None:
    there = OffsetsPartitions(count, {0})
    assert (there.lack("g"), list(there.absent())) == (None, [])
