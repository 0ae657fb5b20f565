"""``offsets-log groups``: kinds and states, when they last did something, and which can go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cli.follow_options import FollowOptions, follow_options, is_followed
from cli.lag import LAG
from cli.options import (
    A_TIME,
    HARDLY_MS,
    PARTITIONS,
    PROFILE,
    Duration,
    Output,
    ReadOptions,
    Time,
    output_option,
    reading_options,
)
from offsets_log.session.decide import Open, say_of_hanging
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.words import UNITS_MS, counted, given_time, shown_duration, shown_time

if TYPE_CHECKING:
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

OLD_MS = UNITS_MS["d"]
"""A copy that ends longer ago than this makes groups look stale that are not."""


@click.command(
    "groups",
    epilog="Examples: offsets-log groups /var/lib/kafka/data -g 'billing-*' · "
    "offsets-log groups backup.tar.gz --stale 30d --bootstrap-server broker:9092",
)
@reading_options
@PROFILE
@PARTITIONS
@click.option(
    "--now",
    type=Time(),
    help=f"Until when ages are counted: {A_TIME}; by default now.",
)
@click.option(
    "--stale",
    type=Duration(HARDLY_MS, needs_unit=True),
    help="Only groups that are Empty, have no open transaction and have written nothing for this long, such as 30d, "
    "with the command line that deletes them.",
)
@LAG
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    default="localhost:9092",
    help="Brokers to name in the command lines of --stale.",
)
@follow_options("beyond-end", "group-empty:DURATION", "lag:RECORDS", "load-fails", "transaction-open:DURATION")
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    now: int | None,
    stale: int | None,
    lag: bool | None,
    bootstrap_server: str,
    follow: FollowOptions,
) -> None:
    """List all groups: kind and state, members, number of offsets, age of the last commit, last activity.

    -t chooses which offsets are counted, not which groups are listed. Activity is any record with a value that the
    group wrote, a commit or its own metadata; tombstones do not count. All groups that can be read are listed; if the
    coordinator of --profile would not load a partition, and so list none of its groups, standard error says so, and
    `check` tells more.

    --stale lists what can be deleted: groups that are Empty in the log, have no open transaction, which a delete would
    cancel, and have written nothing for that long. A table is followed by the command lines that delete them, as few as
    possible; other formats have a command line for each group in the column `command`, quoted for bash.

    --follow keeps the table current on a terminal; elsewhere it prints the groups and then each group that changes; a
    group is gone if its state is null.
    """
    _check_usage(reading, stale)
    if is_followed(
        reading,
        Output(output=None, to=output.to) if output.output == "table" else output,
        follow,
        {"--stale": stale is not None, "--now": now is not None, "--lag": lag},
    ):
        from cli.follow_runs import follow_groups

        follow_groups(reading, output, follow, profile)
        return
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.data_directory.lag import GROUP_LAG_COLUMNS, with_lags
    from offsets_log.investigate import groups as g
    from offsets_log.session.homes import Places
    from offsets_log.session.rules import Rules

    now_ms = int(time.time() * 1000) if now is None else now
    with open_session(reading, output, needs=set() if stale is None else g.NEEDED_FOR_DELETION) as session:
        rules = Rules(session, profile)
        rows: list[Row] = []
        opened: Open = []
        logs = lag_logs(session, lag)
        places = Places(session, rules.profile, "row")
        for log, state, last_ms in places.passing(session.engine.load_active(rules.profile)):
            session.account.note_load(log, state.failure)
            opened.append((log, (*state.pending, *state.hidden_pending)))
            rows += with_lags(logs, state, g.groups_rows(state, log.offsets_partition, last_ms, now_ms))
        rows = _with_share_offsets(session, places.settled(rows), logs)
        rows.sort(key=g.groups_row_order)
        newest_ms = max((row["last_activity_timestamp_ms"] or 0 for row in rows), default=0)
        count, found = counted(len(rows), "group"), _fitting(rows, reading)
        if stale is not None:
            all_rows = rows
            old = [row for row in all_rows if g.is_stale(row, now_ms - stale)]
            rows = [row for row in old if g.can_be_deleted(row)]
            silent = f"wrote nothing for {shown_duration(stale)}"
            if now is None:
                _say_how_old(session, now_ms)
            count = f"{len(rows)} of {count} {silent} and can be deleted at {shown_time(now_ms)}"
            if len(old) > len(rows):
                kept = counted(len(old) - len(rows), "group is as old but has", "groups are as old but have")
                session.account.say(
                    f"{kept} members or open transactions in the log: a broker does not delete a group that has "
                    "members, and a delete would cancel its open transactions"
                )
            if timeless := sum(row["last_activity_timestamp_ms"] is None for row in all_rows):
                session.account.say(f"when {counted(timeless, 'group')} last wrote is not known: not listed")
            if session.account.corrupt or session.account.unsupported:
                session.account.say(
                    "what could not be read may be newer than what is listed: look at it before you delete"
                )
        names = [column.name for column in (*g.GROUPS_COLUMNS, *(GROUP_LAG_COLUMNS if logs is not None else ()))]
        with destination(output, session.inputs.files) as stream:
            format_name = chosen_format(output)
            if stale is None:
                write_rows(stream, rows, names, format_name)
            elif format_name == "table":
                write_rows(stream, rows, names, format_name)
                stream.writelines(line.encode() + b"\n" for line in g.deletion_commands(rows, bootstrap_server))
            else:
                rows = [row | {"command": g.deletion_command([row], bootstrap_server)} for row in rows]
                write_rows(stream, rows, [*names, "command"], format_name)
        newest = f"; the newest activity is of {shown_time(newest_ms)}" if newest_ms else ""
        say_of_lag(session, logs)
        say_of_hanging(session, opened)
        _say_of_later(session, rows, now_ms)
        session.account.tell_loads(rules.name, {row["offsets_partition"] for row in rows})
        session.account.finish(f"{count}, {session.inputs.partitions_read}{newest}{rules.in_words()}", found=found)


def _say_how_old(session: Session, now_ms: int) -> None:
    """Say how much of each age is the copy's own, where that is more than `OLD_MS`."""
    newest_ms = session.inputs.newest_ms
    if newest_ms is not None and now_ms - newest_ms > OLD_MS:
        age = f"{(now_ms - newest_ms) // OLD_MS}d"
        at = given_time(newest_ms)
        session.account.say(f"the copy ends {age} ago, and ages count until now: --now {at} counts from there")


