"""Describe one offset's way to another value: as a row, and carried out so that it can be continued and undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.doubts import is_active
from offsets_log.restore.target import UNKNOWN, Committed, GroupOffsets, PartitionNow, TopicPartition
from offsets_log.rows.tables import GROUP_COLUMN, TOPIC_PARTITION_COLUMNS, Column, Row

RESTORE_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column(
        "change",
        "string",
        "new, advanced, rewound, metadata, deleted, unchanged, done (set by an earlier run and moved since), or left "
        "(by --only-behind, --only-ahead)",
    ),
    Column("current_offset", "bigint", "the offset that the cluster had; null for none"),
    Column("committed_offset", "bigint", "the offset that it is to have; null for none"),
    Column("plan_offset", "bigint", "the plan's offset if that is another"),
    Column("log_start_offset", "bigint", "where the partition's log begins on the cluster"),
    Column("log_end_offset", "bigint", "where it ends"),
    Column("range", "string", "whether the plan's offset is inside or outside of this log"),
    Column("same_topic", "boolean", "whether the topic has the plan's topic id; null if one of them has none"),
    Column("current_leader_epoch", "int", "the leader epoch that the cluster had; null for none"),
    Column("leader_epoch", "int", "the leader epoch that it is to have; null for none"),
    Column("plan_leader_epoch", "int", "the plan's leader epoch if that is another"),
    Column("current_metadata", "string", "the metadata that the cluster had"),
    Column("metadata", "string", "the metadata that it is to have"),
    Column(
        "applied",
        "boolean",
        "whether the cluster answers as wanted in the end; null in a dry run and for what is left",
    ),
    Column("reason", "string", "why it does not or would not"),
)

UNCHANGED, DONE, LEFT = "unchanged", "done", "left"
NOTHING_TO_DO = (UNCHANGED, DONE, LEFT)
"""Kinds of changes that need nothing to be sent."""


@dataclass(slots=True, kw_only=True)
class Change:
    """An offset of a group, as it is and as it is to be.

    Attributes:
        current, wanted: None for no offset.
        plan: what the plan has; None if the change is not from a plan.
        kind, range, same_topic, applied, reason: see `RESTORE_COLUMNS`.
        is_uncertain: whether a commit of an interrupted run may still be in flight; then the offset is sent even if the
            cluster has it already, because the later commit wins.
        is_share: whether it is where a share group starts.
    """

    group: str
    topic: str
    partition: int
    current: Committed | None
    wanted: Committed | None
    is_share: bool
    plan: Committed | None = None
    now: PartitionNow = UNKNOWN
    kind: str = ""
    range: str | None = None
    same_topic: bool | None = None
    applied: bool | None = None
    reason: str | None = None
    is_uncertain: bool = False

    @property
    def key(self) -> TopicPartition:
        """The topic and partition of the offset."""
        return self.topic, self.partition

    @property
    def is_to_do(self) -> bool:
        """Whether a commit or deletion must be sent."""
        return self.reason is None and (self.is_uncertain or self.kind not in NOTHING_TO_DO)

    def row(self) -> Row:
        """Return a row of `RESTORE_COLUMNS`."""
        wanted, current, plan = self.wanted, self.current, self.plan
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "change": self.kind,
            "current_offset": current.committed_offset if current else None,
            "committed_offset": wanted.committed_offset if wanted else None,
            "plan_offset": _other(plan, wanted, "committed_offset"),
            "log_start_offset": self.now.log_start_offset,
            "log_end_offset": self.now.log_end_offset,
            "range": self.range,
            "same_topic": self.same_topic,
            "current_leader_epoch": current.leader_epoch if current else None,
            "leader_epoch": wanted.leader_epoch if wanted else None,
            "plan_leader_epoch": _other(plan, wanted, "leader_epoch"),
            "current_metadata": current.metadata if current else None,
            "metadata": wanted.metadata if wanted else None,
            "applied": self.applied,
            "reason": self.reason,
        }


def _other(plan: Committed | None, wanted: Committed | None, name: str) -> int | None:
    planned: int | None = getattr(plan, name, None)
    return None if planned == getattr(wanted, name, None) else planned


def kind_of(wanted: Committed | None, current: Committed | None) -> str:
    """Return the word for a change."""
    if wanted == current:
        return UNCHANGED
    if current is None:
        return "new"
    if wanted is None:
        return "deleted"
    if wanted.committed_offset < current.committed_offset:
        return "rewound"
    return "advanced" if wanted.committed_offset > current.committed_offset else "metadata"


class Note(Protocol):
    """A record of what a run does, so that it can be continued and undone."""

    def before(self, changes: Iterable[Change]) -> None:
        """Record changes on the disk; they are sent as soon as this returns."""

    def after(self, changes: Iterable[Change]) -> None:
        """Record what became of the changes."""


def refuse_active(change: Change, state: str) -> None:
    """Refuse a change if the group has members: only these may commit.

    An offset that is there already needs no commit.
    """
    if not is_active(state):
        return
    change.is_uncertain = False
    if change.is_to_do:
        change.reason = f"the group is {state}: stop its members first"


def carry_out(target: GroupOffsets, group: str, changes: Sequence[Change], note: Note) -> None:
    """Send the changes of one group, and accept only what the cluster answers afterwards.

    Raises:
        ClusterLostError: the cluster no longer answers; what became of the group's offsets is not known.
    """
    if to_do := [change for change in changes if change.is_to_do]:
        note.before(to_do)
        _send(target, group, to_do)
    for change in changes:
        change.applied = None if change.kind == LEFT else change.reason is None
    if to_do:
        note.after(to_do)


def _send(target: GroupOffsets, group: str, changes: Sequence[Change]) -> None:
    wanted = {change.key: change.wanted for change in changes}
    try:
        errors = target.commit(group, {key: value for key, value in wanted.items() if value is not None})
        errors |= target.delete(group, [key for key, value in wanted.items() if value is None])
        answer = target.offsets(group)
    except ClusterLostError:
        raise
    except ClusterError as error:
        for change in changes:
            change.reason = str(error)
        return
    for change in changes:
        found = answer.get(change.key)
        if change.key in errors:
            change.reason = errors[change.key]
        elif found != change.wanted:
            change.reason = f"the cluster answers {found._asdict() if found else 'no offset'}"
