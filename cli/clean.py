"""``offsets-log clean``: partitions as Kafka's log cleaner would leave them, in a new folder."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from cli.clean_options import Changes, change_options
from cli.clean_rounds import Machine
from cli.options import A_TIME, MAX_INT64, SHUTDOWN, TOPIC_ID, Duration, Release, Time, UntilOffset
from cli.partition_folders import FolderOptions, PartitionFolders, folder_options, partition_of, tell
from cli.signals import ended_by_signals
from cli.times import with_times
from offsets_log.kafka_releases import FIRST_CLEANER, NEWEST
from offsets_log.release_names import AskedRelease
from offsets_log.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.clean_rounds import Rounds
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.bounds import Bounds
    from offsets_log.cleaner.kept import Kept
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

Given = tuple[tuple[int | None, int], ...]
"""Offsets of single partitions; None stands for all others."""


class Broker(Release):
    """``X.Y`` or ``X.Y.Z`` → a release whose cleaner is known."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AskedRelease:
        """Return the value; fail for a release whose rules are not known."""
        from offsets_log.cleaner.settings import Rules

        release = super().convert(value, param, ctx)
        try:
            Rules.of(release.version)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return release


def _bytes(name: str, what: str, default: str, *, least: int = 1) -> Callable[..., Any]:
    help_ = f"{what}  [default: {default}]"
    return click.option(f"--{name}", metavar="BYTES", type=click.IntRange(min=least), help=help_)


def _duration(name: str, what: str, default: str) -> Callable[..., Any]:
    variable = f"{name.replace('-', '_')}_ms"
    return click.option(f"--{name}", variable, type=Duration(), help=f"{what}  [default: {default}]")


def _offset(name: str, what: str, default: str) -> Callable[..., Any]:
    help_ = f"{what} in offsets partition P, else in every one; repeatable.  [default: {default}]"
    return click.option(f"--{name}", type=UntilOffset(), multiple=True, help=help_)


@click.command(
    "clean",
    epilog="Examples: offsets-log clean /var/lib/kafka/data --dry-run · "
    "offsets-log clean backup.tar.gz -p 3 --to cleaned --broker 3.9 --delete-retention 1h · "
    "offsets-log clean /var/lib/kafka/data --deep --drop-expired --to small · "
    "offsets-log clean backup.tar.gz -p 3 --drop-record 3:120 --to mended",
)
@with_times
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--to", metavar="DIR", help="New directory, which appears whole or not at all.")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing: only report what would be cleaned, and why the rest is kept."
)
@click.option(
    "--broker",
    type=Broker(),
    default=NEWEST.name,
    show_default=True,
    help=f"Release whose cleaner is followed: {FIRST_CLEANER.name} to {NEWEST.name}.",
)
@click.option("--now", type=Time(), help=f"The cleaner's clock: {A_TIME}; by default now.")
@_duration("delete-retention", "The topic's delete.retention.ms: how long tombstones and markers are kept.", "1d")
@_duration("min-compaction-lag", "The topic's min.compaction.lag.ms.", "0")
@_duration("producer-id-expiration", "The broker's producer.id.expiration.ms.", "1d")
@_bytes("segment-bytes", "The topic's segment.bytes.", "100 MiB")
@_bytes("segment-index-bytes", "The topic's segment.index.bytes.", "10 MiB")
@_bytes("index-interval-bytes", "The topic's index.interval.bytes.", "4096", least=0)
@_bytes("max-message-bytes", "The topic's max.message.bytes.", "1048588")
@_bytes("io-buffer-bytes", "The broker's log.cleaner.io.buffer.size, of one thread.", "512 KiB")
@_bytes("cleaner-max-message-bytes", "The broker's message.max.bytes.", "1048588")
@_bytes("dedupe-buffer-bytes", "The broker's log.cleaner.dedupe.buffer.size, of one thread.", "no limit")
@click.option(
    "--load-factor-percent",
    metavar="N",
    type=click.IntRange(1, 100),
    help="How much of that buffer may be filled: log.cleaner.io.buffer.load.factor.  [default: 90]",
)
@_offset("first-dirty-offset", "From where the log is not cleaned yet,", "the cleaner's checkpoint")
@_offset(
    "high-watermark",
    "Up to where followers have the log: nothing behind it is cleaned; since 4.4 a last batch without records is kept "
    "only if it ends there;",
    "its checkpoint, else the log's end",
)
@_offset("log-start-offset", "Where the log begins,", "its checkpoint")
@change_options
@SHUTDOWN
@TOPIC_ID
@folder_options
def command(**given: Any) -> None:
    """Clean partitions as one round of Kafka's own log cleaner would, byte for byte.

    DIR gets a folder __consumer_offsets-N for each partition, with segments, all their indexes, producer snapshots,
    leader epochs and partition.metadata. Beside them are the checkpoints of a data directory, and README.txt, which
    says how to give the folders to a broker. Segments are rewritten as the cleaner of that release does; segments that
    the round does not clean are copied.

    A row for each partition gives the outcome: cleaned; not started, if there was nothing to clean; changed, if only
    the requested records were removed and there was nothing else to clean; failed, if a broker's cleaner would stop
    with an exception and not clean the partition until a restart, or if a broker would empty the log at its start;
    aborted, if the cleaner would give up and try again. The row also says why each remaining byte is kept, for example
    because of an open transaction that keeps everything after it.

    --drop-record, --drop-group, --keep-group and --drop-expired remove records before the round; --until-offset and
    --until-time take the log as it was then. Record offsets stay, and so does the offset at which the log continues. A
    transaction that loses records keeps its marker. With --deep, the result is replayed by the rules of all profiles
    before it is written, to prove that it answers as before: for offsets, groups, members, open transactions and
    records at which a load fails. When groups last wrote is not among these: a commit that was deleted since is
    removed.

    Where a broker's start would cut off the damaged end of a log, it is cut off here too, which is said; repair keeps
    what can be read behind the damage.

    Exit status 3 if a partition failed or aborted, if something was cut off, or if what was to be removed is not there.
    """
    run(Machine(), **given)


