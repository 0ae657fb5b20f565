"""``offsets-log help``: all options of a command, or those of reading files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from offsets_log_cli.help_page import Command, whole_help
from offsets_log_cli.options import PARTITIONS, SHUTDOWN, TOPIC_IDS, reading_options

COMPLETION = """\
Completion in bash; for other shells zsh_source or fish_source:
eval "$(_OFFSETS_LOG_COMPLETE=bash_source offsets-log)"
"""


@click.command("reading", cls=Command, options_metavar="")
@reading_options
@PARTITIONS
@TOPIC_IDS
@SHUTDOWN
def reading(**_: Any) -> None:
    """PATH is a broker's data directory, a partition directory (__consumer_offsets-3), a segment file, a glob, an
    archive of these (.tar, .tar.gz, .tar.zst, .zip), a URL of one in a store (s3://…), or - for a pipe. Nothing is
    ever written to it. These are the options of commands that read files; some commands do not have all of them.

    Exit status: 0 all was read; 1 stopped by an error; 2 wrong usage; 3 finished, but something was damaged,
    unsupported or missing, or copies of a partition disagree (standard error says what); 4 an --alert came true.
    """


@click.command(
    "help",
    cls=Command,
    epilog="Examples: offsets-log help reading · offsets-log help clean · offsets-log help watch offsets",
)
@click.argument("names", metavar="[COMMAND...|reading|completion]", nargs=-1)
@click.pass_context
def command(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show all that there is to say of a command, of reading files (reading), or how shells complete (completion)."""
    if names == ("completion",):
        click.echo(COMPLETION, nl=False)
        return
    assert ctx.parent is not None
    found = found_at(names, ctx.parent)
    click.echo(whole_help(found.command, found))


def found_at(names: Sequence[str], top: click.Context) -> click.Context:
    """Return the context in which a command would run, such as that of ``watch offsets``; or a page's.

    Raises:
        UsageError: there is no such command.
    """
    at = top
    for name in names:
        found: click.Command | None = reading
        if (*names,) != ("reading",):
            if not isinstance(at.command, click.Group):
                raise click.UsageError(f"{at.command.name} has no commands of its own, such as {name}")
            _, found, _ = at.command.resolve_command(at, [name])
        assert found is not None
        at = click.Context(found, parent=at, info_name="COMMAND" if found is reading else name)
    return at
