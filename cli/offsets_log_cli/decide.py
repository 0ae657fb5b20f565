"""``--decide``: the outcome of open transactions by the copy of the transaction coordinator's log."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from offsets_log.session.decide import DecideOptions
from offsets_log_cli.help_page import RARE, SHOW, option
from offsets_log_cli.options import A_TIME, Time

if TYPE_CHECKING:
    from offsets_log_cli.options import ReadOptions


DECIDE = option(
    "--decide",
    under=SHOW,
    is_flag=True,
    help="End open transactions as __transaction_state says. Those that it has as committed or aborted are taken as "
    "if their markers were at the log's end.",
)
TIMED_OUT_BY = option(
    "--now",
    under=RARE,
    type=Time(),
    help=f"Show which open transactions would have timed out by then: {A_TIME}.",
)


def decide_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add both options to a command, which gets them as `decide`."""

    @wraps(command)
    def with_decide(*args: Any, decide: bool, now: int | None, **more: Any) -> None:
        command(*args, decide=DecideOptions(decide, now), **more)

    return DECIDE(TIMED_OUT_BY(with_decide))


def check_usage(reading: ReadOptions, decide: bool, *, as_broker: bool = False) -> None:
    """Raise UsageError for what cannot be decided."""
    if not decide:
        return
    if as_broker:
        raise click.UsageError("--decide and --as-broker exclude each other: a broker that starts decides nothing")
    if reading.is_bounded:
        from offsets_log.data_directory.decisions import BOUNDED

        raise click.UsageError(BOUNDED)