def run(
    machine: Machine,
    asked: FolderOptions,
    broker: AskedRelease,
    now: int | None,
    shutdown: str | None,
    **settings: Any,
) -> None:
    """Run the command on a machine; the other arguments are its parameters."""
    from cli.session import open_session
    from cli.terminal import say_of_release
    from offsets_log.cleaner.offset_map import OffsetMap
    from offsets_log.cleaner.result import CLEAN_COLUMNS

    asked.check_target()
    reading = asked.reading(until_offset=settings["until_offset"], until_time=settings["until_time"])
    now = int(time.time() * 1000) if now is None else now
    changes = Changes.of(settings)
    round_settings = _settings(now, broker.version, settings)
    if now + round_settings.delete_retention_ms > MAX_INT64:
        raise click.UsageError("--now and --delete-retention are together beyond what 64 bits of milliseconds hold")
    if OffsetMap.of(round_settings).usable == 0:
        raise click.UsageError("a broker does not start with so small a --dedupe-buffer-bytes: it holds no key")
    with ended_by_signals(), open_session(reading) as session, ExitStack() as stack:
        _tell_of_others(session, settings)
        say_of_release(broker)
        place = None if asked.to is None else machine.place(session, asked.to, stack)
        folders = PartitionFolders(place, asked.topic_id)
        rounds = machine.rounds(session, round_settings)
        cleaning = _Cleaning(session, rounds, round_settings, shutdown, settings, changes, stack, folders)
        rows = [cleaning.clean(folders.of_topic(log, session)) for log in session.inputs.logs]
        changes.tell_of_others(session, {log.offsets_partition for log in session.inputs.logs})
        folders.write_beside(session.account)
        stack.close()
        tell(rows, [column.name for column in CLEAN_COLUMNS], asked.output, {"kept": _kept_in_words})
        counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in _outcomes()}
        session.account.is_wrong |= bool(counts["failed"] or counts["aborted"])
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        session.account.finish(f"{counted(len(rows), 'partition')}: {told}; {_sizes(rows)}")


def _settings(now_ms: int, release: tuple[int, ...], given: dict[str, Any]) -> Settings:
    from offsets_log.cleaner.settings import Rules, Settings

    known = {field.name for field in fields(Settings)}
    told = {name: value for name, value in given.items() if name in known and value is not None}
    return Settings(now_ms=now_ms, rules=Rules.of(release), **told)


