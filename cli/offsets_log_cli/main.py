"""The console script ``offsets-log``. Each command is a module of its own, loaded when it is asked for."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

GROUPS = {
    "Look": {
        "info": "What is on this disk: partitions, dates, damage, gaps",
        "groups": "Every group: state, members, lag, last commit",
        "offsets": "What each group had committed (or: compact)",
        "members": "Who was in each group, with which partitions",
        "transactions": "What is open, since when, and what ends it",
        "records": "Every record, as JSON, Parquet or dump-log text (or: decode)",
        "state": "All a coordinator holds, as one document (or: rebuild)",
        "report": "One HTML page to look at and to send",
    },
    "Investigate": {
        "check": "Would a broker load it; what is lost or doubtful",
        "history": "Every commit of a group; --rewinds: steps back",
        "rebalances": "Generations of groups: who joined, left, got what",
        "diff": "What changed between two copies, or two moments of one",
        "top": "Who writes to the topic, and how much of it is useless",
        "expire": "What expiry would remove, and when",
        "explain": "What a rule or a record type means",
        "sql": "A question of your own, in SQL",
    },
    "Give offsets back": {
        "rescue": "Write them as files for Kafka's and other tools",
        "translate": "The same, for a cluster with other offsets",
        "restore": "Commit them to a cluster; only shows, until --execute",
    },
    "Rewrite the log, into a new directory": {
        "clean": "Compact it as Kafka's log cleaner would; --deep: smallest",
        "repair": "Keep everything that can be read",
    },
    "Live": {
        "watch": "Follow offsets, groups, history or rebalances; alerts",
        "pull": "Copy the topic from a cluster",
        "serve": "Answer Kafka's own tools from a copy",
    },
    "Calculate": {
        "where": "Which partition a group belongs to",
        "assign": "What an assignor gives to each member",
        "vote": "Which protocol a classic group selects",
    },
}
"""Heading → its commands, each with what it is for."""
COMMANDS = {name: said for commands in GROUPS.values() for name, said in commands.items()} | {
    "help": "All options of a command, or of reading files"
}
"""Command → what it is for; a module of its name has it as ``command``."""
ALSO = {"compact": "offsets", "decode": "records", "rebuild": "state"}
"""Other names of commands, for good."""

ON_SPARK = ("--engine", "--master")
"""Options that commands have had: Spark reads logs by programs of its own, and as a data source."""

FOOT = """
First time: offsets-log info DIR && offsets-log groups DIR
More: offsets-log COMMAND --help, or all of it: offsets-log help COMMAND
What PATH can be, exit statuses, options of reading: offsets-log help reading
"""


class LazyGroup(click.Group):
    """Imports a command's module only when the command is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command; None if there is none of this name."""
        name = ALSO.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"offsets_log_cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; of an unknown one the error names those that are near."""
        names = (*COMMANDS, *ALSO)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = ", ".join(map(repr, get_close_matches(args[0], names)))
            ctx.fail(f"No such command {args[0]!r}." + (f" (Did you mean: {near}?)" if near else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands, without loading any, and the group's own options."""
        names = COMMANDS | {name: COMMANDS[first] for name, first in ALSO.items()}
        found = [CompletionItem(name, help=said) for name, said in names.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; one that Ctrl-C ends before its time says so, and has the status that shells give it.

        Raises:
            UsageError: it was to run on Spark.
        """
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name not in ON_SPARK:
                raise
            raise click.UsageError(
                f"{error.option_name} is gone: on Spark run python -m spark_jobs compact, rebuild, replay, clean or "
                'follow, or read spark.read.format("offsets_log")'
            ) from None
        except KeyboardInterrupt:
            click.echo("\ninterrupted: what was asked for is not done", err=True)
            ctx.exit(128 + signal.SIGINT)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands on one screen, by what they are for."""
        formatter.write("Usage: offsets-log COMMAND PATH... [OPTIONS]\n")
        formatter.write("Read Kafka's __consumer_offsets from its files, without a broker.\n\n")
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            formatter.write(f"{heading}\n")
            formatter.write("".join(f"  {name:{width}}  {said}\n" for name, said in commands.items()))
        formatter.write(FOOT)


def show_version(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    """Print the version and those of the libraries that matter in a report of a fault."""
    if not is_asked or context.resilient_parsing:
        return
    from importlib.metadata import version
    from platform import python_version

    from offsets_log.columnar.wire.libraries import closed_doors
    from offsets_log.kafka_releases import SPAN

    engine = ", ".join(f"{name} {version(name)}" for name in ENGINE)
    click.echo(f"offsets-log {version('offsets-log')} (reads Kafka {SPAN})")
    click.echo(f"columnar engine: {engine}; Python {python_version()}")
    for told in closed_doors():
        click.echo(told)
    context.exit()


ENGINE = ("numba", "numpy", "pyarrow")
"""Libraries that read large logs."""


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Read Kafka's __consumer_offsets from its files, without a broker."""


def run() -> None:
    """Run `main` as a process, with the three standard streams made sure of."""
    gc.set_threshold(100_000, 50, 50)  # hundreds of thousands of rows are made, and nearly none of them in a cycle
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy; nothing here multiplies matrices
    was_closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            was_closed.append(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: the closed one, before a file of ours does
    if 0 in was_closed:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if 2 in was_closed:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    if 1 in was_closed:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        if not any(word == "--to" or word.startswith("--to=") for word in sys.argv):
            hint = "" if sys.argv[1:2] == ["serve"] else "; --to FILE writes into a file"
            sys.exit(f"offsets-log: error: standard output is closed{hint}")
    from offsets_log_cli.signals import end_at_interrupts, leave_the_unanswered

    end_at_interrupts()
    try:
        main()
    except OSError as error:
        sys.exit(f"offsets-log: error: {error.strerror or error}")
    finally:
        _flush_quietly()
        leave_the_unanswered(sys.exc_info()[1])
        gc.freeze()  # the interpreter ends without a search for cycles in all that was imported: a tenth of a second


def _flush_quietly() -> None:
    """Flush; a failed write was reported already, and Python would report it again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    run()
