"""Setting a plan's offsets on a cluster, or showing what that would change: one row an offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from offsets_log.errors import ClusterError
from offsets_log.restore.doubts import is_active
from offsets_log.restore.rows import by_group
from offsets_log.tables import Row

RESTORE_COLUMNS = (
    "group", "topic", "partition", "change", "current_offset", "committed_offset", "current_leader_epoch",
    "leader_epoch", "current_metadata", "metadata", "applied", "reason",
)  # fmt: skip
"""``current_…`` is what the cluster had; ``change`` is new, advanced, rewound, metadata or unchanged; ``applied`` says
whether it answers as wanted in the end, null in a dry run; ``reason`` says why it does or would not."""

NO_GROUP = "Dead"
"""The state of a group that does not exist."""


class Committed(NamedTuple):
    """An offset as a client commits and fetches it; ``leader_epoch`` is None if none was sent."""

    committed_offset: int
    leader_epoch: int | None
    metadata: str


TopicPartition = tuple[str, int]
Offsets = Mapping[TopicPartition, Committed]
"""What one group has, or is to have."""


class Target(Protocol):
    """A cluster to set offsets on; its methods raise ClusterError."""

    def group_states(self) -> dict[str, str]:
        """Group → state, of all groups there are."""

    def topics(self) -> dict[str, int]:
        """Topic → number of partitions, of all topics there are."""

    def offsets(self, group: str) -> Offsets:
        """What a group has committed."""

    def commit(self, group: str, offsets: Offsets) -> dict[TopicPartition, str]:
        """Commit for a group without members; what was refused → why."""


def restore(target: Target, rows: Iterable[Row], *, execute: bool) -> list[Row]:
    """Rows of `RESTORE_COLUMNS`; an error of one group does not keep the others from it.

    Args:
        rows: offsets of a plan.
        execute: commit what differs; else only look.

    Raises:
        ClusterError: the cluster does not tell its groups and topics, and nothing was done.
    """
    states, topics = target.group_states(), target.topics()
    changes: list[Row] = []
    for group, own in by_group(sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"]))):
        refusals = [_refusal(row, states.get(group, NO_GROUP), topics) for row in own]
        try:
            current = target.offsets(group)
        except ClusterError as error:
            changes += [_change_row(row, {}, str(error)) for row in own]
            continue
        found = [_change_row(row, current, refusal) for row, refusal in zip(own, refusals, strict=True)]
        if execute:
            _commit(target, group, found)
        changes += found
    for row in changes:
        if execute:
            row["applied"] = row["reason"] is None
    return changes


def _commit(target: Target, group: str, found: list[Row]) -> None:
    """Commit what differs; only what the cluster answers afterwards counts."""
    wanted = {_key(row): row for row in found if row["reason"] is None and row["change"] != "unchanged"}
    if not wanted:
        return
    try:
        errors = target.commit(group, {key: _wanted(row) for key, row in wanted.items()})
        after = target.offsets(group)
    except ClusterError as error:
        for row in wanted.values():
            row["reason"] = str(error)
        return
    for key, row in wanted.items():
        if key in errors:
            row["reason"] = errors[key]
        elif (answer := after.get(key)) != _wanted(row):
            row["reason"] = f"the cluster answers {answer._asdict() if answer else 'no offset'}"


def _change_row(row: Row, current: Offsets, reason: str | None) -> Row:
    wanted, now = _wanted(row), current.get(_key(row))
    values = {
        "group": row["group"],
        "topic": row["topic"],
        "partition": row["partition"],
        "change": _change(wanted, now),
        "current_offset": now.committed_offset if now else None,
        "current_leader_epoch": now.leader_epoch if now else None,
        "current_metadata": now.metadata if now else None,
        "reason": reason,
        **wanted._asdict(),
    }
    return {name: values.get(name) for name in RESTORE_COLUMNS}


def _key(row: Row) -> TopicPartition:
    return row["topic"], row["partition"]


def _wanted(row: Row) -> Committed:
    return Committed(row["committed_offset"], row["leader_epoch"], row["metadata"])


def _change(wanted: Committed, now: Committed | None) -> str:
    if now is None:
        return "new"
    if wanted.committed_offset != now.committed_offset:
        return "advanced" if wanted.committed_offset > now.committed_offset else "rewound"
    return "unchanged" if wanted == now else "metadata"


def _refusal(row: Row, state: str, topics: Mapping[str, int]) -> str | None:
    return next(_refusals(row, state, topics), None)


def _refusals(row: Row, state: str, topics: Mapping[str, int]) -> Iterator[str]:
    if "group_base64" in row or "topic_base64" in row:
        yield "the name is not UTF-8: it would be committed for another name"
    if is_active(state):
        yield f"the group is {state}: stop its members first"
    if row["topic"] not in topics:
        yield "the cluster has no such topic"
    elif not 0 <= row["partition"] < topics[row["topic"]]:
        yield f"the cluster's topic has {topics[row['topic']]} partitions"
