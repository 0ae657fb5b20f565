"""Follow logs on Spark: tables of latest offsets, groups and problems, kept current from a checkpoint on.

A stream tells which offsets partitions grew (`streaming`, level ``growth``); these are replayed, a task each, and their
files in the tables are replaced. Tasks write files with new names beside the tables, the driver puts them in their
places, and each file says which batch it is of: a batch that is done again changes nothing, however far it came the
first time. Readers see a partition before a batch or after it, never between.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from offsets_log.errors import InputError, OutputError
from offsets_log.release_names import rules_in_words
from offsets_log.rows.tables import Row, partition_name
from offsets_log.session.account import EXIT_DAMAGED
from offsets_log.words import counted
from spark_jobs.answers import OneLog, Told
from spark_jobs.directories import Directory
from spark_jobs.driver import plan_reading
from spark_jobs.files import LogFiles
from spark_jobs.jobs import ask_tasks, told_by
from spark_jobs.options import SourceOptions, parse
from spark_jobs.source import FORMAT, register

LOOK_S = 1
ATTEMPTS, TOO_SLOW = 10, "Python worker failed to connect back"
"""Spark waits ten seconds for a process to start, which a busy machine may need."""
NOT_FOLLOWED = ("group", "topic", "columns", "until_offset", "until_time")
"""Options that leave out what a state is made of."""
STAGED, ABOUT, BATCH = ".staged", "_follow.json", b"offsets_log.batch"
TABLES = ("groups", "offsets", "problems")
"""The tables, levels without what is doubtful; the first needs the most of a replay."""
LEFT_OUT = ("unstable", "doubtful")
CHANGES = {"offsets": ("offset_changes", ("group", "topic", "partition")), "groups": ("group_changes", ("group",))}
"""Table → the one of its changes, and the keys of both."""
SHOWN = 5
NO_HARM = ("tail", "load")
"""Kinds of problems that do not make a run end with status 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOrder:
    """What is followed, and where to.

    Attributes:
        options: those of the data source.
        to: a directory of tables.
        checkpoint: the directory in which Spark keeps how far it is; of these tables alone.
        every_s: seconds between two batches; None to end with what is there now.
    """

    options: Mapping[str, str]
    to: str
    checkpoint: str
    every_s: float | None = None
    with_changes: bool = False

    @property
    def reading(self) -> SourceOptions:
        """What the options mean."""
        return parse(self.options)

    def directory(self, path: str) -> Directory:
        """Return a directory with the options of its store."""
        return Directory(path, tuple(sorted(self.reading.storage_options.items())))

    @property
    def tables(self) -> Directory:
        """Where the tables are."""
        return self.directory(self.to)


def write_batch(order: FollowOrder, changes: DataFrame, batch: int) -> None:
    """Replace the files of the partitions that grew; what ``foreachBatch`` calls."""
    grown = {row["offsets_partition"] for row in changes.collect()}
    found = plan_reading(order.reading)
    logs = [files for files in found.logs if files.log.offsets_partition in grown]
    work = partial(_replace_log, logs, order, found.told, batch)
    for moves in told_by(ask_tasks(changes.sparkSession, len(logs), work)):
        for staged, place in moves:
            order.tables.move(staged, place)


def _replace_log(
    logs: Sequence[LogFiles], order: FollowOrder, told: Told, batch: int, number: int
) -> list[tuple[str, str]]:
    """Write the tables of a log beside those that are there, and return what is to be moved where."""
    with ExitStack() as stack:
        one = OneLog(logs[number].open(stack), order.reading, told, stack)
        name = partition_name(logs[number].log.offsets_partition).zfill(5)
        return [*_staged(order, one, name, batch)]


def _staged(order: FollowOrder, one: OneLog, name: str, batch: int) -> Iterator[tuple[str, str]]:
    tables = order.tables
    for kind in TABLES:
        target = f"{kind}/{name}.parquet"
        data, table = tables.read(target), one.table(kind)
        now = table.drop_columns([column for column in LEFT_OUT if column in table.column_names])
        now = now.replace_schema_metadata({BATCH: str(batch)})
        known = now.slice(0, 0) if data is None else pq.read_table(pa.BufferReader(data))
        written = -1 if data is None else int(known.schema.metadata[BATCH])
        if written > batch:
            raise OutputError(
                f"this is of batch {written}, and batch {batch} is written", file=f"{tables.shown}/{target}"
            )
        if written == batch:
            continue  # it was moved before the run ended, after its changes
        if order.with_changes and kind in CHANGES:
            folder, keys = CHANGES[kind]
            changed = changes_of(known, now, keys)
            numbered = changed.append_column("batch", pa.array([batch] * len(changed), pa.int64()))
            yield _stage(tables, numbered, f"{folder}/{batch:012}-{name}.parquet")
        yield _stage(tables, now, target)


