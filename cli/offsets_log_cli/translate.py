"""``offsets-log translate``: committed offsets as files that set them again, right on another cluster."""

from __future__ import annotations

import click

from offsets_log.actions.translate_asked import TranslateAsked
from offsets_log.session.scope import BrokerOptions
from offsets_log_cli.help_page import Command
from offsets_log_cli.options import (
    NEW_DIRECTORY,
    PARTITIONS,
    Output,
    ReadOptions,
    broker_options,
    reading_options,
    release_options,
)
from offsets_log_cli.translate_options import check_usage, translate_options

EXAMPLES = (
    "Examples: offsets-log translate /copies/east --target /copies/west --to plan · "
    "offsets-log translate /copies/east --target /copies/west -g 'billing-*' --policy default:east --to plan · "
    "offsets-log translate /copies/east --bootstrap-server west:9092 --to plan"
)


@click.command("translate", cls=Command, epilog=EXAMPLES)
@reading_options
@release_options
@broker_options
@PARTITIONS
@translate_options
@NEW_DIRECTORY
def command(
    reading: ReadOptions,
    profile: str | None,
    broker: BrokerOptions,
    asked: TranslateAsked,
    to: str,
) -> None:
    """Translate committed offsets for another cluster, where records have other offsets, and write them as files.

    PATH is a copy of the source: __consumer_offsets and the logs of the topics. Each offset is found in the target by
    the records that both sides have (by their times and contents), by headers that say where a record was, or by a map
    of pairs. No record that a group has not read is skipped, as long as a mirror did not both change and reorder
    records: where the place is not certain, the answer moves back. The group then reads some records again;
    `reread_at_most` says how many at most. Offsets that cannot be translated are left out.

    With --bootstrap-server the other cluster is only asked for records by time. The group continues at the target's
    first record whose time is not before that of the oldest record it has not read; if it has read all, at that of the
    last record it has read. It is then not known how many records it reads again. All records from the offset on must
    be in PATH, the topic must have as many partitions there, and its records must have the times of their producers.

    The starts of share groups are translated in the same way, if PATH has __share_group_state.

    DIR gets the files of `offsets-log rescue`, for `offsets-log restore` and other tools. DIR/translation.jsonl has a
    row for each offset: how it was found (exact, by count, at least, by time, or with --allow-skip at most),
    reread_at_most, and skipped, which is 0 without --allow-skip.

    Exit status: 0 all was read and translated; 1 stopped by an error; 2 wrong usage; 3 something was damaged, or an
    offset could not be translated: DIR/left-out.jsonl says which, and why.
    """
    from offsets_log.actions.translate import translate
    from offsets_log.actions.translation import Translation
    from offsets_log.log_format.partition_log import OUTCOMES
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import as_usage

    check_usage(asked)
    with as_usage():
        translation = Translation(asked)
    with open_session(reading, Output(output=None, to=to), needs={"committed_offset", OUTCOMES}) as session:
        translate(session, translation, profile, broker, to)
