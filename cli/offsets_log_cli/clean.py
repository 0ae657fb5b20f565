"""``offsets-log clean``: partitions as Kafka's log cleaner would leave them, in a new folder."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from offsets_log.kafka_releases import FIRST_CLEANER, NEWEST
from offsets_log.release_names import AskedRelease, release_asked
from offsets_log_cli.clean_options import change_options, changes_of
from offsets_log_cli.clean_settings import config_options, with_config
from offsets_log_cli.help_page import OUTPUT, RARE, RULES, Command, option
from offsets_log_cli.options import (
    A_TIME,
    MAX_INT64,
    NEW_DIRECTORY_IF_ANY,
    PATHS,
    SHUTDOWN,
    TOPIC_ID,
    Time,
    UntilOffset,
)
from offsets_log_cli.partition_folders import FolderOptions, folder_options, tell
from offsets_log_cli.release_types import Release
from offsets_log_cli.signals import ended_by_signals
from offsets_log_cli.times import with_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from offsets_log.actions.clean_rounds import Machine
    from offsets_log.cleaner.settings import Settings


NEWEST_ASKED = release_asked(NEWEST.name)


class CleanerRelease(Release):
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


def _offset(name: str, what: str, default: str) -> Callable[..., Any]:
    help_ = f"{what} in offsets partition P, else in every one; repeatable.  [default: {default}]"
    return option(f"--{name}", under=RARE, type=UntilOffset(), multiple=True, help=help_)


@click.command(
    "clean",
    cls=Command,
    epilog="Examples: offsets-log clean /var/lib/kafka/data --dry-run · "
    "offsets-log clean backup.tar.gz -p 3 --to cleaned --release 3.9 --config delete.retention.ms=1h · "
    "offsets-log clean /var/lib/kafka/data --deep --drop-expired --to small · "
    "offsets-log clean backup.tar.gz -p 3 --drop-record 3:120 --to mended",
)
@with_times
@PATHS
@NEW_DIRECTORY_IF_ANY
@option(
    "--dry-run",
    under=OUTPUT,
    is_flag=True,
    help="Write nothing, report what would be cleaned. And why the rest is kept.",
)
@option(
    "--release",
    under=RULES,
    type=CleanerRelease(),
    help=f"Release whose cleaner is followed: {FIRST_CLEANER.name} to {NEWEST.name}. By default {NEWEST.name}; "
    "--drop-expired follows its expiry too.",
)
@click.option("--broker", type=CleanerRelease(), hidden=True)
@option("--now", under=RARE, type=Time(), help=f"The cleaner's clock: {A_TIME}; by default now.")
@config_options
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
    """Clean partitions as one round of Kafka's own log cleaner would, byte for byte. The result is a new directory DIR,
    with a README.txt that says how to give it to a broker; PATH stays as it is.

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

    A damaged end is cut off, as a starting broker would do, and reported. To keep what comes after the damage, use
    `repair`.

    Exit status 3 if a partition failed or aborted, if something was cut off, or if what was to be removed is not there.
    """
    from offsets_log.actions.clean_rounds import Machine

    run(Machine(), **given)


def run(
    machine: Machine,
    asked: FolderOptions,
    broker: AskedRelease | None,
    now: int | None,
    shutdown: str | None,
    release: AskedRelease | None,
    **given: Any,
) -> None:
    """Run the command on a machine; the other arguments are its parameters.

    Raises:
        UsageError: options exclude each other, or a broker would not start with a setting.
    """
    from offsets_log.actions import clean
    from offsets_log.cleaner.offset_map import OffsetMap
    from offsets_log.cleaner.result import CLEAN_COLUMNS
    from offsets_log_cli.session import open_session
    from offsets_log_cli.terminal import say_of_release

    asked.check_target()
    if release is not None and broker is not None:
        raise click.UsageError("--release and --broker exclude each other: both say whose cleaner")
    settings = with_config(given)
    settings["era"] = settings["era"] or (release or NEWEST_ASKED).era
    rules = release or broker or NEWEST_ASKED
    reading = asked.reading(until_offset=settings["until_offset"], until_time=settings["until_time"])
    now = int(time.time() * 1000) if now is None else now
    wanted = clean.CleanAsked(
        settings=_settings(now, rules.version, settings),
        changes=changes_of(settings),
        shutdown=shutdown,
        given={name: settings[name] for name in clean.OFFSETS},
        to=asked.to,
        topic_id=asked.topic_id,
    )
    if now + wanted.settings.delete_retention_ms > MAX_INT64:
        raise click.UsageError("--now and delete.retention.ms are together beyond what 64 bits of milliseconds hold")
    if OffsetMap.of(wanted.settings).usable == 0:
        raise click.UsageError(
            "a broker does not start with so small a log.cleaner.dedupe.buffer.size: it holds no key"
        )
    with ended_by_signals(), open_session(reading) as session:
        clean.tell_of_others(session, wanted.given)
        say_of_release(rules)
        rows = clean.clean(session, machine, wanted)
        tell(rows, [column.name for column in CLEAN_COLUMNS], asked, {"kept": clean.kept_in_words})
        clean.finish(session, rows)


def _settings(now_ms: int, release: tuple[int, ...], given: dict[str, Any]) -> Settings:
    from offsets_log.cleaner.settings import Rules, Settings

    known = {field.name for field in fields(Settings)}
    told = {name: value for name, value in given.items() if name in known and value is not None}
    return Settings(now_ms=now_ms, rules=Rules.of(release), **told)
