"""The options of `translate`, and which of them exclude each other."""

from __future__ import annotations

import click

from offsets_log.actions.translate_asked import TranslateAsked
from offsets_log_cli.command_config import COMMAND_CONFIG, Servers
from offsets_log_cli.help_page import CHANGE, CLUSTER, RARE, option
from offsets_log_cli.options import gather

translate_options = gather(
    "asked",
    TranslateAsked,
    (
        option(
            "--target",
            under=CLUSTER,
            metavar="COPY",
            multiple=True,
            type=click.Path(),
            help="A copy of the other cluster; repeatable. Data directories with the logs of its topics, or the "
            "directories of their partitions.",
        ),
        option(
            "--bootstrap-server",
            under=CLUSTER,
            metavar="HOST:PORT",
            type=Servers(),
            help="Brokers of the other cluster, instead of a copy. With commas between them. Records are found by "
            "their times; nothing there is changed.",
        ),
        COMMAND_CONFIG,
        option(
            "--map",
            under=CLUSTER,
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Pairs of offsets. A CSV with topic, partition, source_offset, target_offset, or offset-mapping.json "
            "of kafka-backup.",
        ),
        option(
            "--offset-header",
            under=RARE,
            metavar="NAME[:le|be|text]",
            help="Header of the target's records that has their offset in the source; by default "
            "x-original-offset. Its form: 4 or 8 bytes (le, be), or digits (text); by default what it looks "
            "like.",
        ),
        option(
            "--policy",
            under=CHANGE,
            metavar="NAME",
            default="identity",
            help="identity (default), or default:ALIAS. This is what topics are called in the target; "
            "MirrorMaker 2 has the second.",
        ),
        option(
            "--rename",
            under=CHANGE,
            metavar="RULE",
            multiple=True,
            help="OLD=NEW or s/PATTERN/NEW/; repeatable. What a topic is called in the target instead; the "
            "first rule that matches counts. No two topics may get the same name.",
        ),
        option("--rename-group", under=CHANGE, metavar="RULE", multiple=True, help="The same for groups; repeatable."),
        option(
            "--leader-epochs",
            under=RARE,
            type=click.Choice(("drop", "target")),
            metavar="EPOCHS",
            default="drop",
            show_default=True,
            help="drop, or target for those of its own log. The leader epochs that the plan gets.",
        ),
        option(
            "--allow-skip",
            under=RARE,
            is_flag=True,
            help="If it is not certain which record is the first unread one, start at the first that certainly is "
            "unread, instead of the first that may be. `skipped` says how many records are never read at "
            "most. Works only where records, headers or syncs bound the place on both sides, not with "
            "checkpoints, a map or times.",
        ),
    ),
)


def check_usage(asked: TranslateAsked) -> None:
    """Raise a UsageError for options that exclude each other, or that lack another."""
    if asked.target and asked.bootstrap_server is not None:
        raise click.UsageError("--target and --bootstrap-server exclude each other")
    if asked.bootstrap_server is None and asked.command_config is not None:
        raise click.UsageError("--command-config is for --bootstrap-server")
    if asked.bootstrap_server is not None and asked.leader_epochs == "target":
        raise click.UsageError("--leader-epochs target needs a copy of the target")
    if not asked.target and asked.bootstrap_server is None and asked.map is None:
        raise click.UsageError("give --target COPY of the other cluster, --bootstrap-server of it, or --map FILE")
