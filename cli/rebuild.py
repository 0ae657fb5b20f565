"""``offsets-log rebuild``: the coordinator's memory after loading."""

from __future__ import annotations

import click

from cli.options import AS_BROKER, PROFILE, SHUTDOWN, TOPIC_IDS, Output, ReadOptions, output_option, reading_options
from offsets_log.words import counted

TABLES = ("groups", "members", "offsets", "pending")


@click.command(
    "rebuild",
    epilog="Examples: offsets-log rebuild /var/lib/kafka/data -g billing · "
    "offsets-log rebuild backup.tar.gz --table members -o csv",
)
@reading_options
@PROFILE
@TOPIC_IDS
@AS_BROKER
@SHUTDOWN
@click.option("--table", type=click.Choice(TABLES), help="Rows of one kind instead of the whole document.")
@click.option("--expand", is_flag=True, help="Also show subscriptions and assignments of classic members decoded.")
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str,
    topic_ids: str | None,
    as_broker: bool,
    shutdown: str | None,
    table: str | None,
    expand: bool,
) -> None:
    """What a coordinator holds after loading: groups, members, committed and pending offsets.

    One JSON document, or with --table rows. Where a broker would not start, cut something off, or end its load early,
    `loads` says so, at which record and by which rule, and what can be read is answered all the same; with --as-broker
    that what this broker answers.
    """
    from cli.brokers import Brokers
    from cli.inputs import read_topic_ids
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.coordinator_document import MEMORY_COLUMNS, Memory
    from offsets_log.replay.profile import PROFILES
    from offsets_log.rows.tables import to_json

    with open_session(reading, output) as session:
        memory = Memory(PROFILES[profile])
        for part in Brokers(session, memory.profile, as_broker, shutdown).load():
            memory.add(*part)
        memory.name_topics(read_topic_ids(topic_ids), session.inputs.topic_ids)
        document = memory.document(session.account.damages, expand=expand)
        format_name = chosen_format(output)
        if table is None and format_name in ("table", "csv"):
            table = "groups"
        with destination(output, session.inputs.files) as stream:
            if table is not None:
                write_rows(stream, memory.rows(document, table), MEMORY_COLUMNS[table], format_name)
            else:
                stream.write(to_json(document, indent=1 if format_name == "json" else None).encode() + b"\n")
        for words in memory.warnings():
            session.account.say(words)
        session.account.finish(
            f"{counted(len(document['groups']), 'group')}, {counted(len(document['offsets']), 'offset')}, "
            f"{len(document['pending'])} pending" + f", {session.inputs.partitions_read}; profile {profile}"
        )
