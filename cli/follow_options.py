"""``--follow`` of `history`, `groups`, `compact` and `rebalances`, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from cli.options import Duration, Output, ReadOptions, gather


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """What `follow_options` say.

    Attributes:
        until_idle: ms without anything new that end it; None to go on until a signal.
        alert: rules, each with its duration in ms, 0 of one that takes none.
    """

    follow: bool
    until_idle: int | None
    alert: tuple[tuple[str, int], ...]

    @property
    def rules(self) -> dict[str, int]:
        """Rule → its duration in ms."""
        return dict(self.alert)


class Rule(click.ParamType):  # type: ignore[type-arg]
    """``rewound`` or ``group-empty:7d`` → (rule, ms).

    Args:
        rules: those of the command, with ``:DURATION`` behind those that take one.
    """

    name = "RULE"

    def __init__(self, rules: tuple[str, ...]) -> None:
        self.rules = rules

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Fails for anything else."""
        name, colon, duration = str(value).partition(":")
        if name + (":DURATION" if colon else "") not in self.rules:
            self.fail(f"{value!r} is no rule of this command: {', '.join(self.rules)}", param, ctx)
        return name, Duration().convert(duration, param, ctx) if colon else 0


def follow_options(*rules: str) -> Callable[..., Any]:
    """The options of a command with these rules, handed over as `follow`."""
    return gather(
        "follow",
        FollowOptions,
        (
            click.option(
                "--follow",
                is_flag=True,
                help="Go on as the logs grow, until a signal: JSON Lines of what changes, within a second.",
            ),
            click.option(
                "--until-idle",
                type=Duration(),
                help="With --follow: end when nothing new has come for so long, such as 10s.",
            ),
            click.option(
                "--alert",
                type=Rule(rules),
                multiple=True,
                help="With --follow: print an alert, and end with exit status 4, if this comes true: "
                f"{', '.join(rules)}; repeatable.",
            ),
        ),
    )


def is_followed(
    reading: ReadOptions, output: Output, follow: FollowOptions, refused: Mapping[str, object] | None = None
) -> bool:
    """Whether the logs are followed; refuses what that does not go with.

    Args:
        refused: options of the command that are of the logs' end, and whether each is given.
    """
    if not follow.follow:
        if follow.until_idle is not None or follow.alert:
            raise click.UsageError("--until-idle and --alert are of --follow")
        return False
    given: dict[str, object] = {
        "--until-offset": reading.until_offset,
        "--until-time": reading.until_time is not None,
        "--engine spark": reading.engine == "spark",
        "--input-format": reading.input_format,
        "--as-partition": reading.as_partition is not None,
        "--to": output.to,
        f"-o {output.output}": output.output not in (None, "jsonl"),
        **(refused or {}),
    }
    for option, is_given in given.items():
        if is_given:
            raise click.UsageError(
                f"{option} does not go with --follow, which writes JSON Lines of what changes to standard output"
            )
    return True
