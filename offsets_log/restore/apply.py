"""Set a plan's offsets on a cluster, or show what that would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.changes import DONE, LEFT, UNCHANGED, Change, Note, carry_out, kind_of, refuse_active
from offsets_log.restore.journal import Entry, Journal
from offsets_log.restore.policy import Policy, planned, wish
from offsets_log.restore.rows import is_share_row, kind_of_row
from offsets_log.restore.target import NO_GROUP, UNKNOWN, Offsets, Target, TopicPartition
from offsets_log.rows.tables import Row
from offsets_log.words import counted

NO_TOPIC = "the cluster has no such topic"
SINCE = "moved since an interrupted run was to set it; another --journal sets it all the same"


def restore(
    target: Target, rows: Iterable[Row], policy: Policy, journal: Journal, note: Note | None
) -> Iterator[Change]:
    """Yield one change for each offset, group by group; an error of one group does not stop the others.

    An offset that the journal says was set, and that has been moved since, is left alone.

    Args:
        rows: offsets of a plan.
        journal: what earlier runs did.
        note: records what is done; None to change nothing and only look.

    Raises:
        ClusterLostError: the cluster no longer answers; changes that were not yielded were not sent, except for the
            offsets that were noted last.
        ClusterError: the cluster does not list its groups and topics, and nothing was done.
    """
    rows = sorted(rows, key=lambda row: (kind_of_row(row), row["topic"], row["partition"]))
    sight = _Sight(target, rows, policy)
    for (group, is_share), same in groupby(rows, key=kind_of_row):
        own, offsets = list(same), target.share_groups if is_share else target
        try:
            current = offsets.offsets(group)
        except ClusterLostError:
            raise
        except ClusterError as error:
            changes = [sight.change(row, {}, None, str(error)) for row in own]
        else:
            changes = [sight.change(row, current, journal.entries.get(_key(row)), None) for row in own]
        if note is not None:
            carry_out(offsets, group, changes, note)
        yield from changes


class _Sight:
    """What the cluster has, as far as a plan's rows need it."""

    def __init__(self, target: Target, rows: Sequence[Row], policy: Policy) -> None:
        self.policy = policy
        self.states, self.topics = target.group_states(), target.topics()
        there = {_partition(row): row["leader_epoch"] for row in rows if self._topic_refusal(row) is None}
        self.partitions = target.partitions(there.keys())
        asked: dict[TopicPartition, set[int]] = {}
        if policy.leader_epochs == "if-valid":
            for row in rows:
                if row["leader_epoch"] is not None and _partition(row) in there:
                    asked.setdefault(_partition(row), set()).add(row["leader_epoch"])
        self.epoch_ends = _epoch_ends(target, asked)

    def change(self, row: Row, current: Offsets, entry: Entry | None, problem: str | None) -> Change:
        """Return what becomes of a row.

        Args:
            current: what its group has committed.
            entry: what the journal says of it.
            problem: why the group's offsets could not be read.
        """
        key = _partition(row)
        now = self.partitions.get(key, UNKNOWN)
        wished = wish(row, now, self.epoch_ends.get((key, row["leader_epoch"])), self.policy)
        found = current.get(key)
        change = Change(
            group=row["group"],
            topic=row["topic"],
            partition=row["partition"],
            current=found,
            wanted=wished.wanted,
            plan=planned(row),
            now=now,
            kind=kind_of(wished.wanted, found),
            range=wished.range,
            same_topic=_is_same(row.get("topic_id"), now.topic_id),
            is_share=is_share_row(row),
            reason=_name_refusal(row) or problem or self._topic_refusal(row),
        )
        if change.reason is None and change.kind != UNCHANGED:  # what is there already needs no commit
            change.reason = wished.refusal
        if change.reason is None and change.kind != UNCHANGED and self.policy.leaves(wished.wanted, found):
            change.kind = LEFT
        elif change.reason is None and entry is not None:
            _go_on(change, entry)
        refuse_active(change, self.states.get(row["group"], NO_GROUP))
        return change

    def _topic_refusal(self, row: Row) -> str | None:
        partitions = self.topics.get(row["topic"])
        if partitions is None:
            return NO_TOPIC
        if not 0 <= row["partition"] < partitions:
            return f"the cluster's topic has {counted(partitions, 'partition')}"
        return None


def _go_on(change: Change, entry: Entry) -> None:
    """Adjust a change to what earlier runs did, according to their journal."""
    change.is_uncertain = entry.is_open
    if change.kind == UNCHANGED or entry.plan != change.plan or change.current in entry.ours:
        return
    if entry.is_applied:
        change.kind = DONE
    elif entry.is_open and change.current != entry.before:
        change.reason = SINCE


def _epoch_ends(
    target: Target, asked: Mapping[TopicPartition, set[int]]
) -> dict[tuple[TopicPartition, int | None], int]:
    """Return where each leader epoch of each partition ends; groups may have different epochs of one partition."""
    ends: dict[tuple[TopicPartition, int | None], int] = {}
    left = {key: sorted(epochs) for key, epochs in asked.items()}
    while left:
        some = {key: epochs.pop() for key, epochs in left.items()}
        ends |= {(key, some[key]): end for key, end in target.epoch_ends(some).items()}
        left = {key: epochs for key, epochs in left.items() if epochs}
    return ends


def _partition(row: Row) -> TopicPartition:
    return row["topic"], row["partition"]


def _key(row: Row) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]


def _is_same(planned_id: str | None, topic_id: str | None) -> bool | None:
    return None if planned_id is None or topic_id is None else planned_id == topic_id


def _name_refusal(row: Row) -> str | None:
    if "group_base64" in row or "topic_base64" in row:
        return "the name is not UTF-8: it would be committed for another name; --rename-group, --rename-topic"
    return None
