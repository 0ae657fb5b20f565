"""The commands that have ``--follow``, following."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cli.follow import Following
from cli.follow_options import FollowOptions
from cli.follow_output import Lines, live_table
from cli.options import Output, ReadOptions
from cli.output import chosen_format, destination, quiet_pipe
from cli.session import open_session
from offsets_log.investigate.groups import GROUPS_COLUMNS, groups_row_order
from offsets_log.rows.tables import Row, offset_row_order
from offsets_log.session.inputs import read_topic_ids
from offsets_log.session.rules import Rules
from offsets_log.session.session import Session
from offsets_log.words import counted, rewinds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from offsets_log.following.groups import FollowedGroups
    from offsets_log.following.offsets import FollowedOffsets
    from offsets_log.investigate.history import ShowsKey
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import GroupTopicPartition
    from offsets_log.replay.problem import Problem
    from offsets_log.session.account import Account


def follow_compact(
    reading: ReadOptions, output: Output, follow: FollowOptions, profile: str | None, *, orphans: bool, unstable: bool
) -> None:
    """Run ``compact --follow``."""
    from offsets_log.following.offsets import FollowedOffsets, OffsetsAsked

    with open_session(replace(reading, progress=False), output) as session:
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
        _write_lines(following, session, output)
        groups: set[str] = set().union(*(followed.groups for followed in following.partitions))
        count = sum(followed.count for followed in following.partitions)
        session.account.finish(
            f"{counted(count, 'offset')} of {counted(len(groups), 'group')}, {_partitions(following)}"
            f"{rules.in_words(is_loaded=False)}",
            found=count,
        )


def follow_groups(reading: ReadOptions, output: Output, follow: FollowOptions, profile: str | None) -> None:
    """Run ``groups --follow``."""
    from offsets_log.following.groups import FollowedGroups, GroupsAsked

    with open_session(replace(reading, progress=False), output) as session:
        rules = Rules(session, profile)
        asked = GroupsAsked(
            profile=rules.profile,
            shows_group=session.inputs.shows_group,
            shows_topic=session.inputs.shows_topic,
            rules=follow.rules,
        )
        loads = partial(_tell_loads, session.account, rules.name, {})
        following = Following(session, follow, partial(FollowedGroups, asked), groups_row_order, loads)
        if chosen_format(output) == "table":
            columns = [column.name for column in GROUPS_COLUMNS]
            with quiet_pipe(), live_table(columns, partial(_rows_of_groups, following)) as sink:
                following.run(sink)
        else:
            _write_lines(following, session, output)
        count = sum(len(followed.rows) for followed in following.partitions)
        session.account.finish(
            f"{counted(count, 'group')}, {_partitions(following)}{rules.in_words(is_loaded=False)}", found=count
        )


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
    reading: ReadOptions,
    output: Output,
    follow: FollowOptions,
    profile: str | None,
    shows_key: Callable[[Session], ShowsKey] | None,
    *,
    topic_ids: str | None,
    only_rewinds: bool,
) -> None:
    """Run ``history --follow``."""
    from offsets_log.following.commits import CommitsAsked, FollowedCommits

    with open_session(replace(reading, progress=False), output) as session:
        rules = Rules(session, profile)
        asked = CommitsAsked(
            profile=rules.profile,
            shows_group=session.inputs.shows_group,
            shows_key=None if shows_key is None else shows_key(session),
            topic_ids=(read_topic_ids(topic_ids), session.inputs.topic_ids),
            only_rewinds=only_rewinds,
            rules=follow.rules,
        )
        following = Following(session, follow, partial(FollowedCommits, asked))
        _write_lines(following, session, output)
        keys: set[GroupTopicPartition] = set().union(*(followed.keys for followed in following.partitions))
        told = [(0, 0), *((followed.rewinds, followed.begun_below) for followed in following.partitions)]
        session.account.finish(
            f"{counted(sum(followed.commits for followed in following.partitions), 'commit')}, "
            f"{rewinds_in_words(*map(sum, zip(*told, strict=True)))}, "
            f"{counted(len(keys), 'topic partition')} of {counted(len({key[0] for key in keys}), 'group')}"
            f"{rules.in_words(is_loaded=False)}",
            found=len(keys),
        )


def follow_rebalances(
    reading: ReadOptions, output: Output, follow: FollowOptions, storm: tuple[int, int], topic_ids: str | None
) -> None:
    """Run ``rebalances --follow``."""
    from offsets_log.following.generations import FollowedGenerations, GenerationsAsked
    from offsets_log.rebalance.storms import Limits

    with open_session(replace(reading, progress=False), output) as session:
        asked = GenerationsAsked(
            shows_group=session.inputs.shows_group,
            limits=Limits(storm[0], window_ms=storm[1]),
            topic_ids=(read_topic_ids(topic_ids), session.inputs.topic_ids),
            rules=follow.rules,
        )
        following = Following(session, follow, partial(FollowedGenerations, asked))
        _write_lines(following, session, output)
        found = following.partitions
        groups: set[str] = set().union(*(followed.generations for followed in found))
        count = sum(followed.generations.total() for followed in found)
        session.account.finish(
            f"{counted(count, 'generation')} of {counted(len(groups), 'group')}, "
            f"{_partitions(following)}; {sum(followed.in_storms.total() for followed in found)} in storms, "
            f"{sum(followed.flapping for followed in found)} with flapping members",
            found=count,
        )


def _write_lines(following: Following, session: Session, output: Output) -> None:  # type: ignore[type-arg]
    with destination(output, session.inputs.files) as stream:
        following.run(Lines(stream))


def _partitions(following: Following) -> str:  # type: ignore[type-arg]
    return counted(len(following.partitions), "partition")
