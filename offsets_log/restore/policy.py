"""Decide what is committed for a row of a plan, on a cluster whose logs may have other bounds and leader epochs."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.restore.target import Committed, PartitionNow
from offsets_log.rows.tables import Row

LEADER_EPOCHS = ("drop", "keep", "if-valid")
"""What to do with leader epochs.

``drop`` is right everywhere. A consumer that gets an epoch first waits for a leader of that epoch or a later one, and
then asks where the epoch ends: on a cluster that never had the epoch, it waits silently forever. ``if-valid`` keeps the
epochs that the cluster has.
"""

OUT_OF_RANGE = ("refuse", "earliest", "latest", "keep")
"""What to do with an offset before the start or after the end of the log.

A consumer would not continue from such an offset, but from where ``auto.offset.reset`` says, or fail.
"""

BEHIND, AHEAD = "behind", "ahead"
"""Which offsets alone to set: those of groups that are behind the plan, or have none; those that are ahead of it."""

INSIDE, OUTSIDE = "inside", "outside"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user asked for.

    Attributes:
        leader_epochs: one of `LEADER_EPOCHS`.
        out_of_range: one of `OUT_OF_RANGE`.
        only: BEHIND, AHEAD, or None for all.
    """

    leader_epochs: str = "drop"
    out_of_range: str = "refuse"
    only: str | None = None

    def leaves(self, wanted: Committed, current: Committed | None) -> bool:
        """Whether an offset is left as it is, because the group is not where `only` says."""
        if self.only == BEHIND:
            return current is not None and current.committed_offset >= wanted.committed_offset
        return self.only == AHEAD and (current is None or current.committed_offset <= wanted.committed_offset)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be committed.

    Attributes:
        range: whether the plan's offset is `INSIDE` or `OUTSIDE` the log; None if the log is not known.
        refusal: why it is not committed; None if it may be.
    """

    wanted: Committed
    range: str | None
    refusal: str | None = None


def planned(row: Row) -> Committed:
    """Return what the plan has."""
    return Committed(row["committed_offset"], row["leader_epoch"], row["metadata"])


def wish(row: Row, now: PartitionNow, epoch_end: int | None, policy: Policy) -> Wish:
    """Return what to commit for a row of a plan.

    Args:
        epoch_end: where the records of the row's leader epoch end on this cluster; None if that is not known.
    """
    plan = planned(row)
    offset, start, end = plan.committed_offset, now.log_start_offset, now.log_end_offset
    if start is None or end is None:
        refusal = None if policy.out_of_range == "keep" else "no leader tells where the partition's log begins and ends"
        return Wish(_with_epoch(plan, now, epoch_end, policy), None, refusal)
    if start <= offset <= end:
        return Wish(_with_epoch(plan, now, epoch_end, policy), INSIDE)
    moved = {"earliest": start, "latest": end}.get(policy.out_of_range)
    if moved is not None:  # epoch and metadata belong to the original offset
        return Wish(Committed(moved, None, ""), OUTSIDE)
    refusal = None if policy.out_of_range == "keep" else f"outside the log, which goes from {start} to {end}"
    return Wish(_with_epoch(plan, now, epoch_end, policy), OUTSIDE, refusal)


def _with_epoch(plan: Committed, now: PartitionNow, epoch_end: int | None, policy: Policy) -> Committed:
    keeps = policy.leader_epochs == "keep" or (
        policy.leader_epochs == "if-valid" and _is_valid(plan, now.leader_epoch, epoch_end)
    )
    return plan if keeps else plan._replace(leader_epoch=None)


def _is_valid(plan: Committed, leader_epoch: int | None, epoch_end: int | None) -> bool:
    """Whether a consumer would continue from there: the epoch existed, and its records reach that far (KIP-320)."""
    return (
        plan.leader_epoch is not None
        and leader_epoch is not None
        and leader_epoch >= plan.leader_epoch
        and epoch_end is not None
        and epoch_end >= plan.committed_offset
    )
