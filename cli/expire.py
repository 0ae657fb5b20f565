"""``offsets-log expire``: what a coordinator's expiry would remove at a given time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cli.options import (
    A_TIME,
    ERA_NAMES,
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
from offsets_log.session.scope import BrokerOptions

if TYPE_CHECKING:
    from offsets_log.replay.expiry import Era, GroupExpiry
    from offsets_log.rows.tables import Row

RETENTION = "offsets.retention.minutes"
"""The setting cannot be changed while a broker runs, so that the metadata does not have it
(``DynamicBrokerConfig.java``)."""


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
@output_option("table", "jsonl", "json", "csv")
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
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.replay.expiry import NEEDED_COLUMNS, cycle_of
    from offsets_log.rows.expiry import EXPIRY_COLUMNS
    from offsets_log.session.brokers import Brokers
    from offsets_log.session.homes import Places
    from offsets_log.session.rules import Rules
    from offsets_log.words import shown_duration, shown_time

    now_ms = int(time.time() * 1000) if asked.now is None else asked.now
    if asked.era is not None:
        _era(profile, asked.era)
    with open_session(reading, output, needs=NEEDED_COLUMNS) as session:
        whose = Rules(session, profile if asked.era is None else _era(profile, asked.era).profile)
        rules = _era(whose.name, asked.era)
        rules_with = rules.retention(asked.retention)
        if asked.retention is None and any(identity.meta for identity in session.inputs.clusters.identities):
            session.account.say(
                f"the retention is this era's default: the broker's own {RETENTION} stands in server.properties, which "
                "is in no data directory, nor in the cluster's metadata; give it with --retention"
            )
        rows: list[Row] = []
        brokers = Brokers(session, whose.profile, broker)
        # All topics, for a group goes with the last of all its offsets.
        places = Places(session, brokers.profile, "row")
        for part in places.passing(brokers.load(all_topics=True)):
            brokers.say(part)
            log, state, *_ = part
            for expiry in cycle_of(state, now_ms, rules_with):
                rows += _rows(expiry, log.offsets_partition)
        rows = rows if broker.as_broker else places.settled(rows)
        if reading.topic:
            rows = [row for row in rows if row["kind"] == "offset" and session.inputs.shows_topic(row["topic"])]
        counts, found = ", ".join(_count(rows, kind) for kind in ("offset", "group")), len(rows)
        if expired_only:
            rows = [row for row in rows if row["expired"]]
        rows.sort(key=_order)
        names = [column.name for column in EXPIRY_COLUMNS]
        names += sorted({name for row in rows for name in row} - set(names))
        with destination(output, session.inputs.files) as stream:
            write_rows(stream, rows, names, chosen_format(output))
        session.account.finish(
            f"{counts} expired at {shown_time(now_ms)} with a retention of {shown_duration(rules_with.retention_ms)}, "
            f"{session.inputs.partitions_read}{whose.in_words()}, era {rules.name}",
            found=found,
        )


def _era(profile: str | None, name: str | None) -> Era:
    """Return the era; it decides the profile too, unless another one was asked for."""
    from offsets_log.replay.expiry import ERAS

    era = ERAS[name or profile or ""]
    if profile is not None and era.profile != profile:
        raise click.UsageError(f"--era {era.name} is of --profile {era.profile}, not {profile}: leave --profile out")
    return era


def _rows(expiry: GroupExpiry, offsets_partition: int | None) -> list[Row]:
    from offsets_log.rows.expiry import EXPIRY_COLUMNS
    from offsets_log.rows.tables import with_raw_texts

    rows: list[Row] = []
    for offset in expiry.offsets:
        value = offset.value
        row = {
            "kind": "offset",
            "group": value.group,
            "topic": value.topic,
            "partition": value.partition,
            "committed_offset": value.committed_offset,
            "commit_timestamp_ms": value.commit_timestamp_ms,
            "expired": offset.expired,
            "expires_at_ms": offset.expires_at_ms,
            "rule": offset.rule,
            "reason": offset.reason,
            "offsets_partition": offsets_partition,
        }
        rows.append(with_raw_texts(row, ("group", "topic")))
    row = {
        "kind": "group",
        "group": expiry.group.group_id,
        "expired": expiry.removed,
        "expires_at_ms": expiry.removed_at_ms,
        "rule": expiry.rule,
        "reason": expiry.reason,
        "offsets_partition": offsets_partition,
    }
    rows.append(with_raw_texts({column.name: row.get(column.name) for column in EXPIRY_COLUMNS}, ("group",)))
    return rows


def _count(rows: list[Row], kind: str) -> str:
    expired = [row["expired"] for row in rows if row["kind"] == kind]
    return f"{sum(expired)} of {len(expired)} {kind}s"


def _order(row: Row) -> tuple[str, bool, str, int, int]:
    """Return a sort key as in `compact`, with each group after its offsets."""
    is_group = row["kind"] == "group"
    return row["group"], is_group, row["topic"] or "", row["partition"] or 0, row["offsets_partition"] or 0
