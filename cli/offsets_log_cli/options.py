"""Options that several commands share: the same words everywhere, gathered into one value each.

Of the library nothing is imported here but its words: `--help` must not pay for it.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from offsets_log.asked_time import MAX_DIGITS, UNDERSTOOD, OfLog, parse_time
from offsets_log.release_names import AskedRelease
from offsets_log.session.scope import BrokerOptions, Scope
from offsets_log.words import UNITS_MS, shown_time
from offsets_log_cli.help_page import CHOOSE, OUTPUT, READING, RULES, option
from offsets_log_cli.release_types import AnyRelease, ReleaseLine
from offsets_log_cli.shown_options import SHOWN
from offsets_log_cli.times import with_times

PROFILE_NAMES = ("modern", "modern-3.7", "classic")
INPUT_FORMATS = ("segments", "dump-log", "formatter", "kcat", "records", "parquet", "jsonl")


class UntilOffset(click.ParamType):  # type: ignore[type-arg]
    """``[P:]N`` → (P or None, N)."""

    name = "[P:]N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, int]:
        """Return the value; fail for anything but one or two whole numbers."""
        match = re.fullmatch(r"(?:(\d+):)?(\d+)", str(value))
        if match is None:
            self.fail(f"{value!r} is not [P:]N, such as 1200 or 3:1200", param, ctx)
        partition, offset = match.groups()
        return (None if partition is None else int(partition)), int(offset)


ERA_NAMES = ("0.8.2", "0.9", "0.10.1", "2.0", "2.1", "2.4", "classic", "modern-3.7", "3.8-java", "4.0.1", "modern")
"""Names of `replay.expiry.ERAS`, stated here too so that help does not load them; a test compares both."""

BEFORE_KAFKA_MS = 1_104_537_600_000
"""2005-01-01 in epoch milliseconds: a smaller number was hardly meant as that."""
SECONDS = range(BEFORE_KAFKA_MS // 1000, 4_102_444_800)
"""Numbers that are seconds of the years 2005 to 2099."""
HARDLY_MS = 100_000
"""Fewer milliseconds are hardly meant where people think in minutes, as ``offsets.retention.minutes`` does, or days."""
MAX_INT64 = (1 << 63) - 1


A_TIME = (
    "epoch ms, ISO 8601 (UTC), 2h for two hours ago, yesterday 14:00, end-2h for two hours before the logs end, or "
    "05:36 of their last day"
)
"""What a time may be, for help."""


class Time(click.ParamType):  # type: ignore[type-arg]
    """Epoch milliseconds, or what `parse_time` understands → epoch ms, or `OfLog` until `times` looks it up."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | OfLog:
        """Return the value; fail for anything else, and for what 64 bits do not hold."""
        moment = self._moment(value, param, ctx)
        if isinstance(moment, OfLog):
            return moment
        if not -MAX_INT64 <= moment <= MAX_INT64:
            self.fail(f"{value!r} is beyond what Kafka's 64 bits of milliseconds hold", param, ctx)
        return moment

    def _moment(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | OfLog:
        text = str(value).strip()
        if re.fullmatch(r"-?\d+", text):
            return self._number(int(text[:MAX_DIGITS]), param, ctx)
        try:
            return parse_time(text, int(time.time() * 1000))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def _number(self, moment: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return epoch milliseconds; fail for what looks like seconds, and say how other small numbers are read."""
        if -MAX_INT64 <= moment < BEFORE_KAFKA_MS:
            told = f"{moment} as epoch ms is {shown_time(moment)}, before there was Kafka: epoch ms have 13 digits"
            told = f"{told}; else {UNDERSTOOD}"
            if moment in SECONDS:
                self.fail(told, param, ctx)
            click.echo(told, err=True)
        return moment


class Duration(click.ParamType):  # type: ignore[type-arg]
    """``7d``, ``10080m``, ``PT1H30M``, or plain milliseconds → ms.

    Attributes:
        least_ms: fewer plain milliseconds were hardly meant; how they are read is said.
        needs_unit: whether they are refused instead.
    """

    name = "DURATION"

    def __init__(self, least_ms: int = 0, *, needs_unit: bool = False) -> None:
        self.least_ms, self.needs_unit = least_ms, needs_unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the value; fail for anything else, and for what 64 bits do not hold."""
        duration = self._duration(value, param, ctx)
        if duration > MAX_INT64:
            self.fail(f"{value!r} is beyond what Kafka's 64 bits of milliseconds hold", param, ctx)
        return duration

    def _duration(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if match := re.fullmatch(r"(\d+)(ms|s|m|h|d|w)?", text):
            number = int(match[1][:MAX_DIGITS])
            if number and match[2] is None and number < self.least_ms:
                units = f"{text}m or {text}d; {text}ms if milliseconds are meant"
                if self.needs_unit:
                    self.fail(f"{text} of what? Give a unit: {units}", param, ctx)
                click.echo(f"{text} is read as {text} ms; with a unit it is {units}", err=True)
            return number * UNITS_MS[match[2] or "ms"]
        iso = re.fullmatch(r"P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text.upper())
        if iso is None:
            self.fail(
                f"{value!r} is no duration, such as 7d, 10080m or PT1H; a number alone is milliseconds", param, ctx
            )
        counts = (int((count or "0")[:MAX_DIGITS]) for count in iso.groups())
        return sum(count * UNITS_MS[unit] for count, unit in zip(counts, "dhms", strict=True))


class TopicId(click.ParamType):  # type: ignore[type-arg]
    """The id of a topic, as Kafka's tools show it."""

    name = "ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value; fail for anything but 16 bytes in URL-safe base64, and for the id of zeros."""
        from offsets_log.log_format.primitives import ZERO_UUID, Uuid

        try:
            found = Uuid.from_text(str(value).strip())
        except ValueError:
            self.fail(f"{value!r} is no topic id, such as HCJdBQf7Qv-GGlbH64RFkg", param, ctx)
        if found == ZERO_UUID:
            self.fail("no topic has an id of zeros", param, ctx)
        return str(found)


@dataclass(frozen=True, kw_only=True)
class ReadOptions(Scope):
    """The value of `reading_options`: what to read, how far, and what is shown of it on standard error."""

    progress: bool | None = None
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Output:
    """The value of `output_option`: the format of the answer, and where it goes."""

    output: str | None
    to: str | None
    wide: bool = False
    columns: str | None = None
    no_pager: bool = False


GROUP = option(
    "-g",
    "--group",
    under=CHOOSE,
    metavar="GLOB",
    multiple=True,
    help="Only these groups; repeatable. One named exactly so is meant alone; [*], [?] and [[] quote a sign.",
)
TOPIC = option("-t", "--topic", under=CHOOSE, metavar="GLOB", multiple=True, help="Only these topics; repeatable.")
OFFSETS_PARTITION = option(
    "-p",
    "--offsets-partition",
    under=CHOOSE,
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only these partitions of __consumer_offsets. Repeatable.",
)
AS_PARTITION = option(
    "--as-partition",
    under=READING,
    metavar="N",
    type=click.IntRange(min=0),
    help="Partition number to assume for a single segment file outside a folder __consumer_offsets-N.",
)
QUIET = option("-q", "--quiet", under=READING, is_flag=True, help="Print only errors on standard error.")
VERBOSE = option(
    "-v", "--verbose", under=OUTPUT, is_flag=True, help="Name every damaged piece. By default the first five are named."
)
SHOW_PROGRESS = option(
    "--progress/--no-progress",
    under=READING,
    default=None,
    help="Show how much has been read: a bar on a terminal, else a line every ten seconds.",
)
NEW_DIRECTORY, NEW_DIRECTORY_IF_ANY = (
    option(
        "--to", under=OUTPUT, metavar="DIR", required=required, help="New directory. It appears whole or not at all."
    )
    for required in (True, False)
)
PATHS = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
READING_OPTIONS = (
    PATHS,
    GROUP,
    TOPIC,
    OFFSETS_PARTITION,
    AS_PARTITION,
    option(
        "--until-offset",
        under=READING,
        type=UntilOffset(),
        multiple=True,
        help="Only records before offset N of __consumer_offsets (in its partition P, else in every one); repeatable.",
    ),
    option(
        "--until-time",
        under=CHOOSE,
        type=Time(),
        help=f"As it was then: 2026-01-31T14:05Z, or 2h. More exactly {A_TIME}. From the first later batch on, "
        "nothing is read.",
    ),
    click.option("--kafka", type=ReleaseLine(), hidden=True),
    option(
        "--input-format",
        under=READING,
        type=click.Choice(INPUT_FORMATS),
        help="What the input is: segments, text that kafka-dump-log, the console formatters, kcat or clients printed, "
        "or rows from records; by default guessed from its first bytes.",
    ),
    option(
        "--threads",
        under=READING,
        metavar="N",
        type=click.IntRange(min=1),
        help="Threads for logs of more than a few megabytes; by default one for each processor.",
    ),
    option("--strict", under=READING, is_flag=True, help="Stop at the first error, with exit status 1."),
    option(
        "--quarantine",
        under=READING,
        metavar="FILE",
        type=click.Path(),
        help="Write damaged and unreadable pieces to this file, as JSON Lines with raw bytes.",
    ),
    SHOW_PROGRESS,
    QUIET,
    VERBOSE,
)

RELEASE = option(
    "--release",
    under=RULES,
    type=AnyRelease(),
    help="Release of the cluster. By default the files show it; where they do not, and it matters, the offsets that "
    "depend on it are named. Up to 3.9 the Scala coordinator is meant; 3.7-java to 3.9-java are previews of the Java "
    "one.",
)


def release_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--release``, and ``--profile``, which goes on; the command gets a release or a profile's name, or None."""

    @functools.wraps(command)
    def ruled(*, release: AskedRelease | None, profile: str | None, **values: Any) -> Any:
        if release is not None:
            if profile is not None:
                raise click.UsageError("--release and --profile exclude each other: both say whose rules")
            profile = release.name
        return command(profile=profile, **values)

    return RELEASE(click.option("--profile", type=click.Choice(PROFILE_NAMES), hidden=True)(ruled))


TABLES = ("offsets", "share-offsets")
"""Tables of committed offsets: consumer groups' and share groups'."""


TOPIC_IDS = option(
    "--topic-ids",
    under=READING,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON object of topic ids and names, for records that name topics by id only.",
)
TOPIC_ID = option(
    "--topic-id",
    under=OUTPUT,
    type=TopicId(),
    help="The topic's id in the cluster that gets it. It is written into every partition.metadata; by "
    "default the one in the source's files.",
)
SHUTDOWN = option(
    "--shutdown",
    under=READING,
    type=click.Choice(("clean", "unclean")),
    help="How the broker that wrote these files was stopped: this decides what the next one recovers. By default "
    "what the data directory shows (.kafka_cleanshutdown), else both cases are answered.",
)
PARTITIONS = option(
    "--partitions",
    under=READING,
    formerly=("--offsets-topic-partitions",),
    metavar="N",
    type=click.IntRange(min=1),
    help="How many partitions __consumer_offsets has; by default what the cluster's metadata in a data directory "
    "says, else 50, or what the groups show.",
)
AS_BROKER = option(
    "--as-broker",
    under=RULES,
    is_flag=True,
    help="Only what a broker starting here answers. It cuts the log where recovery does, and serves no "
    "partition whose load fails. By default everything that can be read is answered.",
)


FORMATS = ("table", "jsonl", "json", "csv", "parquet", "arrow")
"""Formats of every command that has rows; arrow is a stream of Arrow's IPC format."""


def report_option(*formats: str) -> Callable[..., Any]:
    """Return the option -o for a command that writes files, and a report about each partition beside them."""
    return option(
        "-o",
        "--output",
        under=OUTPUT,
        metavar="FORMAT",
        type=click.Choice(formats),
        help=f"{', '.join(formats)}. The report has a row for each partition; by default it is a table on a terminal "
        "and jsonl in a pipe.",
    )


def output_option(*formats: str) -> Callable[..., Any]:
    """Return the options -o and --to for a command with these formats."""
    return gather(
        "output",
        Output,
        (
            option(
                "-o",
                "--output",
                under=OUTPUT,
                metavar="FORMAT",
                type=click.Choice(formats),
                help=f"{', '.join(formats)}. By default table on a terminal and jsonl in a pipe or a file.",
            ),
            option("--to", under=OUTPUT, metavar="FILE", type=click.Path(), help="To a file, whole or not at all."),
            *SHOWN,
        ),
    )


def gather(name: str, kind: type, options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    """Return a decorator that adds options, and passes the fields of `kind` as one object called ``name``.

    Fields without an option keep their defaults.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def gathered(**values: Any) -> Any:
            parts = {field.name: values.pop(field.name) for field in fields(kind) if field.name in values}
            return function(**values, **{name: kind(**parts)})

        wrapped: Callable[..., Any] = gathered
        for add in reversed(options):
            wrapped = add(wrapped)
        return wrapped

    return decorate


broker_options = gather("broker", BrokerOptions, (AS_BROKER, SHUTDOWN))
"""Options for what a broker makes of the files."""

_reading_options = gather("reading", ReadOptions, READING_OPTIONS)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options for PATH..., filters, bounds, and what to do about damage; outside of all others of a command."""
    return with_times(_reading_options(command))
