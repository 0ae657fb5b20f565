"""The console script ``offsets-log``. Each command is a module of its own, loaded when it is asked for."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import textwrap
from typing import Any

import click

COMMANDS = {
    "assign": "offsets_log_cli.assign",
    "check": "offsets_log_cli.check",
    "clean": "offsets_log_cli.clean",
    "compact": "offsets_log_cli.compact",
    "decode": "offsets_log_cli.decode",
    "diff": "offsets_log_cli.diff",
    "expire": "offsets_log_cli.expire",
    "explain": "offsets_log_cli.explain",
    "groups": "offsets_log_cli.groups",
    "history": "offsets_log_cli.history",
    "info": "offsets_log_cli.info",
    "pull": "offsets_log_cli.pull",
    "rebalances": "offsets_log_cli.rebalances",
    "rebuild": "offsets_log_cli.rebuild",
    "repair": "offsets_log_cli.repair",
    "report": "offsets_log_cli.report",
    "rescue": "offsets_log_cli.rescue",
    "restore": "offsets_log_cli.restore",
    "serve": "offsets_log_cli.serve",
    "sql": "offsets_log_cli.sql",
    "top": "offsets_log_cli.top",
    "transactions": "offsets_log_cli.transactions",
    "translate": "offsets_log_cli.translate",
    "where": "offsets_log_cli.where",
    "vote": "offsets_log_cli.vote",
}
"""Command → the module that has it as ``command``."""

ON_SPARK = ("--engine", "--master")
"""Options that commands have had: Spark reads logs by programs of its own, and as a data source."""

textwrap.TextWrapper.wordsep_re = textwrap.TextWrapper.wordsep_simple_re
"""Help, which click wraps by this class, is not broken at hyphens: options and commands in it can be copied."""

SENTENCE = 500
"""How long a command's first sentence may be in the list of commands."""


class LazyGroup(click.Group):
    """Imports a command's module only when the command is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        command.epilog = _in_lines(command.epilog or "")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; of an unknown one the error names those that are near."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = ", ".join(map(repr, get_close_matches(args[0], COMMANDS)))
            ctx.fail(f"No such command {args[0]!r}." + (f" (Did you mean: {near}?)" if near else ""))
        return super().resolve_command(ctx, args)

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with its whole first sentence."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=SENTENCE)) for name, command in commands.items() if command]
            )


def _in_lines(epilog: str) -> str:
    """Put each example on a line of its own, so that it can be copied; ``\b`` keeps click from wrapping them."""
    title, _, examples = epilog.partition(": ")
    return "\b\n" + "\n  ".join([f"{title}:", *examples.split(" · ")]) if " · " in examples else epilog


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


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_in_lines(
        "Begin with: offsets-log info /var/lib/kafka/data                  # what is here, what is damaged · "
        "offsets-log check /var/lib/kafka/data                 # would a broker load it · "
        "offsets-log compact /var/lib/kafka/data               # what each group had committed · "
        "offsets-log rescue /var/lib/kafka/data --to rescued   # files that give it back"
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Read Kafka's __consumer_offsets from its files, without a broker.

    PATH is a broker's data directory, a partition directory (__consumer_offsets-3), a segment file, a glob, an
    archive of these (.tar, .tar.gz, .tar.zst, .zip), a URL of one in a store (s3://…), or - for a pipe. Nothing is
    ever written to it.

    Exit status: 0 all was read; 1 stopped by an error; 2 wrong usage; 3 finished, but something was damaged,
    unsupported or missing, or copies of a partition disagree (standard error says what); 4 an --alert of --follow
    came true.

    \b
    Completion in bash; for other shells zsh_source or fish_source:
    eval "$(_OFFSETS_LOG_COMPLETE=bash_source offsets-log)"
    """


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
