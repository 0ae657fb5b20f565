"""Questions that are asked of logs again as they grow: what is followed, and what is to be said at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from offsets_log.actions.follow import Following
from offsets_log.following.commits import CommitsAsked, FollowedCommits
from offsets_log.following.generations import FollowedGenerations, GenerationsAsked
from offsets_log.following.groups import FollowedGroups, GroupsAsked
from offsets_log.following.offsets import FollowedOffsets, OffsetsAsked
from offsets_log.investigate.groups import groups_row_order
from offsets_log.rebalance.storms import Limits
from offsets_log.rows.tables import Row, offset_row_order
from offsets_log.session.inputs import read_topic_ids
from offsets_log.session.rules import Rules
from offsets_log.words import counted, rewinds_in_words

if TYPE_CHECKING:
    from offsets_log.actions.follow_asked import FollowAsked
    from offsets_log.investigate.history import ShowsKey
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import GroupTopicPartition
    from offsets_log.replay.problem import Problem
    from offsets_log.session.account import Account
    from offsets_log.session.session import Session


@dataclass(frozen=True, slots=True)
class FollowRun:
    """A run that has not begun.

    Attributes:
        following: goes on until it is told to stop.
        finish: reports the result.
        rows: returns all rows as they are now; None where only changes are known.
    """

    following: Following[Any]
    finish: Callable[[], None]
    rows: Callable[[], list[Row]] | None = None


def follow_offsets(
    session: Session, follow: FollowAsked, profile: str | None, *, orphans: bool, unstable: bool
) -> FollowRun:
    """Follow committed offsets; arguments as of `questions.offsets_asked.OffsetsAsked`."""
    rules = Rules(session, profile)
    asked = OffsetsAsked(
        profile=rules.profile,
        shows_group=session.inputs.shows_group,
        shows_topic=session.inputs.shows_topic,
        orphans=orphans,
        unstable=unstable,
        rules=follow.rules,
    )
    loads = partial(_tell_loads, session.account, rules.name, {})
    following = Following(session, follow, partial(FollowedOffsets, asked), offset_row_order, loads)

    def finish() -> None:
        groups: set[str] = set().union(*(followed.groups for followed in following.partitions))
        count = sum(followed.count for followed in following.partitions)
        session.account.finish(
            f"{counted(count, 'offset')} of {counted(len(groups), 'group')}, {_partitions(following)}"
            f"{rules.in_words(is_loaded=False)}",
            found=count,
        )

    return FollowRun(following, finish)


def follow_groups(session: Session, follow: FollowAsked, profile: str | None) -> FollowRun:
    """Follow groups."""
    rules = Rules(session, profile)
    asked = GroupsAsked(
        profile=rules.profile,
        shows_group=session.inputs.shows_group,
        shows_topic=session.inputs.shows_topic,
        rules=follow.rules,
    )
    loads = partial(_tell_loads, session.account, rules.name, {})
    following = Following(session, follow, partial(FollowedGroups, asked), groups_row_order, loads)

    def finish() -> None:
        count = sum(len(followed.rows) for followed in following.partitions)
        session.account.finish(
            f"{counted(count, 'group')}, {_partitions(following)}{rules.in_words(is_loaded=False)}", found=count
        )

    return FollowRun(following, finish, partial(_rows_of_groups, following))


def _tell_loads(
    account: Account,
    profile: str,
    told: dict[int | None, Problem],
    found: Sequence[tuple[PartitionLog, FollowedOffsets | FollowedGroups]],
) -> None:
    """Report that a coordinator would not load some partitions as they are by now, each failure once."""
    account.unloaded.clear()
    for log, followed in found:
        if (failure := followed.kept.failure) != told.get(log.offsets_partition):
            account.note_load(log, failure)
    told |= account.tell_loads(profile, {log.offsets_partition for log, followed in found if followed.groups})


def _rows_of_groups(following: Following[FollowedGroups]) -> list[Row]:
    """Return all groups as they are now, those that wrote last first."""
    now_ms = int(time.time() * 1000)
    rows = [row for followed in following.partitions for row in followed.aged_rows(now_ms)]
    return sorted(rows, key=lambda row: -(row["last_activity_timestamp_ms"] or 0))


def follow_history(
    session: Session,
    follow: FollowAsked,
    profile: str | None,
    shows_key: Callable[[Session], ShowsKey | None],
    *,
    topic_ids: str | None,
    only_rewinds: bool,
) -> FollowRun:
    """Follow commits.

    Args:
        shows_key: makes what tells whether a group, topic and partition is shown; it is None for all.
        topic_ids: a file with a JSON object of topic ids and names; None for no more than the files tell.
    """
    rules = Rules(session, profile)
    asked = CommitsAsked(
        profile=rules.profile,
        shows_group=session.inputs.shows_group,
        shows_key=shows_key(session),
        topic_ids=(read_topic_ids(topic_ids), session.inputs.topic_ids),
        only_rewinds=only_rewinds,
        rules=follow.rules,
    )
    following = Following(session, follow, partial(FollowedCommits, asked))

    def finish() -> None:
        keys: set[GroupTopicPartition] = set().union(*(followed.keys for followed in following.partitions))
        told = [(0, 0), *((followed.rewinds, followed.begun_below) for followed in following.partitions)]
        session.account.finish(
            f"{counted(sum(followed.commits for followed in following.partitions), 'commit')}, "
            f"{rewinds_in_words(*map(sum, zip(*told, strict=True)))}, "
            f"{counted(len(keys), 'topic partition')} of {counted(len({key[0] for key in keys}), 'group')}"
            f"{rules.in_words(is_loaded=False)}",
            found=len(keys),
        )

    return FollowRun(following, finish)


def follow_generations(
    session: Session, follow: FollowAsked, storm: tuple[int, int], topic_ids: str | None
) -> FollowRun:
    """Follow generations of groups.

    Args:
        storm: so many generations within so many ms are a storm.
        topic_ids: as of `follow_history`.
    """
    asked = GenerationsAsked(
        shows_group=session.inputs.shows_group,
        limits=Limits(storm[0], window_ms=storm[1]),
        topic_ids=(read_topic_ids(topic_ids), session.inputs.topic_ids),
        rules=follow.rules,
    )
    following = Following(session, follow, partial(FollowedGenerations, asked))

    def finish() -> None:
        found = following.partitions
        groups: set[str] = set().union(*(followed.generations for followed in found))
        count = sum(followed.generations.total() for followed in found)
        session.account.finish(
            f"{counted(count, 'generation')} of {counted(len(groups), 'group')}, "
            f"{_partitions(following)}; {sum(followed.in_storms.total() for followed in found)} in storms, "
            f"{sum(followed.flapping for followed in found)} with flapping members",
            found=count,
        )

    return FollowRun(following, finish)


def _partitions(following: Following) -> str:  # type: ignore[type-arg]
    return counted(len(following.partitions), "partition")
