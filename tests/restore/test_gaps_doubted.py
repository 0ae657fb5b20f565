"""A hole inside a segment is doubted unless the broker's own checkpoint says that the log was cleaned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from offsets_log.data_directory.stranded import BELOW, BEYOND, Stranded
from offsets_log.data_directory.transactions import COMMITTED, HANGING
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import MODERN
from offsets_log.restore import rpk
from offsets_log.restore.doubts import RESTORED, UNTOLD, named, of_damage, of_plan, of_sources, of_stranded
from offsets_log.restore.readme import details, readme
from offsets_log.rows.tables import Row
from tests.builders import LogBuilder
from tests.restore.plans import plan_of, row
from tests.restore.test_rescue import doubts, rescue, write_log

HOME = partition_for("g", 50)


@pytest.mark.parametrize("cleaned_until", [None, 13])
def test_a_hole_is_doubted_unless_the_log_was_cleaned(cleaned_until: int | None, tmp_path: Path) -> None:
    log = LogBuilder().commit(5).skip(10).commit(6, partition=1).commit(7, partition=2)
    write_log(tmp_path / "log", {HOME: log})
    if cleaned_until is not None:
        line = f"__consumer_offsets {HOME} {cleaned_until}"
        (tmp_path / "log" / "cleaner-offset-checkpoint").write_text(f"0\n1\n{line}\n")
    plan = rescue(tmp_path / "out", tmp_path / "log", "--partitions", 50)
    assert bool(doubts(plan, "10 record offsets are in no batch that can be read")) == (cleaned_until is None)


# ------------------------------------------------------------------------------------------ what a plan holds and lacks


def group(name: str, **facts: Any) -> Row:
    return {"group": name, "state": "Empty", "type": "classic", "offsets_partition": partition_for(name, 50)} | facts


def of(count: int = 50, source: str = "default", absent: Sequence[int] | None = ()) -> Row:
    return {"count": count, "source": source, "absent": absent}


def asked(*partitions: int, groups: Sequence[str] = ()) -> Row:
    return {"groups": groups, "topics": [], "offsets_partitions": partitions}


def pending(name: str, **facts: Any) -> Row:
    return row(name) | {"outcome": None, "abort_command": None} | facts


def share_offset(**facts: Any) -> Row:
    """Where a share group starts, with three records above it that were done."""
    done = [{"first_offset": 7, "last_offset": 8}, {"first_offset": 11, "last_offset": 11}]
    told = {"group": "s", "topic": "t", "partition": 0, "start_offset": 5, "status": "initialized", "redelivered": done}
    return told | facts


ELSEWHERE = (HOME + 1) % 50
PLANS: tuple[tuple[Row, list[str]], ...] = (
    ({}, []),
    ({"offsets_partitions": of(absent=None)}, []),
    ({"duplicates": [row("g")]}, ['from a second offsets partition of their group, which does not count: 1 of "g"']),
    ({"orphans": [row("g"), row("h")]}, ["offsets of groups that do not exist any more, which are not restored: 2"]),
    ({"offsets": [row("g", metadata="m"), row("h")]}, ["offsets with metadata, which only plan.json"]),
    (
        {"offsets": [row("g", expire_timestamp_ms=0), row("h")]},
        ["an expiry of their own, which nothing can set again: 1"],
    ),
    ({"filters": asked(3)}, ["only offsets partition 3 was read, as asked"]),
    ({"filters": asked(3, 4)}, ["only offsets partitions 3, 4 were read, as asked"]),
    (
        {"offsets_partitions": of(source="guess", absent=[1])},
        ["how many partitions __consumer_offsets has is not known"],
    ),
    (
        {"offsets_partitions": of(absent=[1, 2])},
        ["2 of 50, Kafka's default: 1, 2; the groups whose hash leads there are missing, about one in 25 of all"],
    ),
    ({"offsets_partitions": of(4, "data", [1, 2])}, ["2 of 4: 1, 2; ", "about one in 2 of all"]),
    ({"offsets_partitions": of(5, "data", [0, 1, 2])}, ["3 of 5: 0, 1, 2; ", "about 3 of 5 groups"]),
    ({"offsets_partitions": of(absent=[1]), "filters": asked(3)}, ["only offsets partition 3 was read"]),
    (
        {"offsets_partitions": of(absent=[HOME]), "filters": asked(3, groups=["g"])},
        ["only offsets partition 3", f'group "g" lives in offsets partition {HOME}, which was not read'],
    ),
    ({"offsets_partitions": of(absent=[HOME]), "filters": asked(3, groups=["g*"])}, ["only offsets partition 3"]),
    ({"offsets_partitions": of(absent=[ELSEWHERE]), "filters": asked(3, groups=["g"])}, ["only offsets partition 3"]),
    (
        {"offsets_partitions": of(absent=[HOME]), "filters": asked(3, groups=["g"]), "groups": [group("g")]},
        ["only offsets partition 3"],
    ),
    (
        {"groups": [group("g", state="Stable"), group("h", state=None), group("i", state="dead")]},
        ["with running consumers (1), which you must stop before", 'tells whether consumers are running (1): "h"'],
    ),
    (
        {"groups": [group("s", type="share")]},
        ["share groups (1), which cannot be restored", '__share_group_state: "s"'],
    ),
    ({"groups": [group("s", type="share")], "share_offsets": []}, ['__share_group_state here tells nothing (1): "s"']),
    (
        {"groups": [group("g", offsets_partition=ELSEWHERE)]},
        ["partition that is not theirs (1)", 'looks for them: "g"'],
    ),
    ({"groups": [group("g", offsets_partition=None)]}, []),
    (
        {"groups": [group("g", offsets_partition=ELSEWHERE)], "offsets_partitions": of(source="data")},
        ["not theirs (1)"],
    ),
    ({"groups": [group("g", offsets_partition=ELSEWHERE)], "offsets_partitions": of(source="guess")}, ["is not known"]),
    (
        {"share_offsets": [share_offset(), share_offset(status="orphan")], "groups": [group("s", type="share")]},
        [
            "which are delivered again, as share-groups/delivered-twice.jsonl says: 3",
            "share-groups/left-out.jsonl says: 1",
        ],
    ),
    ({"share_offsets": [share_offset(redelivered=[])]}, []),
    ({"pending": [pending("g"), pending("g"), pending("h")]}, ['the values before them are taken: 3 of "g", "h"']),
    (
        {"pending": [pending("g", outcome=COMMITTED)]},
        ['taken: 1 of "g"', f"{COMMITTED} by __transaction_state, which --decide ends"],
    ),
    (
        {"pending": [pending("g", outcome=HANGING, abort_command="stop it"), pending("h", outcome=HANGING)]},
        [
            'taken: 2 of "g", "h"',
            f'2 of "g", "h" in transactions that are {HANGING} by __transaction_state',
            "are of: stop it",
        ],
    ),
)


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_what_is_said_of_a_plan(number: int) -> None:
    """Every sentence, where there is a reason for it and nowhere else."""
    facts, expected = PLANS[number]
    said = list(of_plan(plan_of() | facts))
    text = "\n".join(said)
    assert all(words in text for words in expected), text
    assert all(any(words in sentence for words in expected) for sentence in said), text


@pytest.mark.parametrize(("count", "more"), [(1, ""), (20, ""), (21, " and 1 more"), (50, " and 30 more")])
def test_of_many_groups_the_first_are_named(count: int, more: str) -> None:
    names = [f"g{number}" for number in range(count)]
    assert named(names) == ", ".join(f'"{name}"' for name in names[:20]) + more


@pytest.mark.parametrize(("corrupt", "unsupported", "is_said"), [(0, 0, False), (1, 0, True), (0, 2, True)])
def test_pieces_that_could_not_be_read_are_said(corrupt: int, unsupported: int, is_said: bool) -> None:
    said = list(of_damage(corrupt, unsupported))
    assert [f"{corrupt} corrupt, {unsupported} unsupported" in sentence for sentence in said] == [True] * is_said


def test_what_a_source_does_not_tell_is_said_column_by_column() -> None:
    assert list(of_sources({"state", "leader_epoch", "topic_id"})) == [UNTOLD["state"], UNTOLD["leader_epoch"]]


@pytest.mark.parametrize(
    ("facts", "said", "unsaid"),
    [
        (
            {},
            ["0 offsets of 0 groups on 0 topics", "no committed offset is here", "(none)", "the log has none"],
            ["share-groups/"],
        ),
        (
            {"until": {"time_ms": 5, "offsets": []}},
            [", until 1970-01-01 00:00:00.005Z (5 ms).", "nothing fits the filters and bounds"],
            [],
        ),
        (
            {"until": {"time_ms": None, "offsets": [(None, 9), (3, 8)]}},
            [", below record offset 9, below record offset 8 of partition 3.", "nothing fits"],
            [],
        ),
        ({"filters": asked(3)}, ["nothing fits the filters and bounds"], []),
        (
            {"offsets": [row("g")], "topics": {"orders": 1}},
            ["1 offset of 1 group on 1 topic", "---\n\nNothing.\n", '"orders": 1'],
            ["no committed"],
        ),
        ({"doubts": ["one", "two"]}, ["- one\n- two"], ["Nothing."]),
        ({"groups": [group("g")]}, ["No group had members then"], ["stop all of them"]),
        (
            {"groups": [group("g", state="Stable")]},
            ["1 group had some: DETAILS.txt names them, stop them first", '\n  "g"\n'],
            [],
        ),
        ({"groups": [group("g", state=None)]}, ["Which had some is not told: stop all of them first"], []),
        ({"groups": [group("s", type="share")]}, ["The log has these, and nothing\ngives them back"], []),
        ({"share_offsets": []}, ["which was read: 0 places of 0 groups", "share-groups/run.sh"], ["not read here"]),
        (
            {"share_offsets": [], "snapshot": {"began_ms": 0, "ended_ms": 1000, "cluster_id": "c"}},
            ["of which brokers told: 0 places"],
            ["which was read"],
        ),
        (
            {"snapshot": {"began_ms": 0, "ended_ms": 1000, "cluster_id": "c"}},
            [
                "rescued from a running cluster",
                "as the brokers of cluster c answered from 1970",
                "listed no share groups",
            ],
            [],
        ),
        ({}, ["\n  (none)\n"], ["translation.jsonl"]),
        ({"target": []}, ["target.jsonl"], ["translation.jsonl"]),
        ({"translation": []}, ["translation.jsonl"], ["target.jsonl"]),
    ],
)
def test_what_a_readme_says(facts: Row, said: Sequence[str], unsaid: Sequence[str]) -> None:
    text = "".join([*readme(plan_of() | facts, []), *details(plan_of() | facts, [])])
    assert [words for words in said if words not in text] == []
    assert [words for words in unsaid if words in text] == []
    title, line, *_ = text.splitlines()
    assert line == "=" * len(title)


@pytest.mark.parametrize("count", [1, 20, 21])
def test_a_readme_shows_so_many_commands_and_says_that_there_are_more(count: int) -> None:
    text = "".join(details(plan_of(*(row(f"g{number}") for number in range(count))), []))
    commands = {f"  {rpk.command(f'g{number}')}" for number in range(count)}
    assert len(commands.intersection(text.splitlines())) == min(count, 20)
    assert ("... and so on for the others" in text) is (count > 20)


def stranded(rule: str, name: str, partition: int) -> Stranded:
    (value,) = LogBuilder().commit(5, group=name, partition=partition).load(MODERN).committed
    return Stranded(rule, value, "as it is", {})


def test_offsets_that_lead_to_no_record_are_said_rule_by_rule() -> None:
    """The groups of each once, in their order, and what comes of such offsets."""
    found = [stranded(BEYOND, "h", 1), stranded(BEYOND, "g", 2), stranded(BEYOND, "g", 1), stranded(BELOW, "i", 0)]
    said = list(of_stranded(found))
    assert [sentence.rpartition(" (")[2] for sentence in said] == sorted(f"{rule})" for rule in (BEYOND, BELOW))
    (beyond,) = (sentence for sentence in said if sentence.endswith(f"({BEYOND})"))
    assert beyond.startswith("3 offsets ")
    assert beyond.index("t-1 at 5") < beyond.index("t-2 at 5")
    assert f'; of "g", "h"; {RESTORED[BEYOND]}' in beyond
    assert list(of_stranded([])) == []
