"""Offsets of share groups: the share coordinator's log in the copy, and what the groups' records say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offsets_log.words import counted

SHARE_GROUP_METADATA = 11
"""The record type that says that a share group exists."""

if TYPE_CHECKING:
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.data_directory.share_offsets import ShareGroupTopics, ShareOffsets
    from offsets_log.session.session import Session


def share_offsets_of(session: Session, logs: CopiedLogs | None) -> ShareOffsets | None:
    """Return the states that filters show; None without a copy of that log, or if the run ends before the log does.

    Args:
        logs: tell the ends of partitions; None if these are not asked for.
    """
    from offsets_log.data_directory.share_offsets import ShareOffsets
    from offsets_log.messages.internal_topics import SHARE_GROUP_STATE

    inputs = session.inputs
    if inputs.scope.is_bounded or not inputs.has_or_lacks(SHARE_GROUP_STATE):
        return None
    states = inputs.share_states
    for damage in states.damages:
        session.account.on_damage(damage)
    return ShareOffsets(
        states,
        share_topics_of(session, {key.group for key in states.by_key}),
        inputs.topic_ids,
        logs,
        is_whole=inputs.has_all_partitions,
        shows_group=inputs.shows_group,
        shows_topic=inputs.shows_topic,
    )


def share_topics_of(session: Session, groups: set[str]) -> ShareGroupTopics:
    """Return what records of these groups say of their topics; damage is reported by the run's main reading."""
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.data_directory.share_offsets import (
        STATE_PARTITION_METADATA,
        ShareGroupTopics,
        is_of_states,
    )

    scope = session.inputs.scope
    aside = session.bounded(scope.until_offset, scope.until_time).engine
    topics = ShareGroupTopics()
    selection = Selection(groups.__contains__, record_types=frozenset({STATE_PARTITION_METADATA}))
    for log in session.inputs.logs if groups else ():
        topics.add(aside.selected(log, selection, is_of_states))
    return topics


def say_of_share_groups(session: Session, found: int) -> int | None:
    """Say which share groups filters name where one fits nothing else: no offset of theirs is in the offsets topic.

    Args:
        found: how many rows the answer has.

    Returns:
        The same for `Account.finish`; None if share groups are all that was asked for.
    """
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.events import Event

    if found and not session.inputs.idle_filters:
        return found
    scope, shows_group = session.inputs.scope, session.inputs.shows_group
    aside = session.bounded(scope.until_offset, scope.until_time).engine
    groups: dict[str, bool] = {}
    for log in session.inputs.logs:
        for event in aside.selected(log, Selection(shows_group, record_types=frozenset())):
            told = event.decoded if isinstance(event, Event) else None
            if told is not None and told.record_type == SHARE_GROUP_METADATA and shows_group(told.group):
                groups[told.group] = told.value is not None
    if not (names := sorted(name for name, exists in groups.items() if exists)):
        return found
    session.account.say(f"share groups, whose offsets --table share-offsets shows: {', '.join(names)}")
    return found if found or session.inputs.idle_filters else None


def say_of_orphans(session: Session, rows: list[dict[str, object]]) -> None:
    """Report states that belong to no group."""
    if count := sum(row["status"] == "orphan" for row in rows):
        session.account.say(
            f"{counted(count, 'share state is', 'share states are')} orphans: no group in __consumer_offsets has them"
        )
