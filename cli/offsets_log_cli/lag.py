"""``--lag`` of `compact` and `groups`: whether ends of partitions are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from offsets_log_cli.options import A_TIME, Time


@dataclass(frozen=True, slots=True)
class LagOptions:
    """The values of `lag_options`.

    Attributes:
        lag: None for the default: lag if the copy has the logs for it.
        now_ms: the time to which ``behind_ms`` counts; None for that of the newest record of the logs.
    """

    lag: bool | None = None
    now_ms: int | None = None


WHERE_THERE = "Default: if the copy has the logs of those topics."
LAG = click.option(
    "--lag/--no-lag",
    default=None,
    help=f"Show how far each offset is from its partition's end. {WHERE_THERE}",
)
STRANDED = click.option(
    "--lag/--no-lag",
    default=None,
    help=f"Also report offsets that point to no record. {WHERE_THERE}",
)
NOW = click.option(
    "--now",
    type=Time(),
    help=f"Time until which behind_ms is counted, and at which transactions would have timed out: {A_TIME}; by "
    "default that of the newest record.",
)


def lag_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as `lag`."""

    @wraps(command)
    def with_lag(*args: Any, lag: bool | None, now: int | None, **more: Any) -> None:
        command(*args, lag=LagOptions(lag, now), **more)

    return LAG(NOW(with_lag))
