"""``--follow`` of `history`, `groups`, `compact` and `rebalances`, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log_cli.options import HARDLY_MS, Duration, Output, ReadOptions, gather


class Rule(click.ParamType):  # type: ignore[type-arg]
    """``rewound``, ``group-empty:7d`` or ``lag:1000`` → (rule, ms or records).

    Args:
        rules: the command's rules, with ``:DURATION`` or ``:RECORDS`` behind those that take one.
    """

    name = "RULE"

    def __init__(self, rules: tuple[str, ...]) -> None:
        self.rules = rules

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the value; fail for anything else."""
        name, colon, number = str(value).partition(":")
        form = next((rule for rule in self.rules if rule.partition(":")[0] == name), None)
        if form is None or (":" in form) != bool(colon):
            self.fail(f"{value!r} is no rule of this command: {', '.join(self.rules)}", param, ctx)
        if form.endswith(":RECORDS"):
            return name, click.IntRange(min=1)(number, param, ctx)
        return name, Duration(HARDLY_MS, needs_unit=True).convert(number, param, ctx) if colon else 0


class ListenAddress(click.ParamType):  # type: ignore[type-arg]
    """``9404`` or ``0.0.0.0:9404`` → (host, port); without a host only this machine reaches it."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the value; fail for anything else."""
        host, _, port = str(value).rpartition(":")
        return host.strip("[]") or LOOPBACK, click.IntRange(0, 65535)(port, param, ctx)


LOOPBACK = "127.0.0.1"
METRICS_PORT = click.option(
    "--metrics-port",
    type=ListenAddress(),
    help="With --follow: serve metrics for Prometheus at this port, 0 for any that is free; without HOST open to "
    "this machine only. Needs offsets-log[metrics].",
)


def follow_options(*rules: str) -> Callable[..., Any]:
    """Return a decorator that adds the options of a command with these rules, handed over as `follow`."""
    return gather(
        "follow",
        FollowAsked,
        (
            click.option(
                "--follow",
                is_flag=True,
                help="Continue as the logs grow, until a signal, and print what changes as JSON Lines, within a "
                "second.",
            ),
            click.option(
                "--until-idle",
                type=Duration(HARDLY_MS, needs_unit=True),
                help="With --follow: end when nothing new has come for this long, such as 10s.",
            ),
            click.option(
                "--alert",
                type=Rule(rules),
                multiple=True,
                help="With --follow: print an alert if this comes true, and exit with status 4 when the run ends: "
                f"{', '.join(rules)}; repeatable.",
            ),
            METRICS_PORT,
        ),
    )


def is_followed(
    reading: ReadOptions, output: Output, follow: FollowAsked, refused: Mapping[str, object] | None = None
) -> bool:
    """Return whether the logs are followed; refuses what that does not go with.

    Args:
        refused: options of the command that are of the logs' end, and whether each is given.
    """
    if not follow.follow:
        if follow.until_idle is not None or follow.alert or follow.metrics_port is not None:
            raise click.UsageError("--until-idle, --alert and --metrics-port are of --follow")
        return False
    of_output = {"--to": output.to, f"-o {output.output}": output.output not in (None, "jsonl")}
    given: dict[str, object] = {
        "--until-offset": reading.until_offset,
        "--until-time": reading.until_time is not None,
        "--input-format": reading.input_format,
        "--as-partition": reading.as_partition is not None,
        **of_output,
        **(refused or {}),
    }
    for option, is_given in given.items():
        if is_given:
            why = (
                "writes JSON Lines of what changes to standard output"
                if option in of_output
                else ("goes on with records as they come")
            )
            raise click.UsageError(f"{option} does not go with --follow, which {why}")
    return True
