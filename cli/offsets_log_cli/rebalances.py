"""``offsets-log rebalances``: who joined, who left, what was assigned, and whether it was right."""

from __future__ import annotations

import re
from typing import Any

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log.words import UNITS_MS
from offsets_log_cli.follow_options import follow_options, is_followed
from offsets_log_cli.help_page import SHOW, Command, option
from offsets_log_cli.options import FORMATS, TOPIC_IDS, Output, ReadOptions, output_option, reading_options


class Storm(click.ParamType):  # type: ignore[type-arg]
    """``5/5m`` → (5, ms)."""

    name = "N/DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the value; fail for anything else."""
        match = re.fullmatch(r"(\d{1,9})/(\d{1,12})(ms|s|m|h|d|w)", str(value).strip())
        if match is None or int(match[1]) < 2:
            self.fail(f"{value!r} is not a number of generations in a time, such as 5/5m", param, ctx)
        return int(match[1]), int(match[2]) * UNITS_MS[match[3]]


@click.command(
    "rebalances",
    cls=Command,
    hides=("topic",),
    epilog="Examples: offsets-log rebalances /var/lib/kafka/data -g billing · "
    "offsets-log rebalances backup.tar.gz --verify --topic-partitions invoices=12",
)
@reading_options
@TOPIC_IDS
@option(
    "--storm",
    under=SHOW,
    type=Storm(),
    default="5/5m",
    show_default=True,
    help="So many generations in that time are a storm. A member that returns twice within it flaps.",
)
@option(
    "--verify",
    "verifies",
    under=SHOW,
    is_flag=True,
    help="Compute each assignment again, and compare. The column tells whether it equals the recorded one.",
)
@option(
    "--topic-partitions",
    under=SHOW,
    metavar="TOPIC=N,...",
    multiple=True,
    help="Sizes of topics, for --verify. By default what assignments in the log show. Repeatable.",
)
@follow_options("rebalance-storm", excludes=("verifies", "topic_partitions"))
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    topic_ids: str | None,
    storm: tuple[int, int],
    verifies: bool,
    topic_partitions: tuple[str, ...],
    follow: FollowAsked,
) -> None:
    """Show the timeline of every group: its generations, members that join and leave, partitions that move.

    One row for each generation, or for each group epoch of the newer protocols. A generation that members joined but
    never synced is not in a log: its number is in "skipped" of the next one. An assignment that differs under --verify
    is no damage: the exit status is 0. Offset commits are not read.

    `offsets-log watch rebalances` prints generations as they come.
    """
    if reading.topic and not reading.quiet:
        from offsets_log_cli.terminal import say

        say("-t has no effect here: a generation is of the whole group")
    if is_followed(output, follow):
        from offsets_log_cli.follow_runs import follow_rebalances

        follow_rebalances(reading, output, follow, storm, topic_ids)
        return
    from offsets_log.questions.rebalances import Rebalances, RebalancesAsked
    from offsets_log.rebalance.named import parsed_topics
    from offsets_log_cli.answers import write_answer, write_many
    from offsets_log_cli.output import chosen_format, destination, write_rows
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import as_usage

    with as_usage():
        counts = parsed_topics(topic_partitions)
    asked = RebalancesAsked(topic_ids=topic_ids, storm=storm, verify=verifies, topic_partitions=counts)
    with open_session(reading, output) as session:
        question = Rebalances(session, asked)
        match chosen_format(output):
            case "table" if not output.columns:
                rows = [*question.short_rows()]
                with destination(output, session.inputs.files) as stream:
                    write_rows(stream, rows, question.short_names, output, needed=question.needed)
            case "parquet":
                from offsets_log_cli.parquet import write_table_of

                write_table_of(session, output, [*question.rows()], question.flat_columns)
            case "arrow":
                write_answer(session, output, question)
                return
            case _:
                names = [column.name for column in question.columns]
                write_many(session, output, question, [*names, *question.raw_names])
        question.tell()
