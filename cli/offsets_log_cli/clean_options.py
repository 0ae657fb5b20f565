"""Options by which `clean` removes more than a round of the cleaner does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from offsets_log_cli.help_page import CHANGE, CHOOSE, RARE, option
from offsets_log_cli.options import A_TIME, ERA_NAMES, Time, UntilOffset

if TYPE_CHECKING:
    from offsets_log.actions.clean_changes import Changes

_OPTIONS = (
    option(
        "--deep",
        under=CHANGE,
        is_flag=True,
        help="Write the smallest log with the same answers. The active segment is cleaned too; aborted transactions, "
        "and tombstones and markers that are not needed, are removed.",
    ),
    option(
        "--drop-record",
        under=CHANGE,
        metavar="[P:]N",
        type=UntilOffset(),
        multiple=True,
        help="Remove the record at offset N; repeatable. In offsets partition P, if that is given.",
    ),
    option(
        "--drop-group",
        under=CHANGE,
        metavar="GLOB",
        multiple=True,
        help="Remove these groups, and all of theirs; repeatable. Names are as of -g.",
    ),
    option(
        "--keep-group", under=CHANGE, metavar="GLOB", multiple=True, help="Remove all groups except these; repeatable."
    ),
    option(
        "--drop-expired",
        under=CHANGE,
        is_flag=True,
        help="Remove what expiry would remove at --now. This is what `expire` shows; the release decides, and "
        "--config offsets.retention.minutes.",
    ),
    click.option("--era", type=click.Choice(ERA_NAMES), hidden=True),
    option(
        "--until-offset",
        under=RARE,
        type=UntilOffset(),
        multiple=True,
        help="The log as it was when it ended at offset N (in offsets partition P, else in every one); repeatable.",
    ),
    option(
        "--until-time",
        under=CHOOSE,
        type=Time(),
        help=f"The log as it was then: 2026-01-31T14:05Z, 2h. More exactly {A_TIME}.",
    ),
)


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def changes_of(given: dict[str, Any]) -> Changes:
    """Return the changes that a command's parameters ask for."""
    from offsets_log.actions.clean_changes import Changes

    changes = Changes(**{field.name: given[field.name] for field in fields(Changes) if field.name in given})
    if changes.retention is not None and not changes.drop_expired:
        raise click.UsageError("--retention (offsets.retention.minutes) is for --drop-expired")
    return changes
