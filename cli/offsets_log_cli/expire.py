"""``offsets-log expire``: what a coordinator's expiry would remove at a given time."""

from __future__ import annotations

from dataclasses import dataclass

import click

from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.options import (
    A_TIME,
    ERA_NAMES,
    FORMATS,
    HARDLY_MS,
    PARTITIONS,
    PROFILE,
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

    era: str | None
    now: int | None
    retention: int | None


@click.command(
    "expire",
    epilog="Examples: offsets-log expire /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log expire backup.tar.gz --now 2026-12-01T00:00:00Z --retention 1d --expired-only",
)
@reading_options
@PROFILE
@PARTITIONS
@gather(
    "asked",
    ExpiryOptions,
    (
        click.option(
            "--era",
            type=click.Choice(ERA_NAMES),
            help="Expiry rules of which releases. Each name stands for the releases from that one up to the next "
            "in the list, with these exceptions: 2.4 is 2.4 to 2.8.1, 3.0.0 and 3.1.0; classic is 2.8.2 to "
            "3.9 except those two; modern-3.7 and 3.8-java are the Java coordinator of 3.7, and of 3.8 to "
            "4.0.0; modern is 4.4 and later. By default the rules of the profile.",
        ),
        click.option(
            "--now",
            type=Time(),
            help=f"The time of the expiry: {A_TIME}; by default now.",
        ),
        click.option(
            "--retention",
            type=Duration(HARDLY_MS),
            help="The broker's offsets.retention.minutes, as 7d or 10080m.  [default: the era's]",
        ),
    ),
)
@click.option("--expired-only", is_flag=True, help="Show only what would be removed at --now.")
@broker_options
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
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

    question = ExpiryAsked(
        profile=profile,
        era=asked.era,
        now_ms=asked.now,
        retention_ms=asked.retention,
        expired_only=expired_only,
        broker=broker,
    )
    with as_usage():
        question.check()
    with open_session(reading, output, needs=NEEDED_COLUMNS) as session:
        write_answer(session, output, Expiry(session, question))
