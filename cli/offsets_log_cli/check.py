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
    from offsets_log.questions.check import Check
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
    partition, and offsets whose group does not exist. The test always loads whole partitions: -g and -t only filter the
    findings that are shown.

    If the copy has the logs of other topics, it also finds offsets beyond their end or below their start, offsets for
    partitions that the cluster does not have, and offsets for a former topic of the same name. Offsets below the start
    that were last committed more than a day ago are only notes, because retention causes that for every unused group.

    Exit status 3 if a load fails on one of the releases that are tried, or if anything is damaged or doubtful. Previews
    of the Java coordinator count only if they are asked for, or wrote the files. Records that are only skipped, and
    notes, do not count. The table lists failures first, then doubts, then notes, and each kind of note once. JSON lists
    them all.
    """
    from offsets_log.questions.check import NEEDS, Check, CheckAsked
    from offsets_log_cli.answers import write_answer
    from offsets_log_cli.output import chosen_format, destination, is_brief
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import say_of_release

    if releases and all_releases:
        raise click.UsageError("--release and --all-releases exclude each other")
    tried = tuple(release for some in releases for release in some)
    asked = CheckAsked(releases=tried, all_releases=all_releases, now_ms=now, shutdown=shutdown, lag=lag)
    with open_session(reading, output, needs=NEEDS) as session:
        session.account.sums_up = is_brief(reading, output)
        check = Check(session, asked)
        if chosen_format(output) in ("json", "table") and not output.columns:
            _ = check.found
            with destination(output, session.inputs.files) as stream:
                if session.account.sums_up:
                    _write_brief(stream, check, output)
                else:
                    _write(stream, check.found, check.judged, output)
            check.tell()
        else:
            write_answer(session, output, check)
        for release in check.asked.values():
            say_of_release(release.asked)


def _write(stream: IO[bytes], found: Report, judged: Set[str], output: Output) -> None:
    """Write the whole answer as one document, or for people as two tables."""
    from offsets_log.checking import tables as t
    from offsets_log.rows.tables import to_json
    from offsets_log_cli.output import chosen_format, write_rows

    if chosen_format(output) == "json":
        stream.write(to_json(found.document(), indent=1).encode() + b"\n")
        return
    write_rows(stream, t.loads_table(found), t.LOADS_COLUMNS, output)
    if findings := t.findings_table(found, judged):
        stream.write(b"\n")
        write_rows(stream, findings, t.FINDINGS_COLUMNS, output, needed=t.FINDINGS_NEEDED)


def _write_brief(stream: IO[bytes], check: Check, output: Output) -> None:
    """Write the verdict, then a row for each kind of load, of release and of finding."""
    from offsets_log.checking import tables as t
    from offsets_log_cli.info_page import write_line
    from offsets_log_cli.output import write_rows

    found, judged = check.found, check.judged
    failing, wrong = found.failing(judged), found.wrong(judged)
    verdict = "fails" if failing else "loads, but something is damaged or doubtful" if wrong else "loads"
    write_line(stream, output, verdict, "", column="verdict")
    write_line(stream, output, "", check.verdict)
    for rows, columns, needed in (
        (t.kinds_table(found, judged), t.KINDS_COLUMNS, None),
        (t.releases_table(found), t.RELEASES_COLUMNS, None),
        (t.finding_kinds_table(found, judged), t.FINDING_KINDS_COLUMNS, t.FINDING_KINDS_NEEDED),
    ):
        if rows:
            stream.write(b"\n")
            write_rows(stream, rows, columns, output, needed=needed)
    write_line(stream, output, "", " each load and each finding: -v; those of one partition: -v -p N")
