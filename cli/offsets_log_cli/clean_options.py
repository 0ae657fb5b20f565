"""Options by which `clean` removes more than a round of the cleaner does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from offsets_log_cli.options import A_TIME, ERA_NAMES, HARDLY_MS, Duration, Time, UntilOffset

if TYPE_CHECKING:
    from offsets_log.actions.clean_changes import Changes

_OPTIONS = (
    click.option(
        "--deep",
        is_flag=True,
        help="Write the smallest log with the same answers: clean the active segment too, and remove aborted "
        "transactions, and tombstones and markers that are not needed.",
    ),
    click.option(
        "--drop-record",
        metavar="[P:]N",
        type=UntilOffset(),
        multiple=True,
        help="Remove the record at offset N (in offsets partition P), such as one at which a load fails; repeatable.",
    ),
    click.option(
        "--drop-group",
        metavar="GLOB",
        multiple=True,
        help="Remove these groups, and everything that belongs to them; repeatable; names as of -g.",
    ),
    click.option("--keep-group", metavar="GLOB", multiple=True, help="Remove all groups except these; repeatable."),
    click.option(
        "--drop-expired",
        is_flag=True,
        help="Remove what a coordinator's expiry would remove at --now: what `expire` shows.",
    ),
    click.option(
        "--retention",
        type=Duration(HARDLY_MS),
        help="For --drop-expired: the broker's offsets.retention.minutes, as 7d or 10080m.  [default: the era's]",
    ),
    click.option(
        "--era",
        type=click.Choice(ERA_NAMES),
        default="modern",
        show_default=True,
        help="For --drop-expired: whose expiry rules.",
    ),
    click.option(
        "--until-offset",
        type=UntilOffset(),
        multiple=True,
        help="The log as it was when it ended at offset N (in offsets partition P, else in every one); repeatable.",
    ),
    click.option("--until-time", type=Time(), help=f"The log as it was then: {A_TIME}."),
)


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def changes_of(given: dict[str, Any]) -> Changes:
    """Return the changes that a command's parameters ask for."""
    from offsets_log.actions.clean_changes import Changes

    changes = Changes(**{field.name: given[field.name] for field in fields(Changes) if field.name in given})
    if changes.retention is not None and not changes.drop_expired:
        raise click.UsageError("--retention is for --drop-expired")
    return changes
