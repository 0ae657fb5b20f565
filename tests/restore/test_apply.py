"""What `restore` would do and does, on a cluster that is none; real ones are asked in `test_round_trip` and others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from offsets_log.errors import InputError
from offsets_log.restore.apply import restore
from offsets_log.restore.changes import Change
from offsets_log.restore.journal import Journal
from offsets_log.restore.policy import Policy, wish
from offsets_log.restore.rename import parse_renames, renamed
from offsets_log.restore.target import UNKNOWN, Committed, PartitionNow
from offsets_log.rows.tables import Row
from tests.restore.fake_cluster import LOG, FakeCluster
from tests.restore.plans import row


class Unwritten:
    """A note that nobody reads."""

    def before(self, changes: Iterable[Change]) -> None:
        pass

    def after(self, changes: Iterable[Change]) -> None:
        pass


def run(cluster: FakeCluster, rows: list[Row], *, execute: bool, **policy: str) -> list[Change]:
    return list(restore(cluster, rows, Policy(**policy), Journal(), Unwritten() if execute else None))


def told(changes: list[Change]) -> list[tuple[str, int, str, bool | None, str | None]]:
    return [(c.group, c.partition, c.kind, c.applied, c.reason) for c in changes]


def test_a_dry_run_tells_what_would_change_and_changes_nothing() -> None:
    now = {
        ("orders", 0): Committed(5, None, ""),
        ("orders", 1): Committed(9, None, ""),
        ("orders", 2): Committed(5, 1, ""),
    }
    cluster = FakeCluster({"g": "Empty", "other": "Empty"}, g=now, other={("orders", 0): Committed(1, None, "")})
    rows = [row("g"), row("g", partition=1), row("g", partition=2, metadata="m"), row("other"), row("unheard")]
    assert told(run(cluster, rows, execute=False)) == [
        ("g", 0, "unchanged", None, None),
        ("g", 1, "rewound", None, None),
        ("g", 2, "metadata", None, None),
        ("other", 0, "advanced", None, None),
        ("unheard", 0, "new", None, None),
    ]
    assert cluster.calls == 0
    assert cluster.groups["g"] == now


def test_what_differs_is_committed_and_asked_for_again() -> None:
    cluster = FakeCluster(g={("orders", 0): Committed(5, None, "")})
    changes = run(cluster, [row("g"), row("g", partition=1, metadata="é")], execute=True)
    assert told(changes) == [("g", 0, "unchanged", True, None), ("g", 1, "new", True, None)]
    assert cluster.groups["g"][("orders", 1)] == Committed(5, None, "é")
    assert told(run(cluster, [row("g")], execute=True)) == [("g", 0, "unchanged", True, None)]
    assert cluster.calls == 1


@pytest.mark.parametrize(
    "state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "stable"]
)
def test_a_group_with_members_is_refused_if_something_is_to_be_set(state: str) -> None:
    cluster = FakeCluster({"g": state, "idle": "Empty", "gone": "Dead"}, g={("orders", 1): Committed(5, None, "")})
    changes = run(cluster, [row("g"), row("g", partition=1), row("idle"), row("gone")], execute=True)
    assert told(changes)[0] == ("g", 0, "new", False, f"the group is {state}: stop its members first")
    assert [change.applied for change in changes[1:]] == [True, True, True]
    assert list(cluster.groups["g"]) == [("orders", 1)]


def test_what_is_not_applied_says_why() -> None:
    cluster = FakeCluster()
    cluster.refuses = {("orders", 1): "OFFSET_METADATA_TOO_LARGE"}
    rows = [
        row("breaks"),
        row("forgets", metadata="m"),
        row("g", partition=0),
        row("g", partition=1),
        row("g", partition=3),
        row("g", partition=-1),
        row("g", "unknown"),
        row("g\ufffd", group_base64="Z/8="),
        row("secret"),
    ]
    changes = {(c.group, c.topic, c.partition): (c.applied, c.reason) for c in run(cluster, rows, execute=True)}
    assert changes == {
        ("breaks", "orders", 0): (False, "the connection broke"),
        ("forgets", "orders", 0): (
            False,
            "the cluster answers {'committed_offset': 5, 'leader_epoch': None, 'metadata': ''}",
        ),
        ("g", "orders", 0): (True, None),
        ("g", "orders", 1): (False, "OFFSET_METADATA_TOO_LARGE"),
        ("g", "orders", 3): (False, "the cluster's topic has 3 partitions"),
        ("g", "orders", -1): (False, "the cluster's topic has 3 partitions"),
        ("g", "unknown", 0): (False, "the cluster has no such topic"),
        ("g\ufffd", "orders", 0): (
            False,
            "the name is not UTF-8: it would be committed for another name; --rename-group, --rename-topic",
        ),
        ("secret", "orders", 0): (False, "not allowed"),
    }


@pytest.mark.parametrize(
    ("policy", "committed"),
    [
        ({}, [None, None, None, None]),
        ({"leader_epochs": "keep"}, [0, 3, 3, 8]),
        # The epoch must have been, and its records must reach as far as the offset.
        ({"leader_epochs": "if-valid"}, [0, 3, None, None]),
    ],
)
def test_leader_epochs_are_dropped_unless_the_cluster_has_them(
    policy: dict[str, str], committed: list[int | None]
) -> None:
    cluster = FakeCluster()
    cluster.logs |= {("orders", 0): LOG._replace(leader_epoch=3)}
    cluster.ends_of_epochs = {(("orders", 0), 0): 20, (("orders", 0), 3): 50, (("orders", 0), 8): 50}
    rows = [
        row("g", offset=20, leader_epoch=0),
        row("h", offset=50, leader_epoch=3),
        row("i", offset=51, leader_epoch=3),
        row("j", offset=7, leader_epoch=8),
    ]
    changes = run(cluster, rows, execute=True, **policy)
    assert [cluster.groups[g][("orders", 0)].leader_epoch for g in "ghij"] == committed
    assert all(change.applied for change in changes)
    assert [change.row()["plan_leader_epoch"] for change in changes] == [
        row["leader_epoch"] if epoch is None else None for row, epoch in zip(rows, committed, strict=True)
    ]


@pytest.mark.parametrize(
    ("out_of_range", "committed"),
    [
        ("refuse", [None, 10, 100, None]),
        ("earliest", [10, 10, 100, 10]),
        ("latest", [100, 10, 100, 100]),
        ("keep", [9, 10, 100, 101]),
    ],
)
def test_offsets_outside_the_log_are_refused_unless_asked(out_of_range: str, committed: list[int | None]) -> None:
    cluster = FakeCluster()
    cluster.logs[("orders", 0)] = LOG._replace(log_start_offset=10)
    rows = [row(g, offset=offset, metadata="m") for g, offset in zip("abcd", (9, 10, 100, 101), strict=True)]
    changes = run(cluster, rows, execute=True, out_of_range=out_of_range)
    assert [change.range for change in changes] == ["outside", "inside", "inside", "outside"]
    found = [cluster.groups.get(g, {}).get(("orders", 0)) for g in "abcd"]
    assert [value and value.committed_offset for value in found] == committed
    for change, value in zip(changes, found, strict=True):
        is_moved = change.plan is not None and value is not None and value[0] != change.plan[0]
        assert change.reason == (None if value else "outside the log, which goes from 10 to 100")
        assert value is None or value.metadata == ("" if is_moved else "m"), "metadata are of the offset that was"


def test_an_offset_that_is_there_already_is_not_refused() -> None:
    """Outside the log, or where no leader tells the log: nothing is to be committed."""
    at = Committed(101, None, "")
    cluster = FakeCluster(g={("orders", 0): at, ("orders", 1): at})
    cluster.logs[("orders", 1)] = UNKNOWN
    rows = [row("g", partition=partition, offset=101) for partition in (0, 1)]
    for execute in (False, True):
        changes = run(cluster, rows, execute=execute)
        assert told(changes) == [("g", p, "unchanged", True if execute else None, None) for p in (0, 1)]
        assert [change.range for change in changes] == ["outside", None]
    assert cluster.calls == 0


def test_a_log_without_a_leader_is_not_known() -> None:
    cluster = FakeCluster()
    cluster.logs[("orders", 0)] = UNKNOWN
    (change,) = run(cluster, [row("g")], execute=True)
    assert (change.range, change.reason) == (None, "no leader tells where the partition's log begins and ends")
    (change,) = run(cluster, [row("g")], execute=True, out_of_range="keep")
    assert change.applied


def test_topics_made_anew_are_told() -> None:
    rows = [row("a", topic_id="here"), row("b", topic_id="there"), row("c")]
    assert [change.same_topic for change in run(FakeCluster(), rows, execute=False)] == [True, False, None]


def test_other_names() -> None:
    rows = [row("a=b", "t", topic_id="id", topic_base64="/w=="), row("c\ufffd", "orders", group_base64="Y/8=")]
    assert renamed(rows, {}, {}) == rows, "what keeps its name keeps all of it"
    groups = parse_renames(["a=b=c=d", "c\ufffd=plain"], {"a=b", "c\ufffd"}, "--rename-group")
    assert groups == {"a=b": "c=d", "c\ufffd": "plain"}
    changed = renamed(rows, groups, {"t": "orders"})
    assert [(r["group"], r["topic"], r["topic_id"]) for r in changed] == [
        ("c=d", "orders", None),
        ("plain", "orders", None),
    ]
    assert told(run(FakeCluster(), changed, execute=True)) == [
        ("c=d", 0, "new", True, None),
        ("plain", 0, "new", True, None),
    ]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["x=y"], "--rename-group x=y: OLD is no name of the plan; it takes OLD=NEW"),
        (["a"], "--rename-group a: OLD is no name of the plan; it takes OLD=NEW"),
        (["ax=y"], "--rename-group ax=y: OLD is no name of the plan; it takes OLD=NEW"),
        (["a=b=c"], "--rename-group a=b=c: the plan has several such OLD; it takes OLD=NEW"),
        (["a="], "--rename-group a=: NEW is empty; it takes OLD=NEW"),
        (["a=x", "a=y"], "--rename-group a=y: a cannot have two names"),
    ],
)
def test_renames_that_make_no_sense(texts: list[str], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_renames(texts, {"a", "a=b"}, "--rename-group")
    assert str(caught.value) == problem


def test_two_offsets_never_become_one() -> None:
    with pytest.raises(InputError, match="two offsets are of group b, orders-0"):
        renamed([row("a"), row("b")], {"a": "b"}, {})


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (None, ["rewound", "advanced", "new", "unchanged", "metadata"]),
        ("behind", ["left", "advanced", "new", "unchanged", "left"]),
        ("ahead", ["rewound", "left", "left", "unchanged", "left"]),
    ],
)
def test_only_groups_that_are_behind_or_ahead(only: str | None, kinds: list[str]) -> None:
    """One that is there is neither, whatever its metadata are."""
    places = (("a", 9, ""), ("b", 2, ""), ("d", 5, ""), ("e", 5, "m"))
    cluster = FakeCluster(**{name: {("orders", 0): Committed(at, None, words)} for name, at, words in places})
    rows = [row(name) for name in "abcde"]
    changes = list(restore(cluster, rows, Policy(only=only), Journal(), Unwritten()))
    assert [change.kind for change in changes] == kinds
    assert all(change.applied is (None if change.kind == "left" else True) for change in changes)
    before = {name: at for name, at, _ in places}
    for name, kind in zip("abcde", kinds, strict=True):
        now = cluster.offsets(name).get(("orders", 0))
        assert (now.committed_offset if now else None) == (before.get(name) if kind == "left" else 5)


@pytest.mark.parametrize(("start", "end"), [(None, 20), (10, None)])
def test_of_a_log_whose_beginning_or_end_nobody_tells_nothing_is_set(start: int | None, end: int | None) -> None:
    asked = wish(row("g"), PartitionNow(start, end), None, Policy())
    assert asked.refusal == "no leader tells where the partition's log begins and ends"
    assert wish(row("g"), PartitionNow(start, end), None, Policy(out_of_range="keep")).refusal is None


@pytest.mark.parametrize(
    ("epoch", "leader_epoch", "end", "kept"),
    [
        (3, 3, 5, 3),
        (3, 4, 6, 3),
        (3, 2, 5, None),
        (3, 3, 4, None),
        (3, None, 5, None),
        (3, 3, None, None),
        (None, 3, 5, None),
    ],
)
def test_an_epoch_is_kept_if_the_cluster_had_it_and_its_records_reach_the_offset(
    epoch: int | None, leader_epoch: int | None, end: int | None, kept: int | None
) -> None:
    """Where the cluster does not tell either, it is dropped (KIP-320)."""
    now = LOG._replace(leader_epoch=leader_epoch)
    asked = wish(row("g", offset=5, leader_epoch=epoch), now, end, Policy(leader_epochs="if-valid"))
    assert (asked.wanted.leader_epoch, asked.range, asked.refusal) == (kept, "inside", None)
