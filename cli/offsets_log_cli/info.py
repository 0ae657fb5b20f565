"""``offsets-log info``: one page about what is there."""

from __future__ import annotations

import click

from offsets_log_cli.decide import TIMED_OUT_BY
from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.options import FORMATS, Output, ReadOptions, output_option, reading_options, release_options


@click.command("info", cls=Command, epilog="Example: offsets-log info /var/lib/kafka/data")
@reading_options
@release_options
@option(
    "--card",
    under=SHOW,
    is_flag=True,
    help="Only which cluster and broker this is of. And how the broker was stopped; as JSON Lines one object for each "
    "data directory.",
)
@TIMED_OUT_BY
@output_option(*FORMATS)
def command(reading: ReadOptions, output: Output, profile: str | None, now: int | None, card: bool) -> None:
    """Describe a log on one page: partitions and segments, spans of offsets and time, gaps, damage, records and groups.

    The page begins with a card for each data directory that has a meta.properties: cluster, broker and directory;
    whether the broker was stopped cleanly; the cluster's feature levels; times of the newest records. JSON Lines have
    one object for each offsets partition, or with --card one for each card.

    -g and -t choose which groups and offsets are counted; records and everything else are those of whole logs.
    """
    from offsets_log.data_directory.card import given_in_words
    from offsets_log.questions.info import Cards, Info, cards_of
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.info_card import card_lines, short_card_lines
    from offsets_log_cli.info_page import write_lines, write_page, write_summary
    from offsets_log_cli.output import chosen_format, destination, is_brief
    from offsets_log_cli.session import open_session

    is_short = is_brief(reading, output) and not reading.offsets_partition
    with open_session(reading, output) as session:
        session.account.sums_up = is_short
        question = Cards(session) if card else Info(session, profile, now)
        if chosen_format(output) != "table" or output.columns:
            write_answer(session, output, question)
            return
        with destination(output, session.inputs.files) as stream:
            if isinstance(question, Cards):
                write_lines(stream, card_lines(question.rows(), question.given))
            else:
                rows, identities = question.rows(), session.inputs.clusters.identities
                absent, hidden, given = session.inputs.absent, question.hidden_groups, given_in_words(identities)
                if is_short:
                    write_summary(stream, rows, output, absent, hidden, short_card_lines(cards_of(session), given))
                else:
                    if any(identity.meta or identity.damage for identity in identities):
                        write_lines(stream, card_lines(cards_of(session), given))
                    write_page(stream, rows, output, absent, hidden)
        question.tell()
