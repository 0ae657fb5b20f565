"""``offsets-log state``: the coordinator's memory after loading."""

from __future__ import annotations

from dataclasses import dataclass

import click

from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.decide import DECIDE, check_usage
from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.lag import LagOptions, lag_options
from offsets_log_cli.options import (
    FORMATS,
    PARTITIONS,
    TOPIC_IDS,
    Output,
    ReadOptions,
    broker_options,
    gather,
    output_option,
    reading_options,
    release_options,
)

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
    "state",
    cls=Command,
    epilog="Examples: offsets-log state /var/lib/kafka/data -g billing · "
    "offsets-log state backup.tar.gz --table members -o csv",
)
@reading_options
@release_options
@PARTITIONS
@TOPIC_IDS
@broker_options
@gather(
    "shown",
    RebuildOptions,
    (
        DECIDE,
        option(
            "--table",
            under=SHOW,
            type=click.Choice(TABLES),
            metavar="TABLE",
            help="groups, members, offsets or pending. Rows of one kind, instead of the whole document.",
        ),
        option(
            "--expand",
            under=SHOW,
            is_flag=True,
            help="Decode what classic members subscribe to. And their assignments.",
        ),
    ),
)
@lag_options
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    broker: BrokerOptions,
    shown: RebuildOptions,
    lag: LagOptions,
) -> None:
    """Rebuild what a coordinator holds after loading: groups, members, committed and pending offsets. `rebuild` is the
    same command.

    One JSON document, or rows with --table. If a broker would not start, would cut something off, or would fail to
    load, `loads` says so, with the record and the rule. The answer still has everything that can be read; with
    --as-broker it is what that broker would answer.
    """
    from offsets_log.questions.state import State, StateAsked
    from offsets_log.rows.groups import MEMBER_KIND_COLUMNS
    from offsets_log.rows.tables import to_json
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.output import chosen_format, destination
    from offsets_log_cli.session import open_session

    check_usage(reading, shown.decide, as_broker=broker.as_broker)
    asked = StateAsked(
        profile=profile,
        expand=shown.expand,
        decide=shown.decide,
        topic_ids=topic_ids,
        lag=lag.lag,
        now_ms=lag.now_ms,
        broker=broker,
    )
    with open_session(reading, output) as session:
        format_name = chosen_format(output)
        if shown.table is not None or output.columns or format_name not in ("json", "jsonl"):
            question = State(session, asked, shown.table or TABLES[0])
            write_answer(session, output, question, {column.name for column in MEMBER_KIND_COLUMNS})
            return
        question = State(session, asked)
        document = question.document
        with destination(output, session.inputs.files) as stream:
            stream.write(to_json(document, indent=1 if format_name == "json" else None).encode() + b"\n")
        question.tell()