class _Cleaning:
    """The rounds of a run."""

    def __init__(
        self,
        session: Session,
        rounds: Rounds,
        settings: Settings,
        shutdown: str | None,
        given: dict[str, Given],
        changes: Changes,
        stack: ExitStack,
        folders: PartitionFolders,
    ) -> None:
        from offsets_log.broker.shutdowns import SHUTDOWNS

        self._session, self._settings, self._given = session, settings, given
        self._changes, self._stack, self._folders = changes, stack, folders
        self._rounds = rounds
        self._stopped_cleanly = None if shutdown is None else SHUTDOWNS[shutdown]

    def clean(self, log: PartitionLog) -> Row:
        """Clean one partition, and make its folder in the directory."""
        from dataclasses import replace

        from offsets_log.cleaner.bounds import bounds_of
        from offsets_log.cleaner.opening import check_is_left
        from offsets_log.cleaner.result import refused_row, result_row
        from offsets_log.cleaner.round import FAILED
        from offsets_log.errors import OffsetsLogError, OutputError

        partition = partition_of(log)
        given = log = replace(log, checkpoints=self._checkpoints(log))
        before = opened = self._rounds.open(log, self._stopped_cleanly)
        self._tell_of_start(log, opened)
        done: Round | None = None
        refused = "a broker does not open this log"
        try:
            if opened.refusal is not None:
                raise opened.refusal
            check_is_left(log, opened)
            if self._rounds.reads_here(log):
                self._tell_of_recovery(log, opened, in_bulk=self._rounds.in_bulk)
            refused = "what is asked for cannot be done"
            if self._changes.are_some:
                log, opened, done = self._changes.apply(self._session, log, opened, self._settings, self._stack)
            bounds = bounds_of(opened, log.checkpoints, self._settings)
        except OutputError:
            raise
        except OffsetsLogError as error:
            self._session.account.say(f"offsets partition {partition}: {refused}, it is left out: {error}")
            return refused_row(log, FAILED, error)
        done, kept = self._written(partition, log, opened, bounds, done)
        changed_from = before if self._changes.are_some else None
        return result_row(given, done, kept, changed_from, in_bulk=self._rounds.in_bulk)

    def _tell_of_start(self, log: PartitionLog, opened: OpenLog) -> None:
        """Report what a broker's start cuts away, and what is missing: after a round both look cleaned."""
        from offsets_log.cleaner.opening import missing_in

        for cut in opened.cuts:
            self._session.account.is_wrong = True
            self._session.account.say(
                f"{cut.file}: at its start a broker cuts {counted(cut.size_bytes, 'byte')} away, from position "
                f"{cut.position} on; repair keeps what can be read of them"
            )
        for missing in missing_in(log, opened):
            self._session.account.say(f"missing: {missing.in_words()}; a round makes it look as if it was cleaned away")

    def _tell_of_recovery(self, log: PartitionLog, opened: OpenLog, *, in_bulk: bool) -> None:
        """Report what a recovery does to a log that was opened without one, as README.txt has the broker recover it."""
        from offsets_log.cleaner.opening import recovered

        found = recovered(log, opened, self._settings, in_bulk=in_bulk)
        problem: object = None if found is None else found.refusal
        if found is not None and problem is None and found.cuts:
            cut = found.cuts[0]
            problem = f"{cut.file}: it cuts all away from position {cut.position} on, and all segments behind"
        if problem is not None:
            self._session.account.say(
                f"offsets partition {log.offsets_partition}: a round copies it, but no broker that recovers it takes "
                f"all of it: {problem}; repair leaves out what it does not take"
            )

    def _written(
        self, partition: int, log: PartitionLog, opened: OpenLog, bounds: Bounds, done: Round | None
    ) -> tuple[Round, Kept]:
        """Write a partition's folder, after a round if there is still one to do."""
        from offsets_log.cleaner.checkpoints import checkpoints_after

        if done is None:
            done, kept = self._rounds.clean(partition, log, opened, bounds, self._folders)
        else:
            kept = done.kept
            self._folders.write_others(partition, log, done)
        self._folders.end(partition, checkpoints_after(log.checkpoints, done), log)
        return done, kept

    def _checkpoints(self, log: PartitionLog) -> Checkpoints:
        """Return a partition's checkpoints: as options say, else as the data directory says."""
        from dataclasses import replace

        dirty, watermark, start = (_given_for(log.offsets_partition, self._given[name]) for name in OFFSETS)
        told = log.checkpoints
        return replace(
            told,
            cleaned_until=told.cleaned_until if dirty is None else dirty,
            high_watermark=told.high_watermark if watermark is None else watermark,
            log_start_offset=told.log_start_offset if start is None else start,
        )


OFFSETS = ("first_dirty_offset", "high_watermark", "log_start_offset")
"""Options that replace what a data directory's checkpoints say."""


def _tell_of_others(session: Session, given: dict[str, Given]) -> None:
    """Report offsets that were given for partitions that are not there."""
    found = {log.offsets_partition for log in session.inputs.logs}
    for name in OFFSETS:
        for partition, offset in given[name]:
            if partition is not None and partition not in found:
                option = f"--{name.replace('_', '-')} {partition}:{offset}"
                session.account.say(f"{option} has no effect: no such offsets partition was found")


def _given_for(partition: int | None, given: Given) -> int | None:
    offsets = dict(given)
    return offsets.get(partition, offsets.get(None))


# ---------------------------------------------------------------------------------------------- output


def _kept_in_words(kept: Row) -> str:
    from offsets_log.words import shown_time

    words = f"{kept['reason']} {counted(kept['bytes'], 'byte')}"
    if "producer_id" in kept:
        words += f" (producer {kept['producer_id']}, from offset {kept['first_offset']})"
    if "since_ms" in kept:
        words += f", since {shown_time(kept['since_ms'])}"
    if "until_ms" in kept:
        words += f", until {shown_time(kept['until_ms'])}"
    return words


def _outcomes() -> tuple[str, ...]:
    from offsets_log.cleaner.round import OUTCOMES

    return OUTCOMES


def _sizes(rows: list[Row]) -> str:
    before, after = (sum(row[name] or 0 for row in rows) for name in ("bytes_before", "bytes_after"))
    return f"{counted(before, 'byte')} before, {after} after"
