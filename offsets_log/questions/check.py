"""Whether partitions load on releases of Kafka, and what else is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from offsets_log.checking.findings import CHECK_COLUMNS, DOUBT, Finding
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.checking.places import FindingPlace
from offsets_log.checking.report import report
from offsets_log.data_directory.start import ALL_KRAFT
from offsets_log.data_directory.whose_rules import writer_of
from offsets_log.dumps.dump_log_text import LeftOut
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.questions.question import FewRows
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from offsets_log.replay.releases import Release, known_releases, release_named
from offsets_log.restore.doubts import of_hanging
from offsets_log.rows.tables import Column, Row, partition_name
from offsets_log.session.decide import told_outcomes
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.newest import iter_ahead, newest_ms
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.checking.report import Report
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.replay.partition_count import PartitionCount
    from offsets_log.session.session import Session

NEEDS = frozenset({"value_version", "is_transactional"})
"""Columns without which nothing can be answered."""
SCALA, JAVA = "3.4.1", "3.9-java"
"""The rules of the two coordinators of 3.9."""
RANGES = (
    f"{SCALA} stands for all releases up to 3.9 with their default coordinator, the Scala one, and 3.7-java to {JAVA} "
    "for the preview of the Java one; --release 3.9.1 asks for one release"
)


@dataclass(frozen=True, kw_only=True)
class CheckAsked:
    """What is asked of partitions.

    Attributes:
        releases: the releases to try, or their names; empty for the one that wrote the files, as far as they show it,
            and later ones, one for each known set of rules.
        all_releases: whether releases before that one are tried, too.
        now_ms: until when ages of open transactions and commits are counted; None for the newest record's time.
        shutdown: how the broker that wrote the files was stopped, clean or unclean; None for what the files show.
        lag: whether offsets are found that lead to no record; None where the copy has the logs for it.
    """

    releases: str | Sequence[Release | str] = ()
    all_releases: bool = False
    now_ms: int | None = None
    shutdown: str | None = None
    lag: bool | None = None


class Check(FewRows):
    """The question, as `questions.question.Question`: loads of each partition, then what was found.

    Attributes:
        asked: the releases that were asked for.
        judged: names of the releases that decide whether something is wrong.
    """

    columns: Sequence[Column] = CHECK_COLUMNS

    def __init__(self, session: Session, asked: CheckAsked) -> None:
        self._session, self._how = session, asked
        releases = (asked.releases,) if isinstance(asked.releases, str) else asked.releases
        named = (release_named(one) if isinstance(one, str) else one for one in releases)
        self.asked: dict[str, Release] = {one.name: one for one in named}
        self._writer = None if self.asked else writer_of(session.inputs.clusters, session.inputs.logs)
        self._releases = tuple(self.asked.values()) or self._from_writer_on()
        self.judged: Set[str] = self.asked.keys() or {one.name for one in self._releases if self._is_judged(one)}
        session.account.tells_brokers = True
        if session.inputs.scope.topic and (asked.lag is False or not session.inputs.copied_logs):
            session.account.say("-t has no effect: a load is always of the whole partition")

    def _from_writer_on(self) -> tuple[Release, ...]:
        """Return the writer's release and one for each later set of rules; one for each set if nothing tells it."""
        writer = self._writer
        if writer is None or self._how.all_releases:
            return known_releases()
        first = release_named(writer.name)
        return (first, *(one for one in known_releases() if one.version > first.version))

    def _is_judged(self, release: Release) -> bool:
        """Whether a release decides if something is wrong: the writer's and later ones, but previews it is not of."""
        writer = self._writer
        if release.asked.is_preview:
            return writer is not None and writer.is_preview
        return writer is None or release.version >= release_named(writer.name).version

    @cached_property
    def _checks(self) -> list[PartitionCheck]:
        return list(_checks(self._session, self._releases, self._how.shutdown))

    @property
    def _newest(self) -> dict[int | None, int | None]:
        return {check.log.offsets_partition: check.newest_ms for check in self._checks}

    @cached_property
    def found(self) -> Report:
        """All that was found. Raises OffsetsLogError."""
        session, asked, checks = self._session, self._how, self._checks
        is_told = any(check.has_open_transactions for check in checks)
        return report(
            checks,
            self._releases,
            partitions=session.inputs.count_of_groups((check.log.offsets_partition, check.groups) for check in checks),
            now_ms=newest_ms(session.inputs, self._newest) if asked.now_ms is None else asked.now_ms,
            outcomes=told_outcomes(session.inputs, asked.now_ms) if is_told else None,
            keep_group=session.inputs.shows_group,
            absent=session.inputs.absent,
            more=chain(
                _left_out(session),
                _of_older(session, checks, self.asked.values()),
                _stranded(session, asked, checks, self._releases[-1], newest_ms(session.inputs, self._newest)),
            ),
        )

    def rows(self) -> list[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return [*self.found.loads, *self.found.findings]

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, found, judged, checks = self._session, self.found, self.judged, self._checks
        failing, wrong = found.failing(judged), found.wrong(judged)
        say_of_lag(session, lag_logs(session, self._how.lag))
        session.account.is_wrong |= bool(failing or wrong)
        for words in self._of_releases():
            session.account.say(words)
        if any(check.log.offsets_partition is not None for check in checks):
            session.account.say(_partitions_in_words(found.partitions))
        else:
            session.account.say(
                "no directory tells which offsets partition this is: whether its groups belong there is not checked; "
                "--as-partition N says which"
            )
        for words in (
            *(iter_ahead(session.inputs, self._newest) if self._how.now_ms is None else ()),
            *of_hanging((row["detail"] or {}).get("abort_command") for row in found.findings),
            *_of_nothing_left(session, checks),
            *_of_no_topic_id(checks, self._releases),
            *_of_all_served(found.loads, judged),
        ):
            session.account.say(words)
        for words in _of_nothing_served(found.loads, judged):
            session.account.is_wrong = True
            session.account.say(words)
        if not checks:
            session.account.finish("nothing could be read here, so no load was tried and nothing checked", found=0)
            return
        session.account.finish(
            self.verdict,
            found=sum(session.inputs.shows_group(group) for check in checks for group in check.groups),
        )

    @property
    def verdict(self) -> str:
        """How many loads fail, and how much is damaged or doubtful, in words. Raises OffsetsLogError."""
        failing, wrong = self.found.failing(self.judged), self.found.wrong(self.judged)
        return (
            f"{self._session.inputs.partitions_read}, {counted(len(self._releases), 'release')}; "
            f"{counted(len(failing), 'load fails', 'loads fail')}"
            + ("" if self.asked else f" on {self._judged_in_words()}")
            + f", {counted(len(wrong), 'finding')} of damage or doubt"
        )

    def _first_in_words(self) -> str:
        if self._writer is None:
            return "the files do not show which release wrote them: all are tried, and --release X.Y asks for one"
        return f"tried from Kafka {self._writer.name} on: {self._writer.why}; --all-releases tries the others, too"

    def _judged_in_words(self) -> str:
        """Return the releases that decide, in words, but for previews."""
        names = [one.name for one in self._releases if one.name in self.judged]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"

    def _of_releases(self) -> Iterator[str]:
        """Yield which releases are tried, and whose rules are meant by them."""
        if not self.asked and not self._how.all_releases:
            yield self._first_in_words()
        scala, java = ({row["offsets_partition"] for row in self.found.failing({name})} for name in (SCALA, JAVA))
        if not self.asked and scala != java:
            yield RANGES
        for release in self.asked.values():
            if (other := release.other_coordinator) is not None:
                yield _coordinator_in_words(release, other)


def _checks(session: Session, releases: tuple[Release, ...], shutdown: str | None) -> Iterator[PartitionCheck]:
    """Yield the check of every partition."""

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

    for check in (check for check in checks if id(check.log) in session.account.damaged_logs):
        first = check.log.segments[0].base_offset if check.log.segments else None
        ends = {load.log_end_offset for load in check.loads if load.ok}
        if check.log.bytes_to_read and ends == {first or 0}:
            name = partition_name(check.log.offsets_partition)
            yield f"offsets partition {name}: nothing is left of it: a broker would serve none of its bytes"


def _of_no_topic_id(checks: Sequence[PartitionCheck], releases: Sequence[Release]) -> Iterator[str]:
    """Yield a sentence where whether brokers without ZooKeeper keep these folders is not judged (``ST-7``)."""
    in_folders = [check.log for check in checks if check.log.at_start is not None]
    if (
        in_folders
        and releases[-1].version >= ALL_KRAFT
        and not any(PARTITION_METADATA in log.beside for log in in_folders)
    ):
        yield (
            f"no folder here has {PARTITION_METADATA}: the original's may, so this is not judged. A broker of Kafka 4 "
            "puts a folder without it aside, and starts an empty partition (ST-7)"
        )


def _of_nothing_served(loads: Sequence[Row], judged: Set[str]) -> Iterator[str]:
    """Yield a sentence for each load that comes to its end and serves nothing of what is here; one for those alike."""

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


def _left_out(session: Session) -> Iterator[Row]:
    """Yield rows of batches that a text leaves out between others."""
    for error in (damage.error for damage in session.inputs.damages if isinstance(damage.error, LeftOut)):
        numbers = {log.offsets_partition for log in session.inputs.logs if log.segments[0].file == error.file}
        place = FindingPlace(error.file, error.position, error.record_offset)
        yield Finding(severity=DOUBT, rule=None, problem=error.problem, place=place).row(next(iter(numbers), None))


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
    session: Session, asked: CheckAsked, checks: Sequence[PartitionCheck], release: Release, end_ms: int
) -> Iterator[Row]:
    """Yield rows of offsets that lead to no record, among those that a release serves.

    Args:
        end_ms: the newest record's time of the offsets topic's logs.
    """
    logs, inputs = lag_logs(session, asked.lag), session.inputs
    if not logs:
        return
    from offsets_log.checking.stranded import stranded_findings

    found = []
    for check in checks:
        values = check.served(release) or _read_again(session, check.log, release)
        shown = (value for value in values if inputs.shows_group(value.group) and inputs.shows_topic(value.topic))
        found.append((check.log.offsets_partition, list(inputs.iter_stranded(shown))))
    now_ms = max(logs.newest_timestamp_ms or -1, end_ms) if asked.now_ms is None else asked.now_ms
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
    is_default = partitions.number == DEFAULT_PARTITIONS
    why = {
        "option": "as given",
        "metadata": "as the cluster's metadata says",
        "checkpoints": "as the data directory shows",
        "data": "as the groups found show",
        "default": "the default",
        "guess": f"{'the default' if is_default else 'as many as are named'}, which these few groups do not confirm",
        "outgrown": "the fewest that there can be: groups are where fewer would put them",
        "contradicted": "which not all groups here fit, nor any other number",
    }[partitions.source]
    otherwise = "" if partitions.source == "option" else "; --partitions N says otherwise"
    return (
        f"groups are checked against {counted(partitions.number, 'partition')} of __consumer_offsets, {why}{otherwise}"
    )
