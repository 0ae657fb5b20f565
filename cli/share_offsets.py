"""Offsets of share groups: the share coordinator's log in the copy, and what the groups' records say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.decide import is_bounded
from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cli.options import Output
    from cli.session import Session
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.data_directory.share_offsets import ShareGroupTopics, ShareOffsets
    from offsets_log.rows.tables import Column, Row


def share_offsets_of(session: Session, logs: CopiedLogs | None) -> ShareOffsets | None:
    """Return the states that filters show; None without a copy of that log, or if the run ends before the log does.

    Args:
        logs: tell the ends of partitions; None if these are not asked for.
    """
    from offsets_log.data_directory.share_offsets import ShareOffsets
    from offsets_log.messages.internal_topics import SHARE_GROUP_STATE

    inputs = session.inputs
    if is_bounded(inputs.reading) or not inputs.has_or_lacks(SHARE_GROUP_STATE):
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


def write_columns(session: Session, output: Output, rows: list[Row], columns: Sequence[Column]) -> None:
    """Write rows in the format that is asked for."""
    from cli.output import chosen_format, destination, write_rows

    if chosen_format(output) == "parquet":
        from cli.parquet import write_table_of

        write_table_of(session, output, rows, columns)
        return
    with destination(output, session.inputs.files) as stream:
        write_rows(stream, rows, [column.name for column in columns], chosen_format(output))


def write_history(session: Session, output: Output, shows: Callable[[str, str, int], bool], only_rewinds: bool) -> None:
    """Write the records about the groups in the share coordinator's log, by group, topic, partition and offset."""
    from offsets_log.data_directory.share_groups import ShareStates
    from offsets_log.data_directory.share_history import REWOUND, SHARE_HISTORY_COLUMNS, iter_share_history
    from offsets_log.disk.reader import open_partitions
    from offsets_log.messages.internal_topics import SHARE_GROUP_STATE

    inputs, states = session.inputs, ShareStates()
    if not inputs.has_or_lacks(SHARE_GROUP_STATE):
        session.account.say(
            "no __share_group_state lies beside these partitions: give the broker's whole data directory"
        )
    with open_partitions(inputs.copied_logs.chosen(SHARE_GROUP_STATE)) as logs:
        found = iter_share_history(logs, states, inputs.topic_ids, shows)
        rows = [row for row in found if not only_rewinds or row["change"] == REWOUND]
    missing = (*inputs.copied_logs.short(SHARE_GROUP_STATE), *inputs.lacking(SHARE_GROUP_STATE))
    for damage in (*states.damages, *missing):
        session.account.on_damage(damage)
    rows.sort(key=lambda row: (row["group"], row["topic"] or "", row["partition"], row["record_offset"]))
    write_columns(session, output, rows, SHARE_HISTORY_COLUMNS)
    keys = {(row["group"], row["topic_id"], row["partition"]) for row in rows}
    session.account.finish(
        f"{counted(len(rows), 'record')} of {counted(len(keys), 'share offset')} of "
        f"{counted(len({row['group'] for row in rows}), 'group')}",
        found=len(rows),
    )


def share_topics_of(session: Session, groups: set[str]) -> ShareGroupTopics:
    """Return what records of these groups say of their topics; damage is reported by the run's main reading."""
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.data_directory.share_offsets import (
        STATE_PARTITION_METADATA,
        ShareGroupTopics,
        is_of_states,
    )

    reading = session.inputs.reading
    aside = session.bounded(reading.until_offset, reading.until_time).engine
    topics = ShareGroupTopics()
    selection = Selection(groups.__contains__, record_types=frozenset({STATE_PARTITION_METADATA}))
    for log in session.inputs.logs if groups else ():
        topics.add(aside.selected(log, selection, is_of_states))
    return topics


def say_of_orphans(session: Session, rows: list[dict[str, object]]) -> None:
    """Report states that belong to no group."""
    if count := sum(row["status"] == "orphan" for row in rows):
        session.account.say(
            f"{counted(count, 'share state is', 'share states are')} orphans: no group in __consumer_offsets has them"
        )
