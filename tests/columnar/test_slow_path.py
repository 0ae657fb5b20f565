"""Records that the slow path hands to kernels, and what kernels leave to it: at the edges of their tables."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.replay import replay_logs
from offsets_log.columnar.scan.reading import Threads
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.replay.profile import MODERN
from tests.builders import UNKNOWN, LogBuilder, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer

TOPIC = Uuid(bytes(15) + b"\1")
WITHOUT_KEY = (None, b"")
"""A record by which a batch is not even looked at by kernels."""


def member(number: int, group: str = "g", member_id: str = "m", **facts: Any) -> tuple[bytes, Any]:
    """A record of a consumer group's member."""
    layout = next(RECORD_TYPES[number].layouts(0))
    value = layout.zeros(0) | {row.name: None for row in layout.fields if row.nullable and row.tag is None}
    return record_bytes(number, {"group_id": group, "member_id": member_id}, value | facts, 0)


def test_open_transactions_of_more_producers_than_there_was_room_for() -> None:
    log = LogBuilder()
    key = {"group": "g", "topic": "t", "partition": 0}  # no more keys than one, for all tables grow together
    for producer in range(a.LEAST_KEYS + 3):
        value = {"offset": producer, "leader_epoch": -1, "metadata": "", "commit_timestamp": 1}
        log.add(record_bytes(1, key, value, 3), WITHOUT_KEY, **LogBuilder.transaction(producer))
    expected = construct_answer(log.log, MODERN)
    assert columnar_answer(log.log, MODERN) == expected


def test_markers_of_more_producers_than_there_was_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their records are in the piece before: of them this one has the markers alone, beside one that nobody knows."""
    monkeypatch.setattr(a, "LEAST_KEYS", 16)
    log = LogBuilder()
    for producer in range(40):
        log.commit(producer, partition=producer, producer=producer)
    begin = sum(map(len, log.batches))
    for producer in range(40):
        log.control(producer, 1, 9)
    expected = construct_answer(log.log, MODERN)
    assert (len(expected["committed"]), expected["pending"]) == (40, [])
    for cuts in ([], [begin]):
        assert columnar_answer(log.log, MODERN, cuts=cuts) == expected


def test_members_of_more_groups_than_there_was_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", 16)
    log = LogBuilder()
    for number in range(40):
        log.add(member(5, f"g{number}"), UNKNOWN).add(member(5, "all", f"m{number}"), UNKNOWN)
    begin = sum(map(len, log.batches[:40]))
    expected = construct_answer(log.log, MODERN)
    assert (len(expected["groups"]), len(expected["groups"]["all"].members)) == (41, 40)
    for cuts in ([], [begin]):
        assert columnar_answer(log.log, MODERN, cuts=cuts) == expected


@pytest.mark.parametrize("partitions", [[3, 3], [3, 4, 3]])
def test_a_member_that_is_given_a_partition_twice(partitions: list[int]) -> None:
    """``J-20``: its own record has it already; a later one has it once, and stands for both."""
    log = LogBuilder().add(member(5))
    for epoch, given in ((1, partitions), (2, [3])):
        rows = [{"topic_id": TOPIC, "partitions": given, "assignment_epochs": []}]
        log.add(member(8, member_epoch=epoch, assigned_partitions=rows))
    expected = construct_answer(log.log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == ["J-20"]
    for pieces in (1, 2):
        assert columnar_answer(log.log, MODERN, pieces=pieces) == expected


def test_names_are_told_once_though_a_piece_ends_with_their_tombstone() -> None:
    """Of a record that names topics the names are kept where a later one of its key stands for it."""
    topics = [{"topic_id": TOPIC, "topic_name": "t", "num_partitions": 1, "partition_metadata": []}]
    named, gone = (record_bytes(4, {"group_id": "g"}, value, 0) for value in ({"topics": topics}, None))
    log = LogBuilder().add(named).add(gone).add(named).add(gone)
    replayed = [
        next(replay_logs([log.log], MODERN, note=lambda log: lambda seen: None, threads=Threads(pieces=pieces)))
        for pieces in (1, 2)
    ]
    assert [int(one.state.arrays.scan_state.told) for one in replayed] == [2, 2]
    assert columnar_answer(log.log, MODERN, pieces=2) == construct_answer(log.log, MODERN)
