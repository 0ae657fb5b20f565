"""``--follow`` of `history`, `groups`, `compact` and `rebalances`, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import click

from offsets_log.actions.follow_asked import FollowAsked
from offsets_log_cli.help_page import ALERTS, option
from offsets_log_cli.options import HARDLY_MS, Duration, Output, gather


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
METRICS_HELP = (
    "Serve metrics for Prometheus at this port. 0 is any that is free; without HOST it is open to this machine only. "
    "Needs offsets-log[metrics]."
)
METRICS_PORT = option("--metrics-port", under=ALERTS, type=ListenAddress(), help=METRICS_HELP)
FOLLOW_NAMES = frozenset({"until_idle", "alert", "metrics_port"})
OF_THE_END = frozenset({"until_offset", "until_time", "input_format", "as_partition"})
"""Parameters of reading that do not go with records as they come."""


class Follow(click.Option):
    """``--follow``, the older form of `watch`.

    Args:
        excludes: the command's own parameters that are of the logs' end.
    """

    def __init__(self, names: Sequence[str], *, excludes: Collection[str], **how: Any) -> None:
        super().__init__(names, is_flag=True, hidden=True, **how)
        self.excludes = frozenset(excludes)


def follow_options(*rules: str, excludes: Collection[str] = ()) -> Callable[..., Any]:
    """Return a decorator that adds the options of a command with these rules, handed over as `follow`.

    Only `watch` shows them.

    Args:
        excludes: the command's own parameters that are of the logs' end.
    """
    return gather(
        "follow",
        FollowAsked,
        (
            click.option("--follow", cls=Follow, excludes=excludes),
            option(
                "--until-idle",
                under=ALERTS,
                hidden=True,
                type=Duration(HARDLY_MS, needs_unit=True),
                help="End when nothing new has come for this long. Such as 10s.",
            ),
            option(
                "--alert",
                under=ALERTS,
                hidden=True,
                type=Rule(rules),
                multiple=True,
                help=f"{', '.join(rules)}. Print an alert if this comes true, and exit with status 4 at the end; "
                "repeatable.",
            ),
            option("--metrics-port", under=ALERTS, hidden=True, type=ListenAddress(), help=METRICS_HELP),
        ),
    )


def excluded_by(command: click.Command) -> frozenset[str]:
    """Return the parameters of a command that do not go with following; none where it cannot follow."""
    follow = next((param for param in command.params if isinstance(param, Follow)), None)
    return frozenset() if follow is None else OF_THE_END | follow.excludes


def is_followed(output: Output, follow: FollowAsked) -> bool:
    """Return whether the logs are followed.

    Raises:
        UsageError: something is given that does not go with that.
    """
    if not follow.follow:
        if follow.until_idle is not None or follow.alert or follow.metrics_port is not None:
            raise click.UsageError("--until-idle, --alert and --metrics-port are of --follow, or of offsets-log watch")
        return False
    ctx = click.get_current_context()
    excluded = excluded_by(ctx.command)
    given = [param for param in ctx.command.params if param.name in excluded and _is_given(param, ctx)]
    why = "goes on with records as they come"
    refused = [f"{max(param.opts, key=len)}" for param in given]
    if output.to is not None or output.output not in (None, "jsonl"):
        why = "writes JSON Lines of what changes to standard output"
        refused = ["--to" if output.to is not None else f"-o {output.output}"]
    if output.columns:
        refused = ["--columns"]
    if refused:
        raise click.UsageError(f"{refused[0]} does not go with --follow, which {why}")
    return True


def _is_given(param: click.Parameter, ctx: click.Context) -> bool:
    value = ctx.params[str(param.name)]
    return not (value is None or value is False or value == () or value == param.get_default(ctx))
