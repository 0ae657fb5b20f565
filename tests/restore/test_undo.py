"""What a journal makes possible: going on, and putting back, wherever a run was cut off."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from offsets_log.errors import ClusterLostError, InputError
from offsets_log.restore.apply import restore
from offsets_log.restore.changes import Change
from offsets_log.restore.journal import JournalNote, read_journal
from offsets_log.restore.plan import as_offset
from offsets_log.restore.policy import Policy
from offsets_log.restore.target import Committed
from offsets_log.restore.undo import undo
from offsets_log.rows.tables import Row
from tests.conftest import json_lines
from tests.restore.fake_cluster import FakeCluster
from tests.restore.plans import row

ROWS = [row("a"), row("a", partition=1), row("b", metadata="m"), row("c"), row("d", offset=7)]
BEFORE = {"a": {("orders", 0): Committed(3, 1, "old")}, "d": {("orders", 0): Committed(9, None, "")}}


class Text:
    """A journal in memory."""

    def __init__(self) -> None:
        self.text = ""

    def append(self, text: str, is_durable: bool) -> None:
        events = {row["event"] for row in json_lines(text)}
        assert not text or is_durable is (events != {"after"}), "a run and what it announces are kept before it is done"
        self.text += text

    def note(self, *, undo: bool = False) -> JournalNote:
        return JournalNote(self.append, cluster_id="one", undo=undo, now_ms=0)


def do(cluster: FakeCluster, journal: Text, rows: list[Row] = ROWS, **policy: str) -> list[Change]:
    changes: list[Change] = []
    found = read_journal(journal.text, "j")
    with suppress(ClusterLostError):
        changes.extend(restore(cluster, rows, Policy(**policy), found, journal.note()))
    return changes


def put_back(cluster: FakeCluster, journal: Text) -> list[Change]:
    changes: list[Change] = []
    found = read_journal(journal.text, "j")
    with suppress(ClusterLostError):
        changes.extend(undo(cluster, found.entries, journal.note(undo=True)))
    return changes


def fresh() -> FakeCluster:
    return FakeCluster(**{group: dict(offsets) for group, offsets in BEFORE.items()})


def left(cluster: FakeCluster) -> dict[str, dict[tuple[str, int], Committed]]:
    return {group: offsets for group, offsets in cluster.groups.items() if offsets}


@pytest.mark.parametrize("is_lost_on_the_way", [True, False])
@pytest.mark.parametrize("calls", range(5))
def test_wherever_a_run_ends_it_can_be_undone_and_gone_on_with(calls: int, is_lost_on_the_way: bool) -> None:
    """Whether the commit that was not answered has arrived or not."""
    for ends_undo_too in (None, *range(5)):
        cluster, journal = fresh(), Text()
        cluster.lost_after, cluster.loses = calls, is_lost_on_the_way
        do(cluster, journal)
        cluster.lost_after, cluster.calls = ends_undo_too, 0
        put_back(cluster, journal)
        cluster.lost_after = None
        put_back(cluster, journal)
        assert left(cluster) == BEFORE
        assert read_journal(journal.text, "j").entries == {}
        assert all(change.applied for change in do(cluster, journal))
        assert left(cluster) == {
            "a": {("orders", 0): Committed(5, None, ""), ("orders", 1): Committed(5, None, "")},
            "b": {("orders", 0): Committed(5, None, "m")},
            "c": {("orders", 0): Committed(5, None, "")},
            "d": {("orders", 0): Committed(7, None, "")},
        }


def test_a_journal_cut_off_anywhere_undoes_what_was_done_by_then() -> None:
    """What is announced last has arrived or not; all before it has."""
    cluster, journal = fresh(), Text()
    do(cluster, journal)
    assert journal.text.count("\n") == 1 + 2 * len(ROWS)
    random.seed(14)
    for cut in range(len(journal.text) + 1):
        torn, halfway = Text(), fresh()
        entries = read_journal(journal.text[:cut], "j").entries
        torn.text = journal.text[: journal.text.rfind("\n", 0, cut) + 1]
        assert read_journal(torn.text, "j").entries == entries
        for (group, *key), entry in entries.items():
            if entry.is_applied or random.random() < 0.5:
                topic, partition = key
                halfway.groups.setdefault(group, {})[topic, partition] = cluster.groups[group][topic, partition]
        assert all(change.applied for change in put_back(halfway, torn))
        assert left(halfway) == BEFORE


def test_what_is_done_is_not_done_again() -> None:
    cluster, journal = fresh(), Text()
    cluster.lost_after = 2
    done = do(cluster, journal)
    assert [change.group for change in done] == ["a", "a", "b"]
    cluster.lost_after = None
    cluster.groups["b"][("orders", 0)] = Committed(42, 0, "read on")
    changes = do(cluster, journal)
    assert [(c.group, c.kind, c.applied) for c in changes] == [
        ("a", "unchanged", True),
        ("a", "unchanged", True),
        ("b", "done", True),
        ("c", "new", True),
        ("d", "rewound", True),
    ]
    assert cluster.groups["b"][("orders", 0)] == Committed(42, 0, "read on")
    (change,) = do(cluster, journal, [row("b", offset=6)])
    assert (change.kind, change.applied) == ("rewound", True), "another plan is another wish"
    put_back(cluster, journal)
    assert cluster.groups["b"][("orders", 0)] == Committed(42, 0, "read on"), "what was there before that"


def test_what_was_moved_while_its_end_was_not_known_is_refused() -> None:
    cluster, journal = fresh(), Text()
    cluster.lost_after = 0
    do(cluster, journal)
    cluster.lost_after = None
    cluster.groups["a"][("orders", 0)] = Committed(4, None, "mine")
    changes = do(cluster, journal)
    assert changes[0].reason is not None
    assert "moved since an interrupted run" in changes[0].reason
    assert all(change.applied for change in changes[1:])
    assert cluster.groups["a"][("orders", 0)] == Committed(4, None, "mine")


def test_what_somebody_moved_is_not_put_back() -> None:
    cluster, journal = fresh(), Text()
    do(cluster, journal)
    cluster.groups["c"][("orders", 0)] = Committed(6, None, "")
    cluster.states["c"], cluster.states["d"] = "Empty", "Stable"
    changes = {(c.group, c.partition): (c.kind, c.applied, c.reason) for c in put_back(cluster, journal)}
    assert changes == {
        ("a", 0): ("rewound", True, None),
        ("a", 1): ("deleted", True, None),
        ("b", 0): ("deleted", True, None),
        ("c", 0): ("deleted", False, "somebody has moved it since: it is left as it is"),
        ("d", 0): ("advanced", False, "the group is Stable: stop its members first"),
    }
    assert cluster.groups["c"][("orders", 0)] == Committed(6, None, "")
    cluster.states["c"] = "Stable"
    (moved, _) = put_back(cluster, journal)
    assert moved.reason == "somebody has moved it since: it is left as it is", "nothing is to be set"
    del cluster.states["c"], cluster.states["d"]
    again = {(c.group, c.partition): c.applied for c in put_back(cluster, journal)}
    assert again == {("c", 0): False, ("d", 0): True}, "what is put back is not put back again"


def test_what_the_cluster_refuses_to_put_back_is_put_back_later() -> None:
    cluster, journal = fresh(), Text()
    do(cluster, journal)
    cluster.refuses = {("orders", 0): "not now"}
    refused = {change.group for change in put_back(cluster, journal) if not change.applied}
    assert refused == {"a", "d"}, "of the others offset 0 is deleted"
    cluster.refuses = {}
    assert {change.group: change.applied for change in put_back(cluster, journal)} == {"a": True, "d": True}
    assert left(cluster) == BEFORE
    assert put_back(cluster, journal) == []


def test_a_group_that_may_not_be_asked_is_not_put_back_and_says_why() -> None:
    cluster, journal = fresh(), Text()
    do(cluster, journal)
    journal.text = journal.text.replace('"group":"d"', '"group":"secret"')
    changes = {change.group: change.reason for change in put_back(cluster, journal)}
    assert changes == {"a": None, "b": None, "c": None, "secret": "not allowed"}


def test_starts_of_share_groups_are_set_and_put_back_by_their_own_requests() -> None:
    """Nothing of them is asked or set where offsets are committed, whatever is there, and the other way round."""
    cluster, journal = fresh(), Text()
    cluster.groups["s"] = {("orders", 0): Committed(8, None, "no start")}
    at = {"s": {("orders", 0): Committed(2, None, "")}, "d": {("orders", 0): Committed(1, None, "no offset")}}
    cluster.share_groups = FakeCluster(**{name: dict(own) for name, own in at.items()})
    places = [("s", 0), ("s", 1), ("t", 0)]
    starts = [
        as_offset({"group": group, "topic": "orders", "partition": number, "start_offset": 6})
        for group, number in places
    ]
    assert [change.kind for change in do(cluster, journal, [row("d", offset=7), *starts])] == [
        "rewound", "advanced", "new", "new",
    ]  # fmt: skip
    six = Committed(6, None, "")
    assert left(cluster.share_groups) == at | {
        "s": {("orders", 0): six, ("orders", 1): six},
        "t": {("orders", 0): six},
    }
    assert cluster.groups["d"] == {("orders", 0): Committed(7, None, "")}
    assert cluster.groups["s"] == {("orders", 0): Committed(8, None, "no start")}
    assert [change.kind for change in put_back(cluster, journal)] == ["advanced", "rewound", "deleted", "deleted"]
    assert left(cluster.share_groups) == at
    assert left(cluster) == BEFORE | {"s": {("orders", 0): Committed(8, None, "no start")}}


def test_another_policy_is_another_wish_for_what_nobody_moved() -> None:
    cluster, journal = FakeCluster(), Text()
    rows = [row("g", leader_epoch=0)]
    do(cluster, journal, rows)
    (change,) = do(cluster, journal, rows, leader_epochs="keep")
    assert (change.kind, change.applied) == ("metadata", True)
    put_back(cluster, journal)
    assert left(cluster) == {}


HEAD = (
    '{"event":"run","format":"offsets-log restore journal","format_version":1,"cluster_id":"one","undo":false,'
    '"started_ms":0}\n'
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("some notes", "j: it is no restore journal"),
        ("{}\n", "j: it is no restore journal"),
        (HEAD + "{\n", "j: line 2 is not JSON"),
        (HEAD + "{}\n", "j: line 2 is none of a restore journal: 'event'"),
        (HEAD + '{"event":"before"}\n', "j: line 2 is none of a restore journal: 'group'"),
        (HEAD.replace('_version":1', '_version":2'), "j: line 1: it is no journal that this version reads"),
        (HEAD + HEAD.replace("restore journal", "plan"), "j: line 2: it is no journal that this version reads"),
        (HEAD + HEAD.replace("one", "two"), "j: line 2: this run was on another cluster than those before"),
    ],
)
def test_what_is_no_journal_is_said(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read_journal(text, "j")
    assert str(caught.value).startswith(problem)


def test_a_cut_off_line_is_nothing() -> None:
    for cut in range(len(HEAD)):
        assert read_journal(HEAD[:cut], "j").entries == {}
