"""``offsets-log diff``: what changed between two copies, or between two moments of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import click

from cli.compared import Comparison, Since, compared
from cli.decide import check_usage, decide_options
from cli.options import (
    HARDLY_MS,
    PARTITIONS,
    PROFILE,
    TOPIC_IDS,
    Duration,
    Output,
    ReadOptions,
    Time,
    UntilOffset,
    gather,
    output_option,
    reading_options,
)
from offsets_log.session.decide import DecideOptions
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.events import LogEvent, Wants
    from offsets_log.investigate.copies import ComparedPartition
    from offsets_log.investigate.removal import Removal
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.partial import GroupTopicPartition
    from offsets_log.replay.topic_names import TopicNames
    from offsets_log.rows.tables import Row


@dataclass(frozen=True, slots=True)
class RemovalOptions:
    """Options about deleted offsets."""

    retention: int | None
    why: bool


@click.command(
    "diff",
    epilog="Examples: offsets-log diff before.tar.gz /var/lib/kafka/data · "
    "offsets-log diff /var/lib/kafka/data --from-time 2026-11-21T14:00:00Z --until-time 2026-11-21T14:10:00Z · "
    "offsets-log diff /var/lib/kafka/data --from-offset 3:1200 -p 3 --table members",
)
@reading_options
@PROFILE
@PARTITIONS
@TOPIC_IDS
@gather(
    "since",
    Since,
    (
        click.option(
            "--from-time",
            type=Time(),
            help="Compare with the state at that time, with the same forms as for --until-time.",
        ),
        click.option(
            "--from-offset",
            type=UntilOffset(),
            multiple=True,
            help="Compare with the state before record N (in offsets partition P, else in every one); repeatable.",
        ),
    ),
)
@click.option(
    "--table",
    type=click.Choice(["offsets", "groups", "members"]),
    default="offsets",
    show_default=True,
    help="What is compared.",
)
@gather(
    "asked",
    RemovalOptions,
    (
        click.option(
            "--retention",
            type=Duration(HARDLY_MS),
            help="The broker's offsets.retention.minutes, as 7d or 10080m, to distinguish expired offsets from deleted "
            "ones.",
        ),
        click.option(
            "--why",
            is_flag=True,
            help="Add columns with the group's state, the tombstone, and why an offset is called deleted or expired.",
        ),
    ),
)
@decide_options
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    since: Since,
    table: str,
    asked: RemovalOptions,
    decide: DecideOptions,
) -> None:
    """Show what changed between two copies A and B, or with --from-time or --from-offset in one.

    One row for each group, topic and partition whose served offset, leader epoch or metadata changed: new, advanced,
    rewound, deleted, expired; where the offset is the same, metadata or, if only that changed, leader_epoch. Standard
    error says how many did not change.

    A tombstone does not say who wrote it. An offset is called expired if, when its tombstone was written, it was due by
    its own expire timestamp or, with --retention, by the rules of expiry. Without --retention an offset that may have
    expired is called deleted; standard error says how many these are, and --why says so for each.

    --decide ends transactions at the end of each copy; with two moments of one copy, only at the later one.
    """
    from cli.output import chosen_format, destination, write_rows
    from offsets_log.session.inputs import read_topic_ids

    _check_usage(reading, since)
    check_usage(reading, decide.decide)
    with compared(reading, output, profile, since, table, decide) as comparison:
        session = comparison.session
        if table == "offsets":
            rows, names, unchanged, words = _offsets(
                comparison, asked.retention, asked.why or chosen_format(output) == "table"
            )
        else:
            rows, names, unchanged, words = _groups(comparison, table, read_topic_ids(topic_ids))
        with destination(output, session.inputs.files) as stream:
            write_rows(stream, rows, names, chosen_format(output))
        session.account.finish(
            f"{words}, {counted(len(comparison.parts), 'partition')}{comparison.rules.in_words()}",
            found=len(rows) + unchanged,
        )


def _check_usage(reading: ReadOptions, since: Since) -> None:
    if not since.is_given:
        if len(reading.paths) != 2:
            raise click.UsageError("give two copies A and B, or --from-time or --from-offset for two moments of one")
        if reading.paths == ("-", "-"):
            raise click.UsageError("standard input can be only one of the two copies")
        return
    if since.from_time is not None and reading.until_time is not None and since.from_time > reading.until_time:
        raise click.UsageError("--from-time is later than --until-time")
    until = dict(reading.until_offset)
    for partition, offset in since.from_offset:
        if offset > until.get(partition, offset):
            raise click.UsageError("--from-offset is beyond --until-offset")


_Answer = tuple[list["Row"], list[str], int, str]
"""Rows, their columns, how much is unchanged, and the counts in words."""


# ----------------------------------------------------------------------------------------------- offsets


def _offsets(comparison: Comparison, retention: int | None, why: bool) -> _Answer:
    from offsets_log.investigate import diff as d

    _say_not_compared(comparison, d.ANSWER)
    rows: list[Row] = []
    unchanged = unknown = of_retention = 0
    for part in comparison.parts:
        before, after = part.before.state, part.after.state
        changes, same = d.changes_between(before, after)
        unchanged += same
        removals = _removals(comparison, part, {change.key for change in changes if change.is_removal}, retention)
        unknown += sum(not removal.is_known for removal in removals.values())
        of_retention += sum(removal.is_of_retention for removal in removals.values())
        for change in changes:
            removal = removals.get(change.key)
            row = d.diff_row(change, removal, before, after)
            rows.append(row | d.why_columns(change, removal, after) if why else row)
    rows.sort(key=itemgetter("group", "topic", "partition"))
    if unknown:
        comparison.session.account.say(
            f"the log does not show whether {unknown} of the deleted offsets expired; "
            + ("--retention with the broker's own would tell" if of_retention else "--why says more")
        )
    names = [column.name for column in (*d.DIFF_COLUMNS, *(d.WHY_COLUMNS if why else ()))]
    counts = Counter(row["change"] for row in rows)
    words = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
    return rows, names, unchanged, f"{words or 'no change'}; {counted(unchanged, 'offset')} unchanged"


def _removals(
    comparison: Comparison, part: ComparedPartition, gone: set[GroupTopicPartition], retention: int | None
) -> dict[GroupTopicPartition, Removal]:
    from offsets_log.investigate.removal import of_damaged_log, removals
    from offsets_log.replay.expiry import ERAS

    if not gone:
        return {}
    session = comparison.session
    if (end_offset := part.after.end_offset) is not None:
        session = session.bounded(((None, end_offset),))
    else:
        session = session.bounded(session.inputs.scope.until_offset, session.inputs.scope.until_time)

    def read(selection: Selection, wants: Wants) -> Iterator[LogEvent]:
        if len(part.after.logs) > 1:  # one of them may remove a group that is in the next
            selection = replace(selection, key=None)
        for log in part.after.logs:
            yield from session.engine.selected(log, selection, wants, part.start or 0)

    era, release = ERAS[comparison.rules.name], session.inputs.scope.kafka
    found = removals(read, part.before.state, part.after.state, part.start, gone, era, retention, release)
    return found if all(map(comparison.session.account.has_read_all_of, part.after.logs)) else of_damaged_log(found)


# ------------------------------------------------------------------------------------ groups and members


def _groups(comparison: Comparison, table: str, given: dict[bytes, str]) -> _Answer:
    from offsets_log.investigate import diff as d
    from offsets_log.replay.topic_names import TopicNames

    learned = [held.state.topic_names for part in comparison.parts for held in (part.after, part.before)]
    names = TopicNames(given, comparison.topic_ids, *learned)
    before, after = (
        [row for part in comparison.parts for row in _group_rows(comparison, part, held(part).state, names)]
        for held in (attrgetter("before"), attrgetter("after"))
    )
    compare, columns, facts = {
        "groups": (d.group_changes, d.GROUPS_DIFF_COLUMNS, d.GROUP_FACTS),
        "members": (d.member_changes, d.MEMBERS_DIFF_COLUMNS, d.MEMBER_FACTS),
    }[table]
    _say_not_compared(comparison, facts)
    rows, unchanged = compare(before, after, comparison.missing_columns)
    return rows, list(columns), unchanged, f"{len(rows)} {table} changed, {unchanged} unchanged"


def _group_rows(
    comparison: Comparison, part: ComparedPartition, state: CoordinatorState, names: TopicNames
) -> Iterator[Row]:
    """Return rows of one copy's groups; a copy without offsets cannot show groups that only have offsets."""
    from offsets_log.rows.groups import group_row

    for group in state.groups.values():
        if group.has_record or "committed_offset" not in comparison.missing_columns:
            yield group_row(group, state.profile, names, part.offsets_partition, state.missing_columns)


def _say_not_compared(comparison: Comparison, facts: Iterable[str]) -> None:
    if missing_columns := sorted(comparison.missing_columns.intersection(facts)):
        comparison.session.account.say(f"not compared, because the inputs do not tell it: {', '.join(missing_columns)}")
