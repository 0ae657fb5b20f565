"""``--lag`` of `compact` and `groups`: whether ends of partitions are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from offsets_log_cli.help_page import RARE, SHOW, option
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


WHERE_THERE = "By default if the copy has the logs of those topics."
LAG = option(
    "--lag/--no-lag",
    under=SHOW,
    default=None,
    help=f"Distance to the log's end. {WHERE_THERE}",
)
STRANDED = option(
    "--lag/--no-lag",
    under=SHOW,
    default=None,
    help=f"Also report offsets that point to no record. {WHERE_THERE}",
)
NOW = option(
    "--now",
    under=RARE,
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
