"""``offsets-log assign``: what would this assignor do?"""

from __future__ import annotations

import click

from offsets_log.kafka_releases import NEWEST
from offsets_log.release_names import AskedRelease
from offsets_log_cli.help_page import CHOOSE, RULES, Command, option
from offsets_log_cli.options import Output, output_option
from offsets_log_cli.release_types import Release

ASSIGNOR_NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")


@click.command(
    "assign",
    cls=Command,
    epilog="Examples: offsets-log assign --assignor range --topics invoices=12 --members m1:invoices,m2:invoices · "
    """echo '{"topics":{"t":3},"members":[{"member_id":"m1","topics":["t"]}]}' | offsets-log assign -""",
)
@click.argument("source", metavar="[-]", required=False)
@option(
    "--assignor",
    under=RULES,
    type=click.Choice(ASSIGNOR_NAMES),
    metavar="NAME",
    default="range",
    show_default=True,
    help="range, roundrobin, sticky or cooperative-sticky.",
)
@option("--topics", under=CHOOSE, metavar="TOPIC=N,...", multiple=True, help="Topics and their partitions; repeatable.")
@option(
    "--members",
    under=CHOOSE,
    metavar="MEMBER:TOPIC+TOPIC,...",
    multiple=True,
    help="Members and their topics; repeatable.",
)
@option(
    "--release",
    under=RULES,
    formerly=("--kafka",),
    type=Release(),
    help=f"Release of the clients, from 2.5 on. By default {NEWEST.name}.",
)
@option(
    "--rounds",
    under=CHOOSE,
    metavar="CHANGE,...",
    multiple=True,
    help="What changes afterwards. -m3: member m3 leaves; +m4:invoices: m4 joins; invoices=24: the topic grows to "
    "24 partitions. Changes separated by commas happen in one rebalance; repeat the option for further "
    "rebalances.",
)
@output_option("table", "jsonl", "json", "csv")
def command(
    output: Output,
    source: str | None,
    assignor: str,
    topics: tuple[str, ...],
    members: tuple[str, ...],
    release: AskedRelease | None,
    rounds: tuple[str, ...],
) -> None:
    """Show which partitions an assignor gives to each member.

    With - it reads JSON Lines {"assignor","topics","members":[{"member_id","topics","owned",...}]} and writes each with
    its "result"; such a question can also give what was owned before, generations, racks and user data.
    """
    from offsets_log.rebalance.assignors.assignor import rules_of
    from offsets_log.rebalance.cases import assignment_answer
    from offsets_log.rebalance.named import parsed_members, parsed_topics, shown_partitions
    from offsets_log.rebalance.played import assigned_rows, played_rows
    from offsets_log.rebalance.rows import ASSIGN_COLUMNS, ROUND_COLUMNS
    from offsets_log_cli.json_lines import answer_lines
    from offsets_log_cli.output import chosen_format, destination, write_rows
    from offsets_log_cli.terminal import as_usage, say_of_release

    rules = rules_of((release or NEWEST).version)
    say_of_release(release)
    if source not in (None, "-") or (source is None) == (not members):
        raise click.UsageError("give either --members and --topics, or - for questions on standard input")
    if source is not None:
        answer_lines(lambda case: assignment_answer(case, assignor, rules), output)
        return
    with as_usage():
        named = parsed_members(members), parsed_topics(topics)
        rows = played_rows(*named, rounds, assignor, rules) if rounds else assigned_rows(*named, assignor, rules)
    if chosen_format(output) == "table":
        rows = [
            {name: shown_partitions(value) if isinstance(value, list) else value for name, value in row.items()}
            for row in rows
        ]
    with destination(output) as stream:
        write_rows(stream, rows, [column.name for column in (ROUND_COLUMNS if rounds else ASSIGN_COLUMNS)], output)
