"""``offsets-log vote``: which protocol the members of a classic group select."""

from __future__ import annotations

import click

from offsets_log_cli.help_page import CHOOSE, Command, option
from offsets_log_cli.options import Output, output_option, release_options


@click.command(
    "vote",
    cls=Command,
    epilog="Examples: offsets-log vote --members m1:range+sticky,m2:sticky+range · "
    """echo '{"members":[{"member_id":"m1","protocols":["range","sticky"]}]}' | offsets-log vote - --release 3.9""",
)
@click.argument("source", metavar="[-]", required=False)
@option(
    "--members",
    under=CHOOSE,
    metavar="MEMBER:P+P,...",
    multiple=True,
    help="Members in the order in which they joined, each with its protocols in order of preference; repeatable.",
)
@release_options
@output_option("table", "jsonl", "json", "csv")
def command(output: Output, source: str | None, members: tuple[str, ...], profile: str | None) -> None:
    """Show which protocol is selected: the candidate with most votes; ties are decided by the order of the
    coordinator's hash tables.

    With - it reads JSON Lines {"members":[{"member_id","protocols"}]} and writes each with "candidates" and "selected".
    """
    from offsets_log.rebalance.cases import vote_answer
    from offsets_log.rebalance.named import parsed_members
    from offsets_log.rebalance.rows import VOTE_COLUMNS
    from offsets_log.rebalance.vote import ORDERS, vote_rows
    from offsets_log.replay.releases import profile_of
    from offsets_log_cli.json_lines import answer_lines
    from offsets_log_cli.output import destination, write_rows
    from offsets_log_cli.terminal import as_usage

    if source not in (None, "-") or (source is None) == (not members):
        raise click.UsageError("give either --members, or - for questions on standard input")
    if source is not None:
        answer_lines(lambda case: vote_answer(case, ORDERS[profile_of(profile)]), output)
        return
    with as_usage():
        protocols = parsed_members(members, "range+sticky")
    rows = vote_rows(protocols, ORDERS[profile_of(profile)])
    with destination(output) as stream:
        write_rows(stream, rows, [column.name for column in VOTE_COLUMNS], output)
