"""The plan: written whole, read back, and one clear error for whatever is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from offsets_log.errors import InputError
from offsets_log.replay.partition_for import partition_for
from offsets_log.restore import share_groups
from offsets_log.restore.plan import as_offset, decode_plan, encode_plan, rows_of, settable_shares
from offsets_log.restore.rescue import PartitionCount, settle_duplicates
from tests.restore.plans import plan_of, row


def test_what_is_written_is_read() -> None:
    rows = [
        row('a\n"b', offset=-1, metadata="\0é"),
        row("größe", "t", (1 << 31) - 1, (1 << 63) - 1, leader_epoch=(1 << 31) - 1),
        row("least", "t", -(1 << 31), -(1 << 63), leader_epoch=-(1 << 31)),
    ]
    raw = "".join(encode_plan(plan_of(*rows))).encode()
    assert json.loads(raw) == plan_of(*rows)
    assert decode_plan(raw, "plan.json") == rows
    assert decode_plan("".join(encode_plan(plan_of())).encode(), "plan.json") == []


def changed(**values: Any) -> bytes:
    return json.dumps(plan_of(row("g") | values)).encode()


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "plan.json: it is no rescue plan: not JSON"),
        (b"\xff\xfe", "plan.json: it is no rescue plan: not JSON"),
        (b"[" * 100_000, "plan.json: it is no rescue plan: not JSON"),
        (b"[]", 'plan.json: it is no rescue plan: "format" is not "offsets-log rescue plan"; give plan.json of rescue'),
        (b'{"format": 1}', "plan.json: it is no rescue plan"),
        (
            json.dumps(plan_of(format_version=2)).encode(),
            "plan.json: the plan's format version is 2; this reads 1: use a newer offsets-log",
        ),
        (json.dumps(plan_of(offsets={})).encode(), "plan.json: field offsets: the plan has no list of offsets"),
        (json.dumps(plan_of(offsets=[1])).encode(), "plan.json: field offsets[0]: this is no JSON object"),
        (json.dumps(plan_of(offsets=[{}])).encode(), "plan.json: field offsets[0]: group is missing"),
        (changed(group=None), "plan.json: field offsets[0]: group is not text"),
        (changed(group="\ud800"), "plan.json: field offsets[0]: group is not text"),
        (changed(partition=True), "plan.json: field offsets[0]: partition is not a 32-bit number"),
        (changed(partition=1 << 31), "plan.json: field offsets[0]: partition is not a 32-bit number"),
        (changed(partition=-(1 << 31) - 1), "plan.json: field offsets[0]: partition is not a 32-bit number"),
        (changed(committed_offset=1.5), "plan.json: field offsets[0]: committed_offset is not a 64-bit number"),
        (changed(committed_offset=1 << 63), "plan.json: field offsets[0]: committed_offset is not a 64-bit number"),
        (changed(committed_offset=-(1 << 63) - 1), "plan.json: field offsets[0]: committed_offset is not a 64-bit"),
        (changed(leader_epoch=1 << 31), "plan.json: field offsets[0]: leader_epoch is not a 32-bit number or null"),
        (changed(leader_epoch="3"), "plan.json: field offsets[0]: leader_epoch is not a 32-bit number or null"),
        (changed(metadata=None), "plan.json: field offsets[0]: metadata is not text"),
        (
            json.dumps(plan_of(row("g"), row("g", offset=6))).encode(),
            "plan.json: field offsets[1]: the group, topic and partition of an earlier row",
        ),
    ],
)
def test_a_malformed_plan_is_one_clear_error(raw: bytes, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_plan(raw, "plan.json")
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


def test_of_two_offsets_partitions_a_groups_own_counts() -> None:
    """`records:H1` says which is its own; where neither is, the one committed last counts."""
    count = PartitionCount(50, "default")
    home = partition_for("g", 50)
    right = row("g", offset=1, offsets_partition=home)
    wrong = row("g", offset=2, offsets_partition=home + 1, commit_timestamp_ms=9999)
    assert settle_duplicates([right, wrong], count) == ([right], [wrong])
    wronger = row("g", offset=3, offsets_partition=home + 2)
    assert settle_duplicates([wrong, wronger], count) == ([wrong], [wronger])
    newer = wrong | {"offsets_partition": home + 2, "record_offset": wrong["record_offset"] + 1}
    for both in ([newer, wrong], [wrong, newer]):  # committed at one time, the later record counts
        assert settle_duplicates(both, count) == ([newer], [wrong])


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({}, "share_offsets: this is no list"),
        ([1], "share_offsets[0]: this is no row of share offsets"),
        ([{}], "share_offsets[0]: this is no row of share offsets"),
        ([None], "share_offsets[0]: this is no row of share offsets"),
    ],
)
def test_malformed_starts_of_share_groups_are_one_clear_error(rows: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_plan(json.dumps(plan_of(share_offsets=rows)).encode(), "plan.json")
    assert str(caught.value) == f"plan.json: field {problem}"


SETTABLE = {"group": "s", "topic": "orders", "partition": 2, "start_offset": 7, "status": "initialized"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"partition": 0, "start_offset": 0, "topic_id": "id"}, None),
        ({"status": "orphan"}, "no group has this state"),
        ({"topic": None, "topic_id": "id"}, "nothing names the topic of id id"),
        ({"start_offset": None}, "no start offset was set"),
        ({"group_base64": "Z/8="}, "the group's name is not UTF-8"),
        ({"partition": -1}, "no broker can have such a partition"),
        ({"topic": "a/b"}, "no broker can have such a partition"),
    ],
)
def test_starts_of_share_groups_that_no_client_can_set_are_no_rows_of_a_plan(
    other: dict[str, Any], why: str | None
) -> None:
    one = SETTABLE | other
    refused = share_groups.refusal(one)
    assert refused is None if why is None else str(refused).startswith(why)
    plan = plan_of(row("g"), share_offsets=[one, SETTABLE])
    taken = [SETTABLE] if why else [one, SETTABLE]
    assert settable_shares(plan) == taken
    expected = [row("g"), *map(as_offset, taken)]
    assert rows_of(plan) == decode_plan(json.dumps(plan).encode(), "plan.json") == expected
    assert settable_shares(plan_of(row("g"))) == []


def test_starts_of_share_groups_come_behind_the_offsets() -> None:
    start = {"group": "s", "topic": "orders", "partition": 2, "start_offset": 7, "status": "initialized"}
    unset = start | {"partition": 3, "start_offset": None}
    *rows, last = decode_plan(json.dumps(plan_of(row("g"), share_offsets=[start, unset])).encode(), "plan.json")
    assert [one["group"] for one in rows] == ["g"]
    assert (last["group"], last["topic"], last["partition"], last["committed_offset"]) == ("s", "orders", 2, 7)
    assert (last["is_share"], last["leader_epoch"], last["metadata"]) == (True, None, "")
