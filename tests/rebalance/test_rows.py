"""Generations as rows: complete for programs, short for people."""

from __future__ import annotations

from typing import Any

from offsets_log.log_format.java_text import MalformedString
from offsets_log.rebalance.generation import Generation, GenerationMember, Held, Unit
from offsets_log.rebalance.rows import REBALANCE_COLUMNS, TABLE_COLUMNS, rebalance_row, short_row, verified_row
from offsets_log.rebalance.verify import Verdict, Verification


def member(member_id: str, client_id: str = "", instance_id: str | None = None) -> GenerationMember:
    row = {"client_id": client_id, "client_host": "/h", "group_instance_id": instance_id}
    return GenerationMember(member_id, row)


def generation(*members: GenerationMember, assignment: dict[str, list[Unit]] | None = None, **facts: Any) -> Generation:
    plain = {"group_id": "g", "kind": "classic", "offsets_partition": 3, "record_offset": 7, "number": 1}
    held = Held({each.member_id: each for each in members}, assignment or {})
    return Generation(held=held, **plain | {"timestamp_ms": 5} | facts)


FIRST = generation(
    member("a-1", "a"),
    member("b-1", "b", "static"),
    assignment={"a-1": [("t", 0), ("t", 1), ("t", 2)], "b-1": [("t", 3)]},
)
SECOND = generation(
    member("a-1", "a"),
    member("b-2", "b", "static"),
    member("c-1"),
    number=5,
    state="Stable",
    protocol="range",
    leader="a-1",
    assignment={"a-1": [("t", 0)], "b-2": [("t", 3), ("t", 1)], "c-1": [("t", 2)]},
    previous=FIRST,
    skipped=(2, 3, 4),
    skipped_certainly=False,
    duration_ms=9,
    is_storm=True,
    flapping=(member("c-1"), member("b-2", "b", "static")),
)


def test_a_row_for_programs_has_every_column() -> None:
    """Of two entries with a static member that came back under another id, and a partition that stays with it."""
    row = rebalance_row(SECOND)
    assert [*row] == [column.name for column in REBALANCE_COLUMNS]
    assert (row["members"], row["assigned"], row["kept"], row["stickiness"]) == (3, 4, 2, 0.5)
    assert [each["member_id"] for each in row["joined"]] == ["b-2", "c-1"]
    assert row["left"] == [{"member_id": "b-1", "client_id": "b", "host": "/h", "group_instance_id": "static"}]
    assert row["moved"] == [
        {"topic": "t", "partition": 1, "from": "a-1", "to": "b-2"},
        {"topic": "t", "partition": 2, "from": "a-1", "to": "c-1"},
    ]
    assert (row["skipped"], row["skipped_because"]) == ([2, 3, 4], "never synced, or cleaned away")
    assert (row["is_storm"], row["flapping"], row["duration_ms"]) == (True, ["c-1", "b-2"], 9)
    first = rebalance_row(FIRST)
    assert (first["stickiness"], first["skipped_because"], first["kept"], first["moved"]) == (None, None, 0, [])
    odd = rebalance_row(generation(group_id=MalformedString(b"\xff")))
    assert (odd["group"], odd["group_base64"]) == ("\ufffd", "/w==")


def test_a_row_for_people_calls_members_by_what_they_are_known_by() -> None:
    """Instance id, else client id, else member id; lists are texts, and empty ones null."""
    row = short_row(SECOND)
    assert tuple(row) == TABLE_COLUMNS
    assert (row["joined"], row["left"]) == ("static, c-1", "static")
    assert (row["kept"], row["moved"]) == ("2 of 4", "1 a → static, 1 a → c-1")
    assert row["remarks"] == "2 to 4 never synced, or cleaned away; storm; flapping: c-1, static"
    alone = short_row(FIRST)
    assert (alone["joined"], alone["left"], alone["kept"], alone["moved"], alone["remarks"]) == (
        "a, static", None, None, None, None
    )  # fmt: skip
    came_back = generation(member("b-2", "b", "static"), previous=FIRST, skipped=(9,))
    assert short_row(came_back)["remarks"] == "9 never synced; a static member came back"


def test_a_verification_is_told_whole_and_of_nothing_assigned_nothing() -> None:
    found = Verification(Verdict.DIFFERS, "3.5+", "why", ("t-0 is assigned to nobody",))
    assert verified_row(found) == {
        "verdict": "differs", "rules": "3.5+", "reason": "why", "broken": ["t-0 is assigned to nobody"]
    }  # fmt: skip
    assert verified_row(None) == {"verdict": None, "rules": None, "reason": None, "broken": []}
