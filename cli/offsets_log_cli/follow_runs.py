"""The commands that have ``--follow``, following."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.actions import follow_runs as runs
from offsets_log.investigate.groups import GROUPS_COLUMNS
from offsets_log_cli.follow_output import Lines, live_table
from offsets_log_cli.options import Output, ReadOptions
from offsets_log_cli.output import chosen_format, destination, quiet_pipe
from offsets_log_cli.session import open_session
from offsets_log_cli.signals import stopping

if TYPE_CHECKING:
    from offsets_log.actions.follow_asked import FollowAsked
    from offsets_log.investigate.history import ShowsKey
    from offsets_log.session.session import Session


def follow_compact(
    reading: ReadOptions, output: Output, follow: FollowAsked, profile: str | None, *, orphans: bool, unstable: bool
) -> None:
    """Run ``compact --follow``."""
    how = partial(runs.follow_offsets, follow=follow, profile=profile, orphans=orphans, unstable=unstable)
    _follow(reading, output, how)


def follow_groups(reading: ReadOptions, output: Output, follow: FollowAsked, profile: str | None) -> None:
    """Run ``groups --follow``."""
    _follow(reading, output, partial(runs.follow_groups, follow=follow, profile=profile))


def follow_history(
    reading: ReadOptions,
    output: Output,
    follow: FollowAsked,
    profile: str | None,
    shows_key: Callable[[Session], ShowsKey | None],
    *,
    topic_ids: str | None,
    only_rewinds: bool,
) -> None:
    """Run ``history --follow``."""
    how = partial(runs.follow_history, follow=follow, profile=profile, shows_key=shows_key)
    _follow(reading, output, partial(how, topic_ids=topic_ids, only_rewinds=only_rewinds))


def follow_rebalances(
    reading: ReadOptions, output: Output, follow: FollowAsked, storm: tuple[int, int], topic_ids: str | None
) -> None:
    """Run ``rebalances --follow``."""
    _follow(reading, output, partial(runs.follow_generations, follow=follow, storm=storm, topic_ids=topic_ids))


def _follow(reading: ReadOptions, output: Output, begin: Callable[[Session], runs.FollowRun]) -> None:
    """Follow until a signal comes, as JSON Lines, or as a table on a terminal if all rows are known."""
    with open_session(replace(reading, progress=False), output) as session:
        run = begin(session)
        if run.rows is not None and chosen_format(output) == "table":
            columns = [column.name for column in GROUPS_COLUMNS]
            with quiet_pipe(), live_table(columns, run.rows) as sink, stopping() as stop:
                run.following.run(sink, stop)
        else:
            with destination(output, session.inputs.files) as stream, stopping() as stop:
                run.following.run(Lines(stream), stop)
        run.finish()
