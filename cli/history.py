"""``offsets-log history``: every commit of a group in order, and what was answered after each."""

from __future__ import annotations

import click

from cli.options import PROFILE, TOPIC_IDS, Output, Reading, output_option, reading_options

TABLE_COLUMNS = (
    "group", "topic", "partition", "event", "record_offset", "timestamp_ms", "committed_offset", "metadata",
    "transaction", "effective_offset", "change", "client_id", "host",
)  # fmt: skip
"""What fits a terminal; the other formats have everything."""


@click.command(
    "history",
    epilog="Examples: offsets-log history /var/lib/kafka/data -g billing -t orders --topic-partition 3 · "
    "offsets-log history backup.tar.gz -g billing --rewinds",
)
@reading_options
@PROFILE
@TOPIC_IDS
@click.option(
    "--topic-partition",
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of the consumed topics; repeatable.",
)
@click.option("--partition", metavar="N", type=click.IntRange(min=0), multiple=True, hidden=True)
@click.option("--rewinds", is_flag=True, help="Only where the answer went back.")
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: Reading,
    output: Output,
    profile: str,
    topic_ids: str | None,
    topic_partition: tuple[int, ...],
    partition: tuple[int, ...],
    rewinds: bool,
) -> None:
    """Every commit of a group in order, what was answered after each, and who held the partition then.

    Needs -g. One row a commit, tombstone and end of a transaction: `effective_offset` is what OffsetFetch answers
    behind it, and `change` what that did to the answer: new, advanced, rewound, same (the same offset again), deleted;
    null where the answer is still the one before, as behind a commit of an open transaction. `group_gone` and
    `group_back` are rows where the group was removed and its offsets, which were not, are answered to nobody.

    A commit does not say who sent it: the member named is the one that was assigned the partition in the group
    metadata in force. Superseded commits that the cleaner removed are not there.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session, read_topic_ids
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.investigate.history import HISTORY_COLUMNS, History, history_order, history_row
    from offsets_log.investigate.holders import TopicIds
    from offsets_log.replay.profile import PROFILES
    from offsets_log.tables import partition_name

    if not reading.group:
        raise click.UsageError("give the group: -g GROUP")
    asked = {*topic_partition, *partition}
    with open_session(reading, output, needs={"committed_offset"}) as session:
        selection = Selection(session.shows_group, with_names=True, with_markers=True)
        histories = []
        for log in session.logs:
            found = History(
                PROFILES[profile],
                session.shows_group,
                lambda key: session.shows_topic(key[1]) and (not asked or key[2] in asked),
            )
            found.read(session.selected(log, selection), on_damage=session.on_damage)
            histories.append((log, found))
            if found.entries and log.cleaned_until:
                session.say(
                    f"offsets partition {partition_name(log.offsets_partition)}: below record offset "
                    f"{log.cleaned_until} superseded commits were compacted away"
                )
        ids = TopicIds(
            read_topic_ids(topic_ids), session.topic_ids, *(found.state.topic_names for _, found in histories)
        )
        entries = sorted(
            ((log, entry) for log, found in histories for entry in found.entries),
            key=lambda found: history_order(found[1]),
        )
        back = sum(entry.change == "rewound" for _, entry in entries)
        rows = (
            history_row(entry, log.offsets_partition, ids, log.untold)
            for log, entry in entries
            if not rewinds or entry.change == "rewound"
        )
        with destination(output, session.files) as stream:
            format_name = chosen_format(output)
            names = TABLE_COLUMNS if format_name == "table" else [column.name for column in HISTORY_COLUMNS]
            write_rows(stream, rows, names, format_name)
        commits = sum(entry.value is not None for _, entry in entries)
        session.finish(
            f"{commits} commits, {back} rewinds, {len({entry.key for _, entry in entries})} topic partitions of "
            f"{len({entry.key[0] for _, entry in entries})} groups; profile {profile}"
        )
