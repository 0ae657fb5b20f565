"""Run ``python -m spark_jobs JOB``, also under spark-submit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.profile import PROFILES
from spark_jobs.options import SourceOptions, parse
from spark_jobs.run import JOBS, JobOptions, open_spark
from spark_jobs.writing import check_free

EXIT_ERROR, EXIT_DAMAGED = 1, 3

COMMON = (
    click.option("--input", "paths", metavar="PATH", multiple=True, required=True, help="Data directory, partition "
                 "directory, segments, a URL such as s3://…, or Parquet of decode; repeatable."),
    click.option("--output", metavar="DIR", required=True, help="A new directory of Parquet files."),
    click.option("--quarantine", metavar="DIR", help="A table of damaged and unreadable pieces."),
    click.option("--master", metavar="URL", help="Where Spark runs; by default what spark-submit says."),
    click.option("--profile", type=click.Choice(list(PROFILES)), default="modern", show_default=True,
                 help="Whose rules."),
    click.option("--option", "more", metavar="NAME=VALUE", multiple=True,
                 help="An option of the data source, such as group=billing-*; repeatable."),
    click.option("--strict", is_flag=True, help="Write nothing if something could not be read; exit status 1."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors."),
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


def _beside(function: Any) -> Any:
    for option in reversed(BESIDE):
        function = option(function)
    return function


def _common(function: Any) -> Any:
    for option in reversed(COMMON):
        function = option(function)
    return function


class Programs(click.Group):
    """The jobs here, and every command of offsets-log that reads logs, with its own options, on Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the jobs first, then the other commands."""
        from cli.main import READS_LOGS

        return [*self.commands, *(name for name in READS_LOGS if name not in self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a job, or the command of that name."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        from cli.main import READS_LOGS, LazyGroup  # not there where only the jobs' packages were sent

        if cmd_name not in READS_LOGS:
            return None
        ctx.default_map = {cmd_name: {"engine": "spark"}}
        return LazyGroup().get_command(ctx, cmd_name)


@click.group(cls=Programs, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run jobs over __consumer_offsets for what outgrows a machine.

    compact, rebuild and replay write Parquet from the cluster. The others are commands of offsets-log with its options
    and outputs, and --engine spark.

    Exit status: 0 all was read; 1 stopped by an error; 2 wrong usage; 3 finished, but something was damaged or
    unsupported (standard error says what).
    """


@main.command(epilog="Example: python -m spark_jobs compact --input s3://backup/kafka --output offsets --master yarn")
@_common
@_beside
@click.option("--orphans", is_flag=True, help="Also offsets whose group does not exist.")
@click.option("--unstable", is_flag=True, help="A column that tells offsets under an open transaction.")
def compact(lag: bool | None, decide: bool, now_ms: int | None, orphans: bool, unstable: bool, **common: Any) -> None:
    """Write the latest served offset of every group, topic and partition."""
    run("compact", common, lag=lag, decide=decide, now_ms=now_ms, orphans=orphans, unstable=unstable)


@main.command(epilog="Example: python -m spark_jobs rebuild --input backup/ --output memory --master 'local[4]'")
@_common
@_beside
@click.option("--topic-ids", metavar="FILE", help="JSON object topic id -> name.")
@click.option(
    "--as-broker",
    is_flag=True,
    help="Leave out partitions whose load a record would end. What a broker does with damaged files is not told here: "
    "offsets-log does.",
)
def rebuild(topic_ids: str | None, as_broker: bool, **options: Any) -> None:
    """Write groups, members, offsets, pending and share groups' offsets after loading, as a table each."""
    if as_broker and options["decide"]:
        raise click.UsageError("--decide and --as-broker exclude each other: a broker that starts decides nothing")
    beside = {name: options.pop(name) for name in ("lag", "decide", "now_ms")}
    run("rebuild", options, topic_ids=topic_ids, as_broker=as_broker, **beside)


@main.command(epilog="Example: python -m spark_jobs replay --input backup/ --output events --master 'local[4]'")
@_common
def replay(**common: Any) -> None:
    """Write all records as a flat table, in directories by offsets partition and day."""
    run("replay", common)


def run(job: str, common: dict[str, Any], topic_ids: str | None = None, **more: Any) -> None:
    """Run a job and exit."""
    try:
        order = JobOptions(
            reading=_reading(common),
            output=common["output"],
            quarantine=common["quarantine"],
            strict=common["strict"],
            topic_ids=read_topic_ids(topic_ids),
            **more,
        )
        with open_spark(common["master"]) as spark:
            for path in filter(None, (order.output, order.quarantine)):
                check_free(spark, path)
            words, account = JOBS[job](spark, order)
    except OffsetsLogError as error:
        click.echo(f"spark_jobs: error: {error}", err=True)
        sys.exit(EXIT_ERROR)
    if not common["quiet"]:
        for line in (*account.lines(), words):
            click.echo(line, err=True)
    sys.exit(EXIT_DAMAGED if account.is_damaged or account.lost or account.is_wrong else 0)


def _reading(common: dict[str, Any]) -> SourceOptions:
    options = {"paths": json.dumps(common["paths"]), "profile": common["profile"], "level": "partials"}
    for text in common["more"]:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--option {text!r} is not NAME=VALUE")
        options[name] = value
    return parse(options)


def read_topic_ids(file: str | None) -> dict[bytes, str]:
    """Read a JSON object topic id → name. Raises InputError."""
    if file is None:
        return {}
    try:
        names = json.loads(Path(file).read_bytes())
        return {bytes(Uuid.from_text(topic_id)): str(name) for topic_id, name in names.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"it is not a JSON object topic id -> name: {error}", file=file) from None


if __name__ == "__main__":
    main(prog_name="spark_jobs")
