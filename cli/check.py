"""``offsets-log check``: would these partitions load, and what else is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

import click

from cli.lag import STRANDED
from cli.options import A_TIME, PARTITIONS, SHUTDOWN, Output, ReadOptions, Time, output_option, reading_options
from offsets_log.session.decide import told_outcomes
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.checking.partition_check import PartitionCheck
    from offsets_log.checking.report import Report
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.replay.partition_count import PartitionCount
    from offsets_log.replay.releases import Release
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

SCALA, JAVA = "3.4.1", "3.9-java"
"""The rules of the two coordinators of 3.9."""
RANGES = (
    f"{SCALA} stands for all releases up to 3.9 with their default coordinator, the Scala one, and 3.7-java to {JAVA} "
    "for the preview of the Java one; --loads-on 3.9.1 asks for one release"
)


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
    epilog="Examples: offsets-log check /var/lib/kafka/data --loads-on 3.9.1,4.3.0 · "
    "offsets-log check backup.tar.gz -o json",
)
@reading_options
@click.option(
    "--loads-on",
    type=Releases(),
    multiple=True,
    help="Releases to try, such as 3.9.1,4.3.0; 3.9.1-java is the preview of the Java coordinator in 3.9.1 (3.7 to "
    "3.9 have one). By default one release for each known set of rules; repeatable.",
)
@PARTITIONS
@click.option(
    "--now",
    type=Time(),
    help=f"Time until which ages of open transactions and commits are counted: {A_TIME}; by default the newest "
    "record's time.",
)
@SHUTDOWN
@STRANDED
@output_option("table", "jsonl", "json", "csv")
def command(
    reading: ReadOptions,
    output: Output,
    loads_on: tuple[tuple[Release, ...], ...],
    now: int | None,
    shutdown: str | None,
    lag: bool | None,
) -> None:
    """Predict whether these partitions load on Kafka X.Y, and find what else is wrong with them.

    A dry run for each release: does a broker start with these files, what does it cut off, does the load finish, at
    which record and by which rule does it fail, what is served then, and what would be skipped. It also finds damage,
    torn tails, missing parts of logs, overlaps, open transactions, groups in the wrong partition, and offsets whose
    group does not exist. A load is always of the whole partition: -g only chooses which findings are shown; -t chooses,
    among the findings about offsets that lead to no record, the topics.

    If the copy has the logs of other topics, it also finds offsets beyond their end or below their start, offsets for
    partitions that the cluster does not have, and offsets for a former topic of the same name. Offsets below the start
    that were last committed more than a day ago are only notes, because retention causes that for every unused group.

    Exit status 3 if a load fails on one of the releases of --loads-on (without it, on the newest), or if anything is
    damaged or doubtful. Records that are only skipped, and notes, do not count. The table has first what
    these releases meet, in it what counts before what does not, and of notes of one rule and group that differ only in
    numbers the first; the other formats have all of them.
    """
    from cli.output import chosen_format, destination
    from cli.session import open_session
    from cli.terminal import say_of_release
    from offsets_log.checking.report import report
    from offsets_log.replay.releases import known_releases
    from offsets_log.restore.doubts import of_hanging

    asked = {release.name: release for releases in loads_on for release in releases}
    releases = tuple(asked.values()) or known_releases()
    judged = asked.keys() or {releases[-1].name}
    with open_session(reading, output, needs={"value_version", "is_transactional"}) as session:
        session.account.tells_brokers = True
        if reading.topic and (lag is False or not session.inputs.copied_logs):
            session.account.say("-t has no effect: a load is always of the whole partition")
        checks = list(_checks(session, releases, shutdown))
        is_told = any(check.has_open_transactions for check in checks)
        found = report(
            checks,
            releases,
            partitions=session.inputs.offsets_partition_count,
            now_ms=now,
            outcomes=told_outcomes(session.inputs, now) if is_told else None,
            keep_group=session.inputs.shows_group,
            absent=session.inputs.absent,
            more=chain(_of_older(session, checks, asked.values()), _stranded(session, lag, checks, releases[-1], now)),
        )
        format_name = chosen_format(output)
        with destination(output, session.inputs.files) as stream:
            _write(stream, found, judged, format_name)
        failing, wrong = found.failing(judged), found.wrong(judged)
        say_of_lag(session, lag_logs(session, lag))
        session.account.is_wrong = bool(failing or wrong)
        scala, java = ({row["offsets_partition"] for row in found.failing({name})} for name in (SCALA, JAVA))
        if not asked and scala != java:
            session.account.say(RANGES)
        for release in asked.values():
            say_of_release(release.asked)
            if (other := release.other_coordinator) is not None:
                session.account.say(_coordinator_in_words(release, other))
        if any(check.log.offsets_partition is not None for check in checks):
            session.account.say(_partitions_in_words(found.partitions))
        else:
            session.account.say(
                "no directory tells which offsets partition this is: whether its groups belong there is not checked; "
                "--as-partition N says which"
            )
        for words in of_hanging((row["detail"] or {}).get("abort_command") for row in found.findings):
            session.account.say(words)
        for words in _of_nothing_left(session, checks):
            session.account.say(words)
        for words in _of_all_served(found.loads, judged):
            session.account.say(words)
        for words in _of_nothing_served(found.loads, judged):
            session.account.is_wrong = True
            session.account.say(words)
        session.account.finish(
            f"{session.inputs.partitions_read}, {counted(len(releases), 'release')}; "
            f"{counted(len(failing), 'load fails', 'loads fail')}"
            + ("" if asked else f" on {releases[-1].name}")
            + f", {counted(len(wrong), 'finding')} of damage or doubt",
            found=sum(session.inputs.shows_group(group) for check in checks for group in check.groups),
        )


def _checks(session: Session, releases: tuple[Release, ...], shutdown: str | None) -> Iterator[PartitionCheck]:
    """Yield the check of every partition."""
    from offsets_log.checking.partition_check import PartitionCheck

    if session.engine.is_bulk:
        yield from session.engine.check_in_bulk(releases, shutdown)
        return
    for log in session.inputs.logs:
        check = PartitionCheck(log, releases)
        check.read(
            session.engine.events(log),
            session.account.on_damage,
            until=session.inputs.until(log),
            release=session.inputs.scope.kafka,
            shutdown=shutdown,
        )
        yield check


def _of_nothing_left(session: Session, checks: Sequence[PartitionCheck]) -> Iterator[str]:
    """Yield a sentence for each log that loads only because a broker keeps none of its bytes."""
    from offsets_log.rows.tables import partition_name

    for check in (check for check in checks if id(check.log) in session.account.damaged_logs):
        first = check.log.segments[0].base_offset if check.log.segments else None
        ends = {load.log_end_offset for load in check.loads if load.ok}
        if check.log.bytes_to_read and ends == {first or 0}:
            name = partition_name(check.log.offsets_partition)
            yield f"offsets partition {name}: nothing is left of it: a broker would serve none of its bytes"


def _of_nothing_served(loads: Sequence[Row], judged: Set[str]) -> Iterator[str]:
    """Yield a sentence for each load that comes to its end and serves nothing of what is here; one for those alike."""
    from offsets_log.rows.tables import partition_name

    alike: dict[str, dict[str, None]] = {}
    for load in loads:
        releases = [name for name in load["releases"] if name in judged]
        if releases and load["ok"] and load["served"] == "nothing":
            when = f", after a stop that was {load['shutdown']}," if load["shutdown"] else ""
            words = (
                f"on {', '.join(releases)} the load{when} does not fail, but nothing is "
                "served of what can be read here" + (f": {load['problem']}" if load["problem"] else "")
            )
            alike.setdefault(words, {})[partition_name(load["offsets_partition"])] = None
    for words, names in alike.items():
        yield f"offsets partition{'s' if len(names) > 1 else ''} {', '.join(names)}: {words}"


def _of_all_served(loads: Sequence[Row], judged: Set[str]) -> Iterator[str]:
    """Yield a sentence for each load that fails and serves everything all the same."""
    from offsets_log.rows.tables import partition_name

    for load in loads:
        releases = [name for name in load["releases"] if name in judged]
        if releases and load["ok"] is False and load["served"] == "all":
            name = partition_name(load["offsets_partition"])
            yield f"offsets partition {name}: {', '.join(releases)} logs that the load failed, and serves all of it"


def _coordinator_in_words(release: Release, other: str) -> str:
    if release.asked.is_preview:
        return f"{release.name} is the preview of the Java coordinator; {other} is the Scala one, which is the default"
    return (
        f"{release.name} is the Scala coordinator, which is the default; {other} is the preview of the Java one, for "
        "brokers on which the consumer protocol of KIP-848 was switched on"
    )


def _of_older(session: Session, checks: Sequence[PartitionCheck], asked: Collection[Release]) -> Iterator[Row]:
    """Yield rows of releases that were asked for and are older than the cluster that the copy is of."""
    from offsets_log.checking.downgrade import downgrade_findings, losing, may_lose, streams_findings
    from offsets_log.replay.profile import MODERN

    metadata = session.inputs.metadata
    level = None if metadata is None else metadata.replay.image.metadata_version
    for finding in downgrade_findings(level, asked):
        yield finding.row(None)
    older = losing(asked)
    if older and any(may_lose(check.seen.names.types) for check in checks):
        for log, state, _ in _again(session).engine.load_whole(MODERN, whole_groups=True):
            for finding in streams_findings(state.groups.values(), older):
                yield finding.row(log.offsets_partition)


def _stranded(
    session: Session, lag: bool | None, checks: Sequence[PartitionCheck], release: Release, now_ms: int | None
) -> Iterator[Row]:
    """Yield rows of offsets that lead to no record, among those that a release serves.

    Args:
        now_ms: the value of ``--now``; by default the newest record's time of all logs.
    """
    logs, inputs = lag_logs(session, lag), session.inputs
    if not logs:
        return
    from offsets_log.checking.stranded import stranded_findings

    found = []
    for check in checks:
        values = check.served(release) or _read_again(session, check.log, release)
        shown = (value for value in values if inputs.shows_group(value.group) and inputs.shows_topic(value.topic))
        found.append((check.log.offsets_partition, list(inputs.iter_stranded(shown))))
    if now_ms is None:
        now_ms = max([logs.newest_timestamp_ms or -1, *(check.newest_ms for check in checks)])
    for offsets_partition, stranded in found:
        for finding in stranded_findings(stranded, now_ms):
            yield finding.row(offsets_partition)


def _read_again(session: Session, log: PartitionLog, release: Release) -> Iterator[OffsetAndMetadata]:
    """Return all offsets that a release would serve if no record ended its load."""
    from offsets_log.rows.survey import Survey

    return _again(session).engine.load(log, release.profile, Survey.of(log)).iter_served()


def _again(session: Session) -> Session:
    """Return a session that reads the same once more, without a word."""
    return session.bounded(session.inputs.scope.until_offset, session.inputs.scope.until_time)


def _partitions_in_words(partitions: PartitionCount) -> str:
    why = {
        "option": "as given",
        "metadata": "as the cluster's metadata says",
        "checkpoints": "as the data directory shows",
        "data": "as the groups found show",
        "default": "the default",
        "guess": "the default, which these few groups do not confirm",
    }[partitions.source]
    otherwise = "" if partitions.source == "option" else "; --partitions N says otherwise"
    return (
        f"groups are checked against {counted(partitions.number, 'partition')} of __consumer_offsets, {why}{otherwise}"
    )


def _write(stream: IO[bytes], found: Report, judged: Set[str], format_name: str) -> None:
    from cli.check_tables import write_tables
    from cli.output import write_rows
    from offsets_log.checking.findings import CHECK_NAMES
    from offsets_log.rows.tables import to_json

    if format_name == "json":
        stream.write(to_json(found.document(), indent=1).encode() + b"\n")
    elif format_name == "table":
        write_tables(stream, found, judged)
    else:
        write_rows(stream, [*found.loads, *found.findings], CHECK_NAMES, format_name)
