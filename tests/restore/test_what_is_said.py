"""What is said of rows that are restored: why not, what changes, how many there are."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.restore import share_groups
from offsets_log.restore.changes import kind_of
from offsets_log.restore.names import MAX_FILE_NAME, file_name, is_topic_name, refused_by_all
from offsets_log.restore.policy import AHEAD, BEHIND, Policy
from offsets_log.restore.rows import counted_rows
from offsets_log.restore.target import Committed
from offsets_log.restore.tools import refused_by_some
from tests.restore.plans import row


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, None),
        ({"partition": 0}, None),
        ({"group_base64": "/w=="}, "the group's name is not UTF-8"),
        ({"topic_base64": "/w=="}, "the topic's name is not UTF-8"),
        ({"topic": "a b"}, "no broker can have a topic of this name"),
        ({"partition": -1}, "no topic has a negative partition"),
    ],
)
def test_what_no_tool_can_take(facts: dict[str, Any], words: str | None) -> None:
    said = refused_by_all(row("g") | facts)
    assert said is None if words is None else said is not None and said.startswith(words)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, None),
        ({"status": "orphan"}, "no group has this state"),
        ({"topic": None}, "nothing names the topic of id T"),
        ({"start_offset": None}, "no start offset was set"),
        ({"group_base64": "/w=="}, "the group's name is not UTF-8"),
        ({"topic": "a b"}, "no broker can have such a partition"),
        ({"partition": -1}, "no broker can have such a partition"),
    ],
)
def test_which_starts_of_share_groups_nobody_can_set(facts: dict[str, Any], words: str | None) -> None:
    start = {"group": "g", "topic": "t", "partition": 0, "start_offset": 0, "status": "initialized", "topic_id": "T"}
    said = share_groups.refusal(start | facts)
    assert said is None if words is None else said is not None and said.startswith(words)


def test_rows_that_some_tool_refuses_are_told_from_those_beside_them() -> None:
    """Whichever comes first."""
    rows = [row("g", offset=0), row("g", offset=-1), row("g", partition=-1), row("g", topic=" "), row("\0")]
    rows += [row("g") | {name: "/w=="} for name in ("group_base64", "topic_base64")]
    assert refused_by_some(rows) == rows[1:]
    assert refused_by_some(rows[::-1]) == rows[:0:-1]


def test_names_of_topics_and_of_files() -> None:
    assert all(map(is_topic_name, ("a", "A.b_c-9", "...", "a" * 249)))
    assert not any(map(is_topic_name, ("", ".", "..", "a" * 250, "ä", "a/b", "a\n")))
    longest = "a" * MAX_FILE_NAME
    assert (file_name(longest), file_name(".."), file_name("a/b")) == (longest, "%2E%2E", "a%2Fb")
    assert len(file_name(longest + "a")) == len(file_name(longest + "b")) == MAX_FILE_NAME
    assert file_name(longest + "a") != file_name(longest + "b")


def test_what_a_change_is_called() -> None:
    at = Committed(5, None, "")
    kinds = {
        "unchanged": at,
        "new": None,
        "metadata": Committed(5, None, "m"),
        "advanced": Committed(4, None, ""),
        "rewound": Committed(6, None, ""),
    }
    assert {kind_of(at, current): current for current in kinds.values()} == kinds
    assert (kind_of(None, at), kind_of(None, None)) == ("deleted", "unchanged")


def test_only_groups_behind_or_ahead_are_moved() -> None:
    wanted = Committed(5, None, "")
    found = [Committed(4, None, ""), wanted, Committed(6, None, ""), None]
    left = {only: [Policy(only=only).leaves(wanted, one) for one in found] for only in (None, BEHIND, AHEAD)}
    assert left == {None: [False] * 4, BEHIND: [False, True, True, False], AHEAD: [True, True, False, True]}


@pytest.mark.parametrize(
    ("offsets", "starts", "words"),
    [
        (0, 0, "0 offsets"),
        (2, 0, "2 offsets"),
        (0, 1, "1 start of a share group"),
        (1, 2, "1 offset, 2 starts of share groups"),
    ],
)
def test_how_many_there_are(offsets: int, starts: int, words: str) -> None:
    assert counted_rows([row("g")] * offsets + [row("g") | {"is_share": True}] * starts) == words


def test_how_many_records_are_delivered_twice() -> None:
    batches = [{"first_offset": 3, "last_offset": 3}, {"first_offset": 7, "last_offset": 9}]
    start = {"group": "g", "topic": "t", "partition": 0, "redelivered": batches}
    assert share_groups.count_delivered_twice([start]) == 4
