"""``offsets-log watch``: offsets, groups, history or rebalances, as the logs grow."""

from __future__ import annotations

from copy import copy

import click

from offsets_log_cli.follow_options import FOLLOW_NAMES, excluded_by
from offsets_log_cli.help_page import BETWEEN, Command, write_examples

WATCHED = {
    "offsets": (
        "Print the latest committed offsets, and then each that changes, until a signal.\n\n"
        "An offset is gone if its committed_offset is null. The rows are those of `offsets`, as JSON Lines.",
        "offsets-log watch offsets /var/lib/kafka/data --until-idle 2s · "
        "offsets-log watch offsets /var/lib/kafka/data -g 'billing-*' --alert lag:100000 --until-idle 2s",
    ),
    "groups": (
        "Print all groups, and then each that changes, until a signal. On a terminal the table stays and is kept "
        "current.\n\n"
        "A group is gone if its state is null. The rows are those of `groups`, as JSON Lines.",
        "offsets-log watch groups /var/lib/kafka/data --alert load-fails --until-idle 2s",
    ),
    "history": (
        "Print every commit of a group as it comes, until a signal.\n\n"
        "Rows come in the order of the logs; the end of an open transaction is a row of its own. The rows are those of "
        "`history`, as JSON Lines.",
        "offsets-log watch history /var/lib/kafka/data -g billing --alert rewound --until-idle 2s",
    ),
    "rebalances": (
        "Print the generations of groups as they come, until a signal.\n\n"
        "A generation comes again when more is known about it: its duration, that it is part of a storm. The rows are "
        "those of `rebalances`, as JSON Lines.",
        "offsets-log watch rebalances /var/lib/kafka/data --alert rebalance-storm --until-idle 2s",
    ),
}
"""Command → what is printed of it, and examples."""


def watched(command: click.Command, name: str) -> click.Command:
    """Return a command that follows: with its options for that, and without those that are of the logs' end."""
    help_, examples = WATCHED[name]
    hides = excluded_by(command) | {"output", "to", "follow"}
    params = [copy(param) for param in command.params]
    for param in params:
        if isinstance(param, click.Option) and param.name in FOLLOW_NAMES:
            param.hidden = False
        if param.name == "follow":
            param.default = True
    title = "Examples" if BETWEEN in examples else "Example"
    return Command(
        name, params=params, callback=command.callback, help=help_, epilog=f"{title}: {examples}", hides=hides
    )


class Watch(click.Group):
    """The commands that can follow, following."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.epilog or "", formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(WATCHED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command; None if none of this name can follow."""
        assert ctx.parent is not None
        commands = ctx.parent.command
        assert isinstance(commands, click.Group)
        found = commands.get_command(ctx.parent, cmd_name) if cmd_name in WATCHED else None
        return None if found is None else watched(found, cmd_name)


@click.command("watch", cls=Watch, epilog=f"Examples: {BETWEEN.join(examples for _, examples in WATCHED.values())}")
def command() -> None:
    """Follow logs as they grow: print what there is, and then what changes, within a second, until a signal.

    --alert RULE prints an alert if the rule comes true, and the exit status is 4 when the run ends. --metrics-port
    serves metrics for Prometheus. offsets-log watch offsets --help has all of it.
    """
