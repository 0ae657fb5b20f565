"""``offsets-log info``: one page about what is there."""

from __future__ import annotations

import click

from cli.decide import TIMED_OUT_BY
from cli.options import PROFILE, Output, ReadOptions, output_option, reading_options
from offsets_log.session.decide import outcomes_of
from offsets_log.words import counted


@click.command("info", epilog="Example: offsets-log info /var/lib/kafka/data")
@reading_options
@PROFILE
@click.option(
    "--card",
    is_flag=True,
    help="Show only which cluster and broker the data directories are from and how the broker was stopped; as JSON "
    "Lines one object for each.",
)
@TIMED_OUT_BY
@output_option("table", "jsonl", "json", "csv")
def command(reading: ReadOptions, output: Output, profile: str | None, now: int | None, card: bool) -> None:
    """Describe a log on one page: partitions and segments, spans of offsets and time, gaps, damage, records and groups.

    The page begins with a card for each data directory that has a meta.properties: cluster, broker and directory;
    whether the broker was stopped cleanly; the cluster's feature levels; times of the newest records. JSON Lines have
    one object for each offsets partition, or with --card one for each card.

    -g and -t choose which groups and offsets are counted; records and everything else are those of whole logs.
    """
    if card:
        _write_cards(reading, output)
        return
    from cli.info_card import cards_of, report_lacking, write_cards
    from cli.info_page import info_row, write_page
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.data_directory.card import given_in_words
    from offsets_log.rows.survey import INFO_COLUMNS
    from offsets_log.session.rules import Rules

    with open_session(reading, output) as session:
        outcomes = outcomes_of(session, now)
        report_lacking(session, but_transactions=outcomes is not None)
        surveyed = list(session.engine.survey_all(Rules(session, profile).profile))
        rows = [info_row(log, found, held, outcomes) for log, found, held in surveyed]
        with destination(output, session.inputs.files) as stream:
            format_name = chosen_format(output)
            if format_name == "table":
                if any(identity.meta or identity.damage for identity in session.inputs.clusters.identities):
                    write_cards(stream, cards_of(session), given_in_words(session.inputs.clusters.identities))
                hidden_groups = [held.hidden_groups for _, _, held in surveyed]
                write_page(stream, rows, session.inputs.absent, hidden_groups)
            else:
                write_rows(stream, rows, [column.name for column in INFO_COLUMNS] if rows else [], format_name)
        counted_in = "records"
        if reading.group or reading.topic:
            counted_in = "offsets" if reading.topic else "groups"
            session.account.say(
                "only groups and offsets are chosen by -g and -t: records and all else are of whole logs"
            )
        session.account.finish(
            f"{session.inputs.partitions_read}, {counted(sum(row['records'] for row in rows), 'record')}",
            found=sum(row[counted_in] for row in rows),
        )


def _write_cards(reading: ReadOptions, output: Output) -> None:
    from cli.info_card import cards_of, report_lacking, write_cards
    from cli.output import chosen_format, destination, write_rows
    from cli.session import open_session
    from offsets_log.data_directory.card import CARD_COLUMNS, given_in_words

    with open_session(reading, output) as session:
        given = given_in_words(session.inputs.clusters.identities)
        rows = cards_of(session)
        report_lacking(session)
        format_name = chosen_format(output)
        with destination(output, session.inputs.files) as stream:
            if format_name == "table":
                write_cards(stream, rows, given)
            else:
                write_rows(stream, rows, [column.name for column in CARD_COLUMNS], format_name)
        session.account.finish(given)
