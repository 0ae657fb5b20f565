"""``offsets-log check``: would these partitions load, and what else is wrong with them."""

from __future__ import annotations

from collections.abc import Set
from typing import IO, TYPE_CHECKING, Any

import click

from offsets_log_cli.help_page import RARE, RULES, Command, option
from offsets_log_cli.lag import STRANDED
from offsets_log_cli.options import (
    A_TIME,
    FORMATS,
    PARTITIONS,
    SHUTDOWN,
    Output,
    ReadOptions,
    Time,
    output_option,
    reading_options,
)

if TYPE_CHECKING:
    from offsets_log.checking.report import Report
    from offsets_log.replay.releases import Release


class Releases(click.ParamType):  # type: ignore[type-arg]
    """``3.9.1,4.3.0`` → the releases."""

    name = "X.Y,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Release, ...]:
        """Return the value; fail for a release whose rules are not known."""
        from offsets_log.replay.releases import release_named

        try:
            return tuple(release_named(name.strip()) for name in str(value).split(","))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(
    "check",
    cls=Command,
    epilog="Examples: offsets-log check /var/lib/kafka/data --release 3.9 --release 4.3 · "
    "offsets-log check backup.tar.gz -o json",
)
@reading_options
@option(
    "--release",
    "releases",
    under=RULES,
    formerly=("--loads-on",),
    type=Releases(),
    multiple=True,
    help="Releases to try, such as 4.3; repeatable. By default the one that wrote the files, if they show it, and one "
    "later release for each set of rules. 3.9.1-java is the preview of the Java coordinator in 3.9.1 (3.7 to 3.9 have "
    "one). Commas separate several.",
)
@option(
    "--all-releases",
    under=RULES,
    is_flag=True,
    help="Try releases before that of the writer, too. One for each set of rules.",
)
@PARTITIONS
@option(
    "--now",
    under=RARE,
    type=Time(),
    help=f"Time until which ages of open transactions and commits are counted: {A_TIME}; by default the newest "
    "record's time.",
)
@SHUTDOWN
@STRANDED
@output_option(*FORMATS)
def command(
    reading: ReadOptions,
    output: Output,
    releases: tuple[tuple[Release, ...], ...],
    all_releases: bool,
    now: int | None,
    shutdown: str | None,
    lag: bool | None,
) -> None:
    """Predict whether a broker loads these partitions, and find what else is wrong with them. Exit status 3 if a load
    fails or anything is damaged or doubtful.

    A dry run for each release, from that of the writer on: does a broker start with these files, what does it cut off,
    does the load finish, at which record and by which rule does it fail, what is served then, and what would be
    skipped. It also finds damage, torn tails, missing parts of logs, overlaps, open transactions, groups in the wrong
    partition, and offsets whose group does not exist. A load is always of the whole partition: -g only chooses which
    findings are shown; -t chooses, among the findings about offsets that lead to no record, the topics.

    If the copy has the logs of other topics, it also finds offsets beyond their end or below their start, offsets for
    partitions that the cluster does not have, and offsets for a former topic of the same name. Offsets below the start
    that were last committed more than a day ago are only notes, because retention causes that for every unused group.

    Exit status 3 if a load fails on one of the releases that are tried, or if anything is damaged or doubtful. Previews
    of the Java coordinator count only if they are asked for, or wrote the files. Records that are only skipped, and
    notes, do not count. The table has first what these releases meet, in it what counts before what does not, and of
    notes of one rule and group that differ only in numbers the first; the other formats have all of them.
    """
    from offsets_log.questions.check import NEEDS, Check, CheckAsked
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.output import chosen_format, destination
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import say_of_release

    if releases and all_releases:
        raise click.UsageError("--release and --all-releases exclude each other")
    tried = tuple(release for some in releases for release in some)
    asked = CheckAsked(releases=tried, all_releases=all_releases, now_ms=now, shutdown=shutdown, lag=lag)
    with open_session(reading, output, needs=NEEDS) as session:
        check = Check(session, asked)
        if (format_name := chosen_format(output)) in ("json", "table"):
            found = check.found
            with destination(output, session.inputs.files) as stream:
                _write(stream, found, check.judged, format_name)
            check.tell()
        else:
            write_answer(session, output, check)
        for release in check.asked.values():
            say_of_release(release.asked)


def _write(stream: IO[bytes], found: Report, judged: Set[str], format_name: str) -> None:
    """Write the whole answer as one document, or for people as two tables."""
    from offsets_log.checking.tables import FINDINGS_COLUMNS, LOADS_COLUMNS, findings_table, loads_table
    from offsets_log.rows.tables import to_json
    from offsets_log_cli.output import write_rows

    if format_name == "json":
        stream.write(to_json(found.document(), indent=1).encode() + b"\n")
        return
    write_rows(stream, loads_table(found), LOADS_COLUMNS, "table")
    if findings := findings_table(found, judged):
        stream.write(b"\n")
        write_rows(stream, findings, FINDINGS_COLUMNS, "table")
