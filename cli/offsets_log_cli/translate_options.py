"""The options of `translate`, and which of them exclude each other."""

from __future__ import annotations

import click

from offsets_log.actions.translate_asked import TranslateAsked
from offsets_log_cli.command_config import COMMAND_CONFIG, Servers
from offsets_log_cli.options import gather

translate_options = gather(
    "asked",
    TranslateAsked,
    (
        click.option(
            "--target",
            metavar="COPY",
            multiple=True,
            type=click.Path(),
            help="A copy of the other cluster: data directories with the logs of its topics, or the directories of "
            "their partitions; repeatable.",
        ),
        click.option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            type=Servers(),
            help="Brokers of the other cluster, with commas between them, instead of a copy: records are found by "
            "their times; nothing there is changed.",
        ),
        COMMAND_CONFIG,
        click.option(
            "--map",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Pairs of offsets: a CSV with topic, partition, source_offset, target_offset, or offset-mapping.json "
            "of kafka-backup.",
        ),
        click.option(
            "--offset-header",
            metavar="NAME[:le|be|text]",
            help="Header of the target's records that has their offset in the source; by default "
            "x-original-offset. Its form: 4 or 8 bytes (le, be), or digits (text); by default what it looks "
            "like.",
        ),
        click.option(
            "--policy",
            metavar="NAME",
            default="identity",
            show_default=True,
            help="What topics are called in the target: identity, or default:ALIAS for MirrorMaker 2's ALIAS.topic.",
        ),
        click.option(
            "--rename",
            metavar="RULE",
            multiple=True,
            help="What a topic is called in the target instead: OLD=NEW or s/PATTERN/NEW/; the first rule that "
            "matches counts; repeatable. No two topics may get the same name.",
        ),
        click.option("--rename-group", metavar="RULE", multiple=True, help="The same for groups; repeatable."),
        click.option(
            "--leader-epochs",
            type=click.Choice(("drop", "target")),
            default="drop",
            show_default=True,
            help="Which leader epochs the plan gets: none, or those of the target's own log.",
        ),
        click.option(
            "--allow-skip",
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
