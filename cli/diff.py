"""``offsets-log diff``: what changed between two copies, or between two moments of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import click

from cli import decide as deciding
from cli.decide import DecideOptions, decide_options
from cli.options import (
    HARDLY_MS,
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
    whose_rules,
)
from offsets_log.disk.stores import without_secrets
from offsets_log.words import counted

if TYPE_CHECKING:
    from cli.session import Session
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.events import LogEvent, Wants
    from offsets_log.investigate.copies import ComparedPartition, Held, Loaded
    from offsets_log.investigate.removal import Removal
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.replay.partial import GroupTopicPartition
    from offsets_log.replay.profile import Profile
    from offsets_log.replay.topic_names import TopicNames
    from offsets_log.rows.tables import Row

NEEDS = {
    "offsets": {"committed_offset"},
    "groups": {"state", "members"},
    "members": {"members"},
}
"""--table → columns without which nothing can be compared."""


@dataclass(frozen=True, kw_only=True)
class Since:
    """The earlier of two moments of one log."""

    from_time: int | None
    from_offset: tuple[tuple[int | None, int], ...]

    @property
    def is_given(self) -> bool:
        """Whether there is one; else two copies are compared."""
        return self.from_time is not None or bool(self.from_offset)


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
    profile: str,
    topic_ids: str | None,
    since: Since,
    table: str,
    asked: RemovalOptions,
    decide: DecideOptions,
) -> None:
    """Show what changed between two copies A and B, or with --from-time or --from-offset in one.

    One row for each group, topic and partition whose served offset, leader epoch or metadata changed: new, advanced,
    rewound, deleted, expired, or metadata (the offset is the same). Standard error says how many did not change.

    A tombstone does not say who wrote it. An offset is called expired if, when its tombstone was written, it was due by
    its own expire timestamp or, with --retention, by the rules of expiry. Without --retention an offset that may have
    expired is called deleted; standard error says how many these are, and --why says so for each.

    --decide ends transactions at the end of each copy; with two moments of one copy, only at the later one.
    """
    from cli.inputs import read_topic_ids
    from cli.output import chosen_format, destination, write_rows

    _check_usage(reading, since)
    deciding.check_usage(reading, decide.decide)
    with _both(reading, output, profile, since, table, decide) as comparison:
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
            f"{words}, {counted(len(comparison.parts), 'partition')}; {whose_rules(profile)}",
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


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The two states to compare, and the run of the later one, which reports."""

    session: Session
    profile: str
    topic_ids: dict[bytes, str]
    parts: list[ComparedPartition] = field(default_factory=list)

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that one state or another does not tell."""
        return frozenset().union(
            *(held.state.missing_columns for part in self.parts for held in (part.before, part.after))
        )


@contextmanager
def _both(
    reading: ReadOptions,
    output: Output,
    profile: str,
    since: Since,
    table: str,
    decide: DecideOptions,
) -> Iterator[_Comparison]:
    """Yield the states before and after of partitions that both copies have."""
    from cli.session import open_session
    from offsets_log.investigate.copies import ComparedPartition, Held
    from offsets_log.replay.profile import PROFILES

    rules = PROFILES[profile]
    needs = set(NEEDS[table])
    if since.is_given:
        needs |= {"timestamp_ms"} if since.from_time is not None else set()
        needs |= {"record_offset"} if since.from_offset else set()
        with open_session(reading, output, needs=needs) as session:
            earlier, inputs = session.bounded(since.from_offset, since.from_time), session.inputs
            for words in inputs.iter_idle_offsets("--from-offset", since.from_offset):
                session.account.say(words)
            if since.from_time is not None:
                told = set(inputs.iter_idle_bounds())
                for words in (*earlier.inputs.iter_unread("--from-offset"), *inputs.iter_beyond(since.from_time)):
                    if words not in told:
                        session.account.say(words)
            before = [state for _, state, _ in earlier.engine.load_all(rules)]
            after = _loaded(session, rules, decide)
            comparison = _Comparison(session, profile, session.inputs.topic_ids)
            comparison.parts.extend(
                ComparedPartition(log.offsets_partition, Held((log,), old), Held((log,), new))
                for old, (log, new) in zip(before, after, strict=True)
            )
            yield comparison
        return
    with open_session(replace(reading, paths=reading.paths[:1], quarantine=None), needs=needs) as session_a:
        copy_a = _loaded(session_a, rules, decide)
        with open_session(replace(reading, paths=reading.paths[1:]), output, needs=needs) as session:
            session.account.is_wrong = bool(session_a.account.exit_status)
            copy_b = _loaded(session, rules, decide)
            comparison = _Comparison(session, profile, session_a.inputs.topic_ids | session.inputs.topic_ids)
            comparison.parts.extend(_pairs(session, (*map(without_secrets, reading.paths),), copy_a, copy_b))
            for note in session_a.inputs.clusters.notes:
                session.account.say(note)
            yield comparison


def _loaded(session: Session, profile: Profile, decide: DecideOptions) -> list[Loaded]:
    deciding.decide_if_asked(session, decide)
    loaded = [(log, state) for log, state, _ in session.engine.load_all(profile)]
    deciding.say_of_decided(session)
    return loaded


def _pairs(
    session: Session, paths: tuple[str, ...], copy_a: list[Loaded], copy_b: list[Loaded]
) -> Iterator[ComparedPartition]:
    """Return the offsets partitions that both copies have; report those that only one has."""
    from offsets_log.investigate.copies import ComparedPartition, by_partition, partitions_of

    count = partitions_of(copy_a, copy_b, told=session.inputs.offsets_partition_count)
    if count is not None:
        session.account.say(
            "a copy does not tell its offsets partitions: its groups are taken to be where their names belong among "
            f"{counted(count.number, 'partition')}" + (", which is a guess" if count.is_guess else "")
        )
    held_a, held_b = by_partition(copy_a, count), by_partition(copy_b, count)
    for partition, held in held_b.items():
        if partition not in held_a:
            _say_left_out(session, partition, paths[1], held)
            continue
        part = ComparedPartition(partition, held_a.pop(partition), held)
        _say_if_reversed(session, part)
        yield part
    for partition, held in held_a.items():
        _say_left_out(session, partition, paths[0], held)


def _say_left_out(session: Session, partition: int | None, path: str, held: Held) -> None:
    from offsets_log.rows.tables import partition_name

    session.account.is_wrong = True
    count = sum(1 for _ in held.state.iter_served())
    session.account.say(
        f"offsets partition {partition_name(partition)} is only in {path}: its "
        f"{counted(count, 'offset is', 'offsets are')} not compared"
    )


def _say_if_reversed(session: Session, part: ComparedPartition) -> None:
    from offsets_log.rows.tables import partition_name

    before, after = part.before.end_offset, part.after.end_offset
    is_dump = any("position" in log.missing_columns for held in (part.before, part.after) for log in held.logs)
    if before is not None and after is not None and after < before and not is_dump:  # a paste may end anywhere
        session.account.say(
            f"offsets partition {partition_name(part.offsets_partition)} ends at record offset {before} in A and "
            f"already at {after} in B: if both are of one log, B is the older copy, and the changes shown happened the "
            "other way round"
        )


# ----------------------------------------------------------------------------------------------- offsets


def _offsets(comparison: _Comparison, retention: int | None, why: bool) -> _Answer:
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
    comparison: _Comparison, part: ComparedPartition, gone: set[GroupTopicPartition], retention: int | None
) -> dict[GroupTopicPartition, Removal]:
    from offsets_log.investigate.removal import of_damaged_log, removals
    from offsets_log.replay.expiry import ERAS

    if not gone:
        return {}
    session = comparison.session
    if (end_offset := part.after.end_offset) is not None:
        session = session.bounded(((None, end_offset),))
    else:
        session = session.bounded(session.inputs.reading.until_offset, session.inputs.reading.until_time)

    def read(selection: Selection, wants: Wants) -> Iterator[LogEvent]:
        if len(part.after.logs) > 1:  # one of them may remove a group that is in the next
            selection = replace(selection, key=None)
        for log in part.after.logs:
            yield from session.engine.selected(log, selection, wants, part.start or 0)

    era, release = ERAS[comparison.profile], session.inputs.reading.kafka
    found = removals(read, part.before.state, part.after.state, part.start, gone, era, retention, release)
    return found if all(map(comparison.session.account.has_read_all_of, part.after.logs)) else of_damaged_log(found)


# ------------------------------------------------------------------------------------ groups and members


def _groups(comparison: _Comparison, table: str, given: dict[bytes, str]) -> _Answer:
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
    comparison: _Comparison, part: ComparedPartition, state: CoordinatorState, names: TopicNames
) -> Iterator[Row]:
    """Return rows of one copy's groups; a copy without offsets cannot show groups that only have offsets."""
    from offsets_log.rows.groups import group_row

    for group in state.groups.values():
        if group.has_record or "committed_offset" not in comparison.missing_columns:
            yield group_row(group, state.profile, names, part.offsets_partition, state.missing_columns)


def _say_not_compared(comparison: _Comparison, facts: Iterable[str]) -> None:
    if missing_columns := sorted(comparison.missing_columns.intersection(facts)):
        comparison.session.account.say(f"not compared, because the inputs do not tell it: {', '.join(missing_columns)}")
