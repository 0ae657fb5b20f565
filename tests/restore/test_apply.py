"""What `restore` would do and does, on a cluster that is none; a real one is asked in `test_round_trip`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from offsets_log.errors import ClusterError
from offsets_log.restore.apply import Committed, Offsets, TopicPartition, restore
from offsets_log.tables import Row
from tests.restore.plans import row


class FakeCluster:
    """A cluster that keeps what is committed."""

    def __init__(self, states: Mapping[str, str] = {}, **offsets: dict[TopicPartition, Committed]) -> None:
        self.states, self.groups = states, offsets
        self.refuses: dict[TopicPartition, str] = {}
        self.commits = 0

    def group_states(self) -> dict[str, str]:
        return dict(self.states)

    def topics(self) -> dict[str, int]:
        return {"orders": 3}

    def offsets(self, group: str) -> Offsets:
        if group == "secret":
            raise ClusterError("not allowed")
        return dict(self.groups.get(group, {}))

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        if group == "breaks":
            raise ClusterError("the connection broke")
        self.commits += 1
        taken = {key: value for key, value in offsets.items() if key not in self.refuses}
        if group == "forgets":
            taken = {key: value._replace(metadata="") for key, value in taken.items()}
        self.groups.setdefault(group, {}).update(taken)
        return {key: why for key, why in self.refuses.items() if key in offsets}


def told(changes: list[Row]) -> list[tuple[str, int, str, bool | None, str | None]]:
    return [(c["group"], c["partition"], c["change"], c["applied"], c["reason"]) for c in changes]


def test_a_dry_run_tells_what_would_change_and_changes_nothing() -> None:
    now = {
        ("orders", 0): Committed(5, None, ""),
        ("orders", 1): Committed(9, None, ""),
        ("orders", 2): Committed(5, 1, ""),
    }
    cluster = FakeCluster({"g": "Empty", "other": "Empty"}, g=now, other={("orders", 0): Committed(1, None, "")})
    rows = [row("g"), row("g", partition=1), row("g", partition=2, metadata="m"), row("other"), row("unheard")]
    assert told(restore(cluster, rows, execute=False)) == [
        ("g", 0, "unchanged", None, None),
        ("g", 1, "rewound", None, None),
        ("g", 2, "metadata", None, None),
        ("other", 0, "advanced", None, None),
        ("unheard", 0, "new", None, None),
    ]
    assert cluster.commits == 0
    assert cluster.groups["g"] == now


def test_what_differs_is_committed_and_asked_for_again() -> None:
    cluster = FakeCluster(g={("orders", 0): Committed(5, None, "")})
    changes = restore(cluster, [row("g"), row("g", partition=1, metadata="é", leader_epoch=2)], execute=True)
    assert told(changes) == [("g", 0, "unchanged", True, None), ("g", 1, "new", True, None)]
    assert cluster.groups["g"][("orders", 1)] == Committed(5, 2, "é")
    assert told(restore(cluster, [row("g")], execute=True)) == [("g", 0, "unchanged", True, None)]
    assert cluster.commits == 1


@pytest.mark.parametrize(
    "state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "stable"]
)
def test_a_group_with_members_is_refused(state: str) -> None:
    cluster = FakeCluster({"g": state, "idle": "Empty", "gone": "Dead"})
    changes = restore(cluster, [row("g"), row("idle"), row("gone")], execute=True)
    assert told(changes)[0] == ("g", 0, "new", False, f"the group is {state}: stop its members first")
    assert [change["applied"] for change in changes[1:]] == [True, True]
    assert "g" not in cluster.groups


def test_what_is_not_applied_says_why() -> None:
    cluster = FakeCluster()
    cluster.refuses = {("orders", 1): "OFFSET_METADATA_TOO_LARGE"}
    rows = [
        row("breaks"),
        row("forgets", metadata="m"),
        row("g", partition=0),
        row("g", partition=1),
        row("g", partition=3),
        row("g", "unknown"),
        row("g\ufffd", group_base64="Z/8="),
        row("secret"),
    ]
    changes = {
        (c["group"], c["topic"], c["partition"]): (c["applied"], c["reason"])
        for c in restore(cluster, rows, execute=True)
    }
    assert changes == {
        ("breaks", "orders", 0): (False, "the connection broke"),
        ("forgets", "orders", 0): (
            False,
            "the cluster answers {'committed_offset': 5, 'leader_epoch': None, 'metadata': ''}",
        ),
        ("g", "orders", 0): (True, None),
        ("g", "orders", 1): (False, "OFFSET_METADATA_TOO_LARGE"),
        ("g", "orders", 3): (False, "the cluster's topic has 3 partitions"),
        ("g", "unknown", 0): (False, "the cluster has no such topic"),
        ("g\ufffd", "orders", 0): (False, "the name is not UTF-8: it would be committed for another name"),
        ("secret", "orders", 0): (False, "not allowed"),
    }