def _stage(tables: Directory, table: pa.Table, target: str) -> tuple[str, str]:
    staged = f"{STAGED}/{secrets.token_hex(8)}.parquet"
    tables.put_table(staged, table)
    return staged, target


def changes_of(before: pa.Table, now: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return rows that are new or other than before; of those that are gone, the keys and the partition alone."""
    known = {tuple(row[key] for key in keys): row for row in before.to_pylist()}
    rows = [row for row in now.to_pylist() if known.pop(tuple(row[key] for key in keys), None) != row]
    rows += [{name: row[name] for name in (*keys, "offsets_partition")} for row in known.values()]
    return pa.Table.from_pylist(rows, now.schema.remove_metadata())


def start(spark: SparkSession, order: FollowOrder) -> Any:
    """Begin to follow, or go on; return the streaming query.

    Raises:
        InputError: an option does not go with it, or the checkpoint is of another run.
        OutputError: the tables are not those of the checkpoint.
    """
    for name in NOT_FOLLOWED:
        if getattr(order.reading, name):
            raise InputError(f"the option {name} does not go with follow, which keeps the state of all groups")
    _bind(order)
    order.tables.remove(STAGED)
    register(spark)
    growth = spark.readStream.format(FORMAT).options(**{**order.options, "level": "growth"}).load()
    writing = growth.writeStream.option("checkpointLocation", order.checkpoint)
    writing = writing.foreachBatch(partial(write_batch, order))
    if order.every_s is None:
        return writing.trigger(availableNow=True).start()
    return writing.trigger(processingTime=f"{round(order.every_s * 1000)} milliseconds").start()


def _bind(order: FollowOrder) -> None:
    """See that the tables and the checkpoint belong together, which the tables tell. Raises InputError, OutputError."""
    tables, checkpoint, reading = order.tables, order.directory(order.checkpoint), order.reading
    tables.refuse_inside((*reading.paths, order.checkpoint))
    checkpoint.refuse_inside((*reading.paths, order.to))
    about = {
        "checkpoint": checkpoint.open()[1],
        "profile": reading.profile,
        "kafka": reading.kafka and [*reading.kafka],
    }
    data, is_begun = tables.read(ABOUT), bool(checkpoint.listed(is_deep=False))
    if data is None:
        if is_begun:
            raise InputError("this exists and is not of these tables: give a new one", file=checkpoint.shown)
        tables.check_free()
        tables.write(ABOUT, [json.dumps(about).encode()])
        return
    try:
        known = json.loads(data)
        others = {name: known[name] for name, value in about.items() if known[name] != value}
    except (ValueError, KeyError, TypeError):
        raise InputError("this was not written by follow", file=f"{tables.shown}/{ABOUT}") from None
    for name, value in others.items():
        raise OutputError(f"these tables were begun with {name} {value}, not {about[name]}", file=tables.shown)
    if not is_begun and tables.names("offsets"):
        raise OutputError("the checkpoint of these tables is gone: give new ones", file=tables.shown)


def run(spark: SparkSession, order: FollowOrder, stop: threading.Event, tell: Callable[[str], None]) -> int:
    """Follow until all is read that was there, or ``stop`` is set; return the exit status.

    Args:
        tell: told what happens.

    Raises:
        PySparkException: what ended it otherwise.
    """
    for is_last in (*[False] * (ATTEMPTS - 1), True):
        query = start(spark, order)
        try:
            while not (stop.is_set() or query.awaitTermination(LOOK_S)):
                pass
            break
        except PySparkException as error:
            if is_last or TOO_SLOW not in str(error):
                raise
            tell("a process of Python did not start in time; it is tried again")
        finally:
            query.stop()
    if stop.is_set():
        tell("it is ended; the same command goes on from here")
    return _tell_all(order, tell)


def _tell_all(order: FollowOrder, tell: Callable[[str], None]) -> int:
    tables = {
        kind: pa.concat_tables([order.tables.table(name) for name in order.tables.names(kind)] or [pa.table({})])
        for kind in TABLES
    }
    harm = [row for row in tables["problems"].to_pylist() if row["kind"] not in NO_HARM]
    for row in harm[:SHOWN]:
        tell(f"{row['kind']}: {_in_words(row)}")
    if harm:
        tell(f"not everything could be read: {counted(len(harm), 'problem')}, told in {order.to}/problems")
    summary = f"{counted(len(tables['offsets']), 'offset')}, {counted(len(tables['groups']), 'group')}"
    tell(f"{summary}; by the rules of {rules_in_words(order.reading.profile)}")
    return EXIT_DAMAGED if harm else 0


def _in_words(row: Row) -> str:
    at = "" if row["position"] is None else f" at position {row['position']}"
    return row["problem"] if row["kind"] == "missing" else f"{row['file']}{at}: {row['problem']}"
