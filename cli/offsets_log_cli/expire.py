"""``offsets-log expire``: what a coordinator's expiry would remove at a given time."""

from __future__ import annotations

from dataclasses import dataclass

import click

from offsets_log.release_names import AskedRelease
from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.help_page import CHOOSE, RULES, SHOW, Command, option
from offsets_log_cli.options import (
    A_TIME,
    ERA_NAMES,
    FORMATS,
    HARDLY_MS,
    PARTITIONS,
    PROFILE_NAMES,
    RELEASE,
    Duration,
    Output,
    ReadOptions,
    Time,
    broker_options,
    gather,
    output_option,
    reading_options,
)


@dataclass(frozen=True, kw_only=True)
class ExpiryOptions:
    """Options that decide when offsets expire, and by whose rules."""

    release: AskedRelease | None
    profile: str | None
    era: str | None
    now: int | None
    retention: int | None


@click.command(
    "expire",
    cls=Command,
    epilog="Examples: offsets-log expire /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log expire backup.tar.gz --now 2026-12-01T00:00:00Z --retention 1d --expired-only",
)
@reading_options
@PARTITIONS
@gather(
    "asked",
    ExpiryOptions,
    (
        RELEASE,
        click.option("--profile", type=click.Choice(PROFILE_NAMES), hidden=True),
        click.option("--era", type=click.Choice(ERA_NAMES), hidden=True),
        option(
            "--now",
            under=CHOOSE,
            type=Time(),
            help=f"The time of the expiry. By default now; {A_TIME}.",
        ),
        option(
            "--retention",
            under=RULES,
            type=Duration(HARDLY_MS),
            help="The broker's offsets.retention.minutes, as 7d. By default that of the release.",
        ),
    ),
)
@option("--expired-only", under=SHOW, is_flag=True, help="Only what would be removed at --now.")
@broker_options
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    asked: ExpiryOptions,
    expired_only: bool,
    broker: BrokerOptions,
) -> None:
    """Show when expiry would remove each offset and group, and by which rule; `expired` tells what is due.

    One row for each offset and each group; a group comes after its offsets. expires_at_ms is the first moment at which
    an expiry check removes it, or null if none does while the group stays as it is in the log. With -t only offsets are
    shown.
    """
    from offsets_log.questions.expiry import Expiry, ExpiryAsked
    from offsets_log.replay.expiry import NEEDED_COLUMNS
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import as_usage

    if asked.release is not None and (asked.profile or asked.era):
        raise click.UsageError("--release excludes --profile and --era: all say whose rules")
    question = ExpiryAsked(
        profile=asked.profile,
        era=asked.era if asked.release is None else asked.release.era,
        now_ms=asked.now,
        retention_ms=asked.retention,
        expired_only=expired_only,
        broker=broker,
    )
    with as_usage():
        question.check()
    with open_session(reading, output, needs=NEEDED_COLUMNS) as session:
        write_answer(session, output, Expiry(session, question))
