"""Run ``python -m spark_jobs JOB``, also under spark-submit."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from typing import IO, Any

import click

from offsets_log.errors import OffsetsLogError
from offsets_log.replay.profile import PROFILES
from spark_jobs.options import parse
from spark_jobs.session import Opening, session

SHARED = (
    click.option("--master", metavar="URL", help="Where Spark runs; by default what spark-submit says."),
    click.option("--profile", type=click.Choice(list(PROFILES)), default="modern", show_default=True,
                 help="Whose rules."),
    click.option("--option", "more", metavar="NAME=VALUE", multiple=True,
                 help="An option of the data source, such as group=billing-*; repeatable."),
)  # fmt: skip
QUIET = click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors.")
COMMON = (
    click.option("--input", "paths", metavar="PATH", multiple=True, required=True, help="Data directory, partition "
                 "directory, segments, or a URL such as s3://…; repeatable."),
    click.option("--output", metavar="DIR", required=True, help="A new directory of Parquet files."),
    *SHARED,
    click.option("--strict", is_flag=True, help="Write nothing if something could not be read; exit status 1."),
    QUIET,
)  # fmt: skip
FOLLOWING = (
    click.argument("paths", metavar="INPUT", nargs=-1, required=True),
    click.option("--to", required=True, metavar="DIR",
                 help="The tables, a directory each: offsets and groups. A path, or a URL such as s3://…"),
    click.option("--checkpoint", required=True, metavar="DIR",
                 help="Where it is kept how far it is, and the state; of these tables alone."),
    click.option("--available-now", is_flag=True, help="End with what is there now."),
    click.option("--trigger", "every_s", type=click.FloatRange(0), metavar="SECONDS", default=10, show_default=True,
                 help="How often to look for what is new."),
    click.option("--changes", "with_changes", is_flag=True,
                 help="Also keep what changed in each batch: the tables offset_changes and group_changes."),
    *SHARED,
    QUIET,
)  # fmt: skip


BESIDE = (
    click.option("--lag/--no-lag", default=None, help="How far each offset is from the end of its partition, by the "
                 "logs of other topics in the data directories; by default where these have them."),
    click.option("--decide", is_flag=True, help="End open transactions that __transaction_state there says to be "
                 "committed or aborted, as if their markers stood at the log's end."),
    click.option("--now", "now_ms", type=int, metavar="MS", help="Until when behind_ms counts, and by when "
                 "transactions would have timed out: epoch ms; by default the newest record there."),
)  # fmt: skip
"""Options of jobs that take what lies beside the offsets topic."""


def _options(some: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda function: reduce(lambda made, option: option(made), reversed(some), function)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run jobs over __consumer_offsets for what outgrows a machine.

    compact, rebuild and replay write Parquet from the cluster; follow keeps tables; clean writes partitions as Kafka's
    log cleaner would leave them, with the options of offsets-log clean.

    Exit status: 0 all was read; 1 stopped by an error; 2 wrong usage; 3 finished, but something was damaged or
    unsupported (standard error says what).
    """


@main.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def clean(words: Sequence[str]) -> None:
    """Write partitions as Kafka's log cleaner would leave them; it has the options of offsets-log clean."""
    from spark_jobs.clean import command  # needs `offsets_log_cli`, which is not there where only the jobs were sent

    command.main([*words], prog_name="spark_jobs clean")


@main.command(epilog="Example: python -m spark_jobs compact --input s3://backup/kafka --output offsets --master yarn")
@_options(COMMON)
@_options(BESIDE)
@click.option("--orphans", is_flag=True, help="Also offsets whose group does not exist.")
@click.option("--unstable", is_flag=True, help="A column that tells offsets under an open transaction.")
def compact(orphans: bool, unstable: bool, **given: Any) -> None:
    """Write the latest served offset of every group, topic and partition."""
    run("compact", given, orphans=str(orphans), unstable=str(unstable))


@main.command(epilog="Example: python -m spark_jobs rebuild --input backup/ --output memory --master 'local[4]'")
@_options(COMMON)
@_options(BESIDE)
@click.option("--topic-ids", type=click.File(encoding="utf-8"), metavar="FILE", help="JSON object topic id -> name.")
def rebuild(topic_ids: IO[str] | None, **given: Any) -> None:
    """Write groups, members, offsets, pending and share groups' offsets after loading, as a table each."""
    run("rebuild", given, **({} if topic_ids is None else {"topic_ids": topic_ids.read()}))


@main.command(epilog="Example: python -m spark_jobs replay --input backup/ --output events --master 'local[4]'")
@_options(COMMON)
def replay(**common: Any) -> None:
    """Write all records as a flat table, a file for each offsets partition; of a large one several."""
    run("replay", common)


@main.command(
    epilog="Example: python -m spark_jobs follow backup/ --to state --checkpoint state-progress --master 'local[2]'"
)
@_options(FOLLOWING)
def follow(**given: Any) -> None:
    """Keep the latest offsets and the groups of logs that grow, as tables.

    INPUT are data directories, partitions of one, or URLs of stores. Records are taken in batches, each exactly once,
    whatever is killed in between: the same command goes on from the checkpoint. SIGTERM ends it whole.
    """

    def tell(words: str) -> None:
        if not given["quiet"]:
            click.echo(words, err=True)

    with _errors_told():
        options = _options_of(given)
        parse(options)
        with session(Opening(given["master"], is_quiet=given["quiet"])) as spark, _stopping() as stop:
            from spark_jobs.following import FollowOrder
            from spark_jobs.following import run as run_following

            order = FollowOrder(
                options=options,
                every_s=None if given["available_now"] else given["every_s"],
                **{name: given[name] for name in ("to", "checkpoint", "with_changes")},
            )
            status = run_following(spark(), order, stop, tell)
    sys.exit(status)


@contextmanager
def _errors_told() -> Iterator[None]:
    """End with an error's sentence and exit status 1."""
    try:
        yield
    except OffsetsLogError as error:
        click.echo(f"spark_jobs: error: {error}", err=True)
        sys.exit(1)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def run(job: str, given: dict[str, Any], **options: str) -> None:
    """Run a job and exit."""
    with _errors_told():
        reading = parse(_options_of(given, **options))
        with session(Opening(given["master"], is_quiet=given["quiet"])) as spark:
            from spark_jobs.driver import JobOptions
            from spark_jobs.jobs import run as run_job

            asked = {one.name: given[one.name] for one in fields(JobOptions) if one.name in given}
            status, words = run_job(spark, job, JobOptions(reading=reading, **asked))
    if not given["quiet"]:
        for line in words:
            click.echo(line, err=True)
    sys.exit(status)


def _options_of(given: dict[str, Any], **options: str) -> dict[str, str]:
    """Return the options of the data source."""
    told = {"profile": given["profile"], "paths": json.dumps(given["paths"]), **options}
    for text in given["more"]:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--option {text!r} is not NAME=VALUE")
        told[name] = value
    return told


if __name__ == "__main__":
    main(prog_name="spark_jobs")