def _say_of_later(session: Session, rows: list[Row], now_ms: int) -> None:
    """Say that commits are later than the time from which their ages count."""
    if later := sum((row.get("commit_age_ms") or 0) < 0 for row in rows):
        has = "the last commit of 1 group is" if later == 1 else f"the last commits of {later} groups are"
        session.account.say(
            f"{has} later than {shown_time(now_ms)}, from which ages count: their age is below zero; the clock of "
            "the broker or of this machine is wrong, or --now is before the copy's end"
        )


def _check_usage(reading: ReadOptions, stale: int | None) -> None:
    if stale is not None and reading.topic:
        raise click.UsageError("--stale is about whole groups, which -t does not choose: leave out -t")


def _fitting(rows: list[Row], reading: ReadOptions) -> int:
    """Return how many groups or, where topics are chosen, offsets the filters leave."""
    return sum((row["offsets"] or 0) + (row["pending"] or 0) for row in rows) if reading.topic else len(rows)


def _with_share_offsets(session: Session, rows: list[Row], logs: CopiedLogs | None) -> list[Row]:
    """Return rows with the offsets of share groups, which the offsets topic does not have."""
    from offsets_log.data_directory.share_offsets import group_share_offsets
    from offsets_log.replay.group import SHARE
    from offsets_log.session.share_offsets import share_offsets_of

    if not any(row["type"] == SHARE for row in rows):
        return rows
    found = share_offsets_of(session, logs)
    told = {} if found is None else group_share_offsets(found.rows(), with_lag=logs is not None)
    return [row | told.get(row["group"], {}) if row["type"] == SHARE else row for row in rows]
