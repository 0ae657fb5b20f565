"""``offsets-log diff``: what changed between two copies, or between two moments of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from offsets_log.questions.since import Since
from offsets_log.session.decide import DecideOptions
from offsets_log_cli.decide import check_usage, decide_options
from offsets_log_cli.help_page import CHOOSE, RULES, SHOW, Command, option
from offsets_log_cli.options import (
    FORMATS,
    HARDLY_MS,
    PARTITIONS,
    TOPIC_IDS,
    Duration,
    Output,
    ReadOptions,
    Time,
    UntilOffset,
    gather,
    output_option,
    reading_options,
    release_options,
)

if TYPE_CHECKING:
    from offsets_log.questions.compared import Comparison


@dataclass(frozen=True, slots=True)
class RemovalOptions:
    """Options about deleted offsets."""

    retention: int | None
    why: bool


@click.command(
    "diff",
    cls=Command,
    epilog="Examples: offsets-log diff before.tar.gz /var/lib/kafka/data · "
    "offsets-log diff /var/lib/kafka/data --from-time 2026-11-21T14:00:00Z --until-time 2026-11-21T14:10:00Z · "
    "offsets-log diff /var/lib/kafka/data --from-offset 3:1200 -p 3 --table members",
)
@reading_options
@release_options
@PARTITIONS
@TOPIC_IDS
@gather(
    "since",
    Since,
    (
        option(
            "--from-time",
            under=CHOOSE,
            type=Time(),
            help="Compare with the state at that time. The forms are those of --until-time.",
        ),
        option(
            "--from-offset",
            under=CHOOSE,
            type=UntilOffset(),
            multiple=True,
            help="Compare with the state before record N. In offsets partition P, else in every one; repeatable.",
        ),
    ),
)
@option(
    "--table",
    under=SHOW,
    type=click.Choice(["offsets", "groups", "members"]),
    metavar="TABLE",
    default="offsets",
    show_default=True,
    help="offsets, groups or members.",
)
@gather(
    "asked",
    RemovalOptions,
    (
        option(
            "--retention",
            under=RULES,
            type=Duration(HARDLY_MS),
            help="The broker's offsets.retention.minutes, as 7d. It tells expired offsets from deleted ones.",
        ),
        option(
            "--why",
            under=SHOW,
            is_flag=True,
            help="Say why an offset is called deleted or expired. The columns have the group's state and the "
            "tombstone too.",
        ),
    ),
)
@decide_options
@output_option(*FORMATS)
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
    from offsets_log.questions.differences import DiffAsked, Differences
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.output import chosen_format

    _check_usage(reading, since)
    check_usage(reading, decide.decide)
    why = asked.why or chosen_format(output) == "table"
    question = DiffAsked(table=table, retention_ms=asked.retention, why=why, topic_ids=topic_ids)
    with _compared(reading, output, profile, since, table, decide) as comparison:
        write_answer(comparison.session, output, Differences(comparison, question))


@contextmanager
def _compared(
    reading: ReadOptions, output: Output, profile: str | None, since: Since, table: str, decide: DecideOptions
) -> Iterator[Comparison]:
    """Open what is compared."""
    from offsets_log.questions.compared import copies_of, moments_of
    from offsets_log_cli.session import open_session

    needs = since.needs(table)
    if since.is_given:
        with open_session(reading, output, needs=needs) as session:
            yield moments_of(session, profile, since, decide)
        return
    with (
        open_session(replace(reading, paths=reading.paths[:1], quarantine=None), needs=needs) as earlier,
        open_session(replace(reading, paths=reading.paths[1:]), output, needs=needs) as session,
    ):
        yield copies_of(earlier, session, profile, decide)


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
