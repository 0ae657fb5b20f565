"""The plan for the target: which rows stand in it, which are left out and why, and what is said of them."""

from __future__ import annotations

import pytest

from offsets_log.rows.tables import Row
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer, Untold
from offsets_log.translation.translated_plan import PlacedOffset, in_words, translated_plan
from tests.restore.plans import plan_of, row


def translated(*places: tuple[Row, PlacedOffset], rename: str = "", **values: object) -> Row:
    told = {id(one): place for one, place in places}
    plan = plan_of(*(one for one, _ in places), **values)
    return translated_plan(plan, lambda one: told[id(one)], lambda name: rename + name, ["a doubt"])


def at(
    partition: int, offset: int, how: str = EXACT, again: int | None = 0, topic: str = "new", skipped: int = 0
) -> PlacedOffset:
    return PlacedOffset(topic, partition, Answer(offset, how, again, skipped=skipped), leader_epoch=3)


UNTOLD = PlacedOffset("new", 9, Untold("why not"))


def test_rows_have_the_targets_names_and_offsets_with_the_sources_beside_them() -> None:
    one = row("g", topic_id="id", leader_epoch=8, group_base64="x", topic_base64="y", offset=70)
    kept = row("g", partition=1, group_base64="x", topic_base64="y")
    plan = translated((one, at(4, 50)), (kept, at(5, 60, topic="orders")))
    first, second = plan["offsets"]
    assert {name: first[name] for name in ("group", "topic", "partition", "committed_offset")} == {
        "group": "g", "topic": "new", "partition": 4, "committed_offset": 50,
    }  # fmt: skip
    assert (first["source_topic"], first["source_partition"], first["source_offset"]) == ("orders", 0, 70)
    assert (first["leader_epoch"], first["topic_id"], first["how"], first["skipped"]) == (3, None, EXACT, 0)
    assert ("group_base64" in first, "topic_base64" in first) == (True, False), "a name that stays has its bytes"
    assert ("group_base64" in second, "topic_base64" in second) == (True, True)
    assert plan["topics"] == {"new": 5, "orders": 6}
    renamed = translated((one, at(4, 50)), rename="b.")["offsets"][0]
    assert (renamed["group"], renamed["source_group"], "group_base64" in renamed) == ("b.g", "g", False)


def test_what_is_not_told_is_left_out_and_what_follows_is_there() -> None:
    rows = [(row("g"), UNTOLD), (row("h"), at(1, 5)), (row("i"), UNTOLD), (row("a"), at(0, 6))]
    plan = translated(*rows, pending=[row("p")], orphans=[row("o")], duplicates=[row("d")])
    assert [one["group"] for one in plan["offsets"]] == ["a", "h"], "in their order there"
    assert [(one["group"], one["target_topic"], one["reason"]) for one in plan["left_out"]] == [
        ("g", "new", "why not"),
        ("i", "new", "why not"),
    ]
    assert [one["tool"] for one in plan["left_out"]] == ["translate", "translate"]
    assert (plan["pending"], plan["orphans"], plan["duplicates"]) == ([], [], [])
    assert in_words(plan) == "2 exact, 2 not told"
    short = plan["translation"][0]
    assert (short["group"], short["target_offset"], short["target_partition"], short["source_offset"]) == ("a", 6, 0, 5)


@pytest.mark.parametrize(
    ("one", "other", "kept", "how", "again"),
    [
        (at(1, 5), at(1, 9), 5, AT_LEAST, None),
        (at(1, 9), at(1, 5), 5, AT_LEAST, None),
        (at(1, 5), at(1, 5), 5, EXACT, 0),
        (at(1, 5, "skipping", skipped=2), at(1, 9), 5, "skipping", None),
    ],
)
def test_of_two_that_are_one_in_the_target_the_earlier_stands_for_both(
    one: PlacedOffset, other: PlacedOffset, kept: int, how: str, again: int | None
) -> None:
    plan = translated((row("g", offset=50), one), (row("g", partition=1, offset=60), other))
    (found,) = plan["offsets"]
    assert (found["committed_offset"], found["how"], found["reread_at_most"]) == (kept, how, again)
    (left,) = plan["left_out"]
    assert {found["source_partition"], left["partition"]} == {0, 1}
    assert (left["topic"], left["target_topic"], left["committed_offset"]) == (
        "orders",
        "new",
        50 + 10 * left["partition"],
    )
    own = 9 if {one.told.target_offset, other.told.target_offset} == {5, 9} else 5  # type: ignore[union-attr]
    assert f"earlier offset {kept} stands for both; its own would be {own}" in left["reason"]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([at(0, 5)], []),
        ([at(0, 5, BY_COUNT)], []),
        ([at(0, 5, AT_LEAST, None)], ["says: 1 offset"]),
        ([at(0, 5, AT_LEAST, 3), at(1, 5, AT_LEAST, 4), at(2, 5, AT_LEAST, None)],
         ["says, at most 7 in all where that is known, 4 of one partition: 3 offsets"]),
        ([at(0, 5, skipped=2), at(1, 5, skipped=5)], ["allowed, at most 7 in all, 5 of one partition: 2 offsets"]),
        ([UNTOLD, at(1, 5)], ["could not be translated, as left-out.jsonl says: 1"]),
    ],
)  # fmt: skip
def test_what_is_doubtful_is_said(places: list[PlacedOffset], words: list[str]) -> None:
    plan = translated(*((row("g", partition=number), place) for number, place in enumerate(places)), doubts=["of old"])
    first, *said, own, old = plan["doubts"]
    assert "offsets of another cluster than the log's, translated: " in first
    assert (own, old) == ("a doubt", "of old")
    assert len(said) == len(words)
    assert all(part in sentence for part, sentence in zip(words, said, strict=True)), said
