"""``rescue --target``: which cluster is to get the offsets, as a copy or live."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from offsets_log.actions.rescue_asked import TargetAsked
from offsets_log_cli.command_config import COMMAND_CONFIG, Servers
from offsets_log_cli.help_page import CLUSTER, option


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as `target`."""

    @option(
        "--target",
        under=CLUSTER,
        metavar="PATH",
        multiple=True,
        type=click.Path(),
        help="Compare with a copy of the cluster to restore to. A data directory, or what pull wrote; repeatable.",
    )
    @option(
        "--bootstrap-server",
        under=CLUSTER,
        metavar="HOST:PORT",
        type=Servers(),
        help="Compare with this live cluster instead. Nothing there is changed.",
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
