"""``rescue --target``: which cluster is to get the offsets, as a copy or live."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from offsets_log.actions.rescue_asked import TargetAsked
from offsets_log_cli.command_config import COMMAND_CONFIG, Servers


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as `target`."""

    @click.option(
        "--target",
        metavar="PATH",
        multiple=True,
        type=click.Path(),
        help="Compare with a copy of the cluster that is to get the offsets: a data directory, or what pull wrote; "
        "repeatable.",
    )
    @click.option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        type=Servers(),
        help="Compare with this live cluster instead; nothing there is changed.",
    )
    @COMMAND_CONFIG
    @wraps(command)
    def with_target(
        *args: Any, target: tuple[str, ...], bootstrap_server: str | None, command_config: str | None, **more: Any
    ) -> None:
        if target and bootstrap_server is not None:
            raise click.UsageError("--target and --bootstrap-server exclude each other: one target is judged")
        if command_config is not None and bootstrap_server is None:
            raise click.UsageError("--command-config is for --bootstrap-server")
        command(*args, target=TargetAsked(target, bootstrap_server, command_config), **more)

    return with_target
