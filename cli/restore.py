"""``offsets-log restore``: a rescue's plan applied to a live cluster."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from cli.options import Output, output_option


@click.command(
    "restore",
    epilog="Examples: offsets-log restore rescued/plan.json --bootstrap-server localhost:9092 · "
    "offsets-log restore rescued/plan.json --bootstrap-server localhost:9092 -g 'billing-*' --execute",
)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False))
@click.option("--bootstrap-server", metavar="HOST:PORT", required=True, help="Brokers, with commas between them.")
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Properties for the connection (TLS, SASL), as for Kafka's own tools; keys and certificates as PEM.",
)
@click.option("-g", "--group", metavar="GLOB", multiple=True, help="Only these groups; repeatable.")
@click.option("-t", "--topic", metavar="GLOB", multiple=True, help="Only these topics; repeatable.")
@click.option("--execute", is_flag=True, help="Commit; without it only what would change is shown.")
@output_option("table", "jsonl", "json", "csv")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors.")
def command(
    plan: str,
    bootstrap_server: str,
    command_config: str | None,
    group: tuple[str, ...],
    topic: tuple[str, ...],
    execute: bool,
    output: Output,
    quiet: bool,
) -> None:
    """Commit the offsets of PLAN, with metadata and leader epochs, to a cluster; without --execute only show them.

    One row an offset, with what the cluster has now and what changes. A group with members is refused: nobody else may
    commit for it. What was committed is asked for again, and counts as applied only if it comes back the same.

    Exit status 3 if anything was, or would be, refused.
    """
    from cli.output import chosen_format, destination, write_rows
    from cli.session import EXIT_DAMAGED, fail, matcher, say
    from offsets_log.cluster.admin import Cluster
    from offsets_log.errors import OffsetsLogError
    from offsets_log.restore.apply import RESTORE_COLUMNS, restore
    from offsets_log.restore.plan import decode_plan

    try:
        shows_group, shows_topic = matcher(group), matcher(topic)
        rows = [
            row
            for row in decode_plan(Path(plan).read_bytes(), plan)
            if shows_group(row["group"]) and shows_topic(row["topic"])
        ]
        properties = _properties(command_config)
        with destination(output, [plan]) as stream, closing(Cluster(bootstrap_server, properties)) as cluster:
            changes = restore(cluster, rows, execute=execute)
            write_rows(stream, changes, RESTORE_COLUMNS, chosen_format(output))
    except OffsetsLogError as error:
        fail(error)
    refused = sum(row["reason"] is not None for row in changes)
    if not quiet:
        changed = sum(row["change"] != "unchanged" and row["reason"] is None for row in changes)
        say(
            f"{len(changes)} offsets: {changed} {'committed' if execute else 'would be committed'}, "
            f"{len(changes) - changed - refused} as they should be, {refused} refused"
            + ("" if execute else "; nothing was done: --execute commits")
        )
    sys.exit(EXIT_DAMAGED if refused else 0)


def _properties(command_config: str | None) -> dict[str, str]:
    from offsets_log.cluster.properties import parse_properties

    if command_config is None:
        return {}
    return parse_properties(Path(command_config).read_text("utf-8", "replace"), command_config)
