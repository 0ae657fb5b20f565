"""``offsets-log rebuild``: the coordinator's memory after loading."""

from __future__ import annotations

from dataclasses import dataclass

import click

from cli.decide import DECIDE, check_usage
from cli.lag import LagOptions, lag_options
from cli.options import (
    PARTITIONS,
    PROFILE,
    TOPIC_IDS,
    Output,
    ReadOptions,
    broker_options,
    gather,
    output_option,
    reading_options,
)
from offsets_log.session.decide import DecideOptions, begin_to_decide, say_of_decided
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.scope import BrokerOptions
from offsets_log.words import counted

TABLES = ("groups", "members", "offsets", "pending")


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """Options that choose which parts of the memory are shown.

    Attributes:
        decide: whether transactions of which the outcome is certain are ended.
        table: one of `TABLES`; None for the whole document.
    """

    decide: bool
    table: str | None
    expand: bool


@click.command(
    "rebuild",
    epilog="Examples: offsets-log rebuild /var/lib/kafka/data -g billing · "
    "offsets-log rebuild backup.tar.gz --table members -o csv",
)
@reading_options
@PROFILE
@PARTITIONS
@TOPIC_IDS
@broker_options
@gather(
    "shown",
    RebuildOptions,
    (
        DECIDE,
        click.option("--table", type=click.Choice(TABLES), help="Rows of one kind instead of the whole document."),
        click.option("--expand", is_flag=True, help="Decode subscriptions and assignments of classic members too."),
    ),
)
@lag_options
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    broker: BrokerOptions,
    shown: RebuildOptions,
    lag: LagOptions,
) -> None:
    """Rebuild what a coordinator holds after loading: groups, members, committed and pending offsets.

    One JSON document, or rows with --table. If a broker would not start, would cut something off, or would fail to
    load, `loads` says so, with the record and the rule. The answer still has everything that can be read; with
    --as-broker it is what that broker would answer.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.coordinator_document import Memory
    from offsets_log.data_directory.lag import LAG_COLUMNS, with_lag
    from offsets_log.rows.tables import to_json
    from offsets_log.session.brokers import Brokers
    from offsets_log.session.homes import Places
    from offsets_log.session.inputs import read_topic_ids
    from offsets_log.session.rules import Rules
    from offsets_log.session.share_offsets import share_offsets_of

    table = shown.table
    check_usage(reading, shown.decide, as_broker=broker.as_broker)
    with open_session(reading, output) as session:
        logs = lag_logs(session, lag.lag)
        outcomes = begin_to_decide(session, DecideOptions(shown.decide, lag.now_ms))
        rules = Rules(session, profile)
        memory = Memory(rules.profile, outcomes, share_offsets_of(session, logs))
        places = Places(session, memory.profile, "row")
        for part in places.passing(Brokers(session, memory.profile, broker).load()):
            memory.add(*part)
            session.account.is_wrong |= any(outcome.at_start is not None for outcome in part[3].values())
        memory.name_topics(read_topic_ids(topic_ids), session.inputs.topic_ids)
        document = memory.document(session.account.damages, expand=shown.expand)
        if not broker.as_broker:
            document |= places.settled_document(document)
        more: tuple[str, ...] = ()
        if logs is not None:
            document["offsets"] = list(with_lag(logs, document["offsets"], lag.now_ms))
            more = tuple(column.name for column in LAG_COLUMNS)
        format_name = chosen_format(output)
        if table is None and format_name in ("table", "csv"):
            table = "groups"
        with destination(output, session.inputs.files) as stream:
            if table is not None:
                columns = (*memory.columns(table), *(more if table == "offsets" else ()))
                write_rows(stream, memory.rows(document, table), columns, format_name)
            else:
                stream.write(to_json(document, indent=1 if format_name == "json" else None).encode() + b"\n")
        for words in memory.warnings():
            session.account.say(words)
        say_of_lag(session, logs)
        say_of_decided(session)
        session.account.finish(
            f"{counted(len(document['groups']), 'group')}, {counted(len(document['offsets']), 'offset')}, "
            f"{len(document['pending'])} pending, {session.inputs.partitions_read}{rules.in_words()}",
            found=len(document["offsets"])
            + len(document["pending"])
            + (0 if reading.topic else len(document["groups"])),
        )
