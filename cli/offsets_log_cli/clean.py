"""``offsets-log clean``: partitions as Kafka's log cleaner would leave them, in a new folder."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from offsets_log.kafka_releases import FIRST_CLEANER, NEWEST
from offsets_log.release_names import AskedRelease
from offsets_log_cli.clean_options import change_options, changes_of
from offsets_log_cli.options import A_TIME, MAX_INT64, SHUTDOWN, TOPIC_ID, Duration, Release, Time, UntilOffset
from offsets_log_cli.partition_folders import FolderOptions, folder_options, tell
from offsets_log_cli.signals import ended_by_signals
from offsets_log_cli.times import with_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from offsets_log.actions.clean_rounds import Machine
    from offsets_log.cleaner.settings import Settings


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
    from offsets_log.actions.clean_rounds import Machine

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
    from offsets_log.actions import clean
    from offsets_log.cleaner.offset_map import OffsetMap
    from offsets_log.cleaner.result import CLEAN_COLUMNS
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import say_of_release

    asked.check_target()
    reading = asked.reading(until_offset=settings["until_offset"], until_time=settings["until_time"])
    now = int(time.time() * 1000) if now is None else now
    wanted = clean.CleanAsked(
        settings=_settings(now, broker.version, settings),
        changes=changes_of(settings),
        shutdown=shutdown,
        given={name: settings[name] for name in clean.OFFSETS},
        to=asked.to,
        topic_id=asked.topic_id,
    )
    if now + wanted.settings.delete_retention_ms > MAX_INT64:
        raise click.UsageError("--now and --delete-retention are together beyond what 64 bits of milliseconds hold")
    if OffsetMap.of(wanted.settings).usable == 0:
        raise click.UsageError("a broker does not start with so small a --dedupe-buffer-bytes: it holds no key")
    with ended_by_signals(), open_session(reading) as session:
        clean.tell_of_others(session, wanted.given)
        say_of_release(broker)
        rows = clean.clean(session, machine, wanted)
        tell(rows, [column.name for column in CLEAN_COLUMNS], asked.output, {"kept": clean.kept_in_words})
        clean.finish(session, rows)


def _settings(now_ms: int, release: tuple[int, ...], given: dict[str, Any]) -> Settings:
    from offsets_log.cleaner.settings import Rules, Settings

    known = {field.name for field in fields(Settings)}
    told = {name: value for name, value in given.items() if name in known and value is not None}
    return Settings(now_ms=now_ms, rules=Rules.of(release), **told)
