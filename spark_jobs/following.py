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
from offsets_log.words import counted
from spark_jobs.answers import OneLog, Told
from spark_jobs.driver import plan_reading
from spark_jobs.files import LogFiles
from spark_jobs.jobs import TOLD, in_tasks, told_batch
from spark_jobs.options import SourceOptions, parse
from spark_jobs.places import COMPRESSION, OutputPlace
from spark_jobs.session import cause_of, own_error
from spark_jobs.source import FORMAT, register

LOOK_S = 1
ATTEMPTS, TOO_SLOW = 10, "Python worker failed to connect back"
"""Spark waits ten seconds for a process to start, which a busy machine may need."""
NOT_FOLLOWED = ("group", "topic", "columns", "until_offset", "until_time")
"""Options that leave out what a state is made of."""
STAGED, ABOUT, BATCH = ".staged", "_follow.json", b"offsets_log.batch"
TABLES = ("offsets", "groups", "problems")
"""The tables, levels without what is doubtful."""
LEFT_OUT = ("unstable", "doubtful")
CHANGES = {"offsets": ("offset_changes", ("group", "topic", "partition")), "groups": ("group_changes", ("group",))}
"""Table → the one of its changes, and the keys of both."""
TELLS_GONE = {"offsets": "committed_offset", "groups": "type"}
"""The column that is null in a change that says that there is no such row any more."""
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

    @property
    def tables(self) -> OutputPlace:
        """Where the tables are."""
        return _place(self.to, self.reading)


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of a run: a summary, further sentences, and whether something was damaged or missing."""

    summary: str
    words: tuple[str, ...]
    is_damaged: bool


def _place(url: str, reading: SourceOptions) -> OutputPlace:
    return OutputPlace(url, tuple(sorted(reading.storage_options.items())))


# ------------------------------------------------------------------------------------------------ batches


def write_batch(order: FollowOrder, changes: DataFrame, batch: int) -> None:
    """Replace the files of the partitions that grew; what ``foreachBatch`` calls."""
    grown = {row["offsets_partition"] for row in changes.select("offsets_partition").distinct().collect()}
    found = plan_reading(order.reading)
    logs = [files for files in found.logs if files.log.offsets_partition in grown]
    work = partial(_replace_log, logs, order, found.told, batch)
    for row in in_tasks(changes.sparkSession, len(logs), work, TOLD).collect():
        for staged, place in json.loads(row["told"]):
            order.tables.move(staged, place)


def _replace_log(
    logs: Sequence[LogFiles], order: FollowOrder, told: Told, batch: int, number: int
) -> Iterator[pa.RecordBatch]:
    """Write the tables of a log beside those that are there, and tell what is to be moved where."""
    with ExitStack() as stack:
        one = OneLog(logs[number].open(stack), order.reading, told, stack, keeps=True)
        name = partition_name(logs[number].log.offsets_partition).zfill(5)
        yield told_batch([*_staged(order, one, name, batch)])


def _staged(order: FollowOrder, one: OneLog, name: str, batch: int) -> Iterator[tuple[str, str]]:
    tables = order.tables
    for kind in TABLES:
        target = f"{kind}/{name}.parquet"
        before = tables.read(target)
        now = one.table(kind)
        now = now.select([column for column in now.column_names if column not in LEFT_OUT])
        now = now.replace_schema_metadata({BATCH: str(batch)})
        known = None if before is None else pq.read_table(pa.BufferReader(before))
        written = -1 if known is None else int(known.schema.metadata[BATCH])
        if written > batch:
            raise OutputError(
                f"this is of batch {written}, and batch {batch} is written", file=f"{tables.shown}/{target}"
            )
        if written == batch:
            continue  # it was moved before the run ended, after its changes
        if order.with_changes and kind in CHANGES:
            folder, keys = CHANGES[kind]
            changed = changes_of(now.slice(0, 0) if known is None else known, now, keys, TELLS_GONE[kind])
            numbered = changed.append_column("batch", pa.array([batch] * len(changed), pa.int64()))
            yield _stage(tables, numbered, f"{folder}/{batch:012}-{name}.parquet")
        yield _stage(tables, now, target)


def _stage(tables: OutputPlace, table: pa.Table, target: str) -> tuple[str, str]:
    staged = f"{STAGED}/{secrets.token_hex(8)}.parquet"
    tables.put(staged, lambda file: pq.write_table(table, file, compression=COMPRESSION))
    return staged, target


def changes_of(before: pa.Table, now: pa.Table, keys: Sequence[str], tells_gone: str) -> pa.Table:
    """Return rows that are new or other than before, and with nulls those that are gone."""
    names = now.column_names
    known = dict(zip(_rows(before, keys), before.to_pylist(), strict=True))
    rows: list[Row] = []
    for key, row in zip(_rows(now, keys), now.to_pylist(), strict=True):
        if known.pop(key, None) != row:
            rows.append(row)
    kept = (*keys, "offsets_partition")
    rows += [{name: row[name] if name in kept else None for name in names} for row in known.values()]
    assert all(row[tells_gone] is None for row in rows[len(rows) - len(known) :])
    return pa.Table.from_pylist(rows, now.schema.remove_metadata())


def _rows(table: pa.Table, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[key].to_pylist() for key in keys), strict=True)


# ------------------------------------------------------------------------------------------------ runs


def start(spark: SparkSession, order: FollowOrder) -> Any:
    """Begin to follow, or go on; return the streaming query.

    Raises:
        InputError: an option does not go with it, or the checkpoint is of another run.
        OutputError: the tables are not those of the checkpoint.
    """
    for name in NOT_FOLLOWED:
        if getattr(order.reading, name):
            raise InputError(f"the option {name} does not go with follow, which keeps the state of all groups")
    _refuse_inside(order)
    _bind(order)
    order.tables.remove(STAGED)
    register(spark)
    options = {**order.options, "level": "growth"}
    growth = spark.readStream.format(FORMAT).options(**options).load()
    writing = growth.writeStream.option("checkpointLocation", order.checkpoint)
    writing = writing.foreachBatch(partial(write_batch, order))
    if order.every_s is None:
        return writing.trigger(availableNow=True).start()
    return writing.trigger(processingTime=f"{round(order.every_s * 1000)} milliseconds").start()


def _refuse_inside(order: FollowOrder) -> None:
    """Refuse tables and checkpoints inside of an input or of each other. Raises OutputError."""
    places = [_place(url, order.reading).open()[1] for url in (order.to, order.checkpoint)]
    inputs = [_place(url, order.reading).open()[1] for url in order.reading.paths]
    for url, place, others in zip((order.to, order.checkpoint), places, (places[1:], places[:1]), strict=True):
        for other in (*inputs, *others):
            if f"{place}/".startswith(f"{other}/"):
                raise OutputError(f"this is inside of {other}: write elsewhere", file=_place(url, order.reading).shown)


def _bind(order: FollowOrder) -> None:
    """Tell the tables and the checkpoint that they belong together; see that they do."""
    tables, checkpoint = order.tables, _place(order.checkpoint, order.reading)
    about = {"profile": order.reading.profile, "kafka": order.reading.kafka and list(order.reading.kafka)}
    known, other = _about(checkpoint), _about(tables)
    if known is None:
        if checkpoint.names():
            raise InputError("this is no checkpoint of follow, and not empty: give a new one", file=order.checkpoint)
        if tables.names():
            raise OutputError("this exists and is not of this checkpoint: give a new one", file=order.tables.shown)
        known = about | {"id": secrets.token_hex(8)}
        _write_about(checkpoint, known)
    elif other is None and (tables.names() or any(name.startswith("offsets/") for name in checkpoint.names())):
        raise OutputError(f"the tables of the checkpoint {order.checkpoint} are not here", file=order.tables.shown)
    if other is None:
        _write_about(tables, known)
    elif other["id"] != known["id"]:
        raise OutputError(f"these tables are of another checkpoint than {order.checkpoint}", file=order.tables.shown)
    for name, value in about.items():
        if known[name] != value:
            raise InputError(f"the checkpoint was begun with {name} {known[name]}, not {value}", file=order.checkpoint)


def _about(place: OutputPlace) -> dict[str, Any] | None:
    data = place.read(ABOUT)
    if data is None:
        return None
    try:
        about = json.loads(data)
        return {name: about[name] for name in ("id", "profile", "kafka")}
    except (ValueError, KeyError, TypeError):
        raise InputError("this was not written by follow", file=f"{place.shown}/{ABOUT}") from None


def _write_about(place: OutputPlace, about: Mapping[str, Any]) -> None:
    place.put(ABOUT, lambda file: file.write(json.dumps(about).encode()))


def run(spark: SparkSession, order: FollowOrder, stop: threading.Event, tell: Callable[[str], None]) -> Followed:
    """Follow until all is read that was there, or ``stop`` is set.

    Args:
        tell: told what happens on the way.

    Raises:
        OffsetsLogError: what ended it otherwise.
    """
    for is_last in (*[False] * (ATTEMPTS - 1), True):
        query = start(spark, order)
        try:
            while not (stop.is_set() or query.awaitTermination(LOOK_S)):
                pass
            break
        except PySparkException as error:
            if is_last or TOO_SLOW not in str(error):
                raise own_error(error) or InputError(f"Spark ended the stream: {cause_of(error)}") from None
            tell("a process of Python did not start in time; it is tried again")
        finally:
            query.stop()
    if stop.is_set():
        tell("it is ended; the same command goes on from here")
    return _followed(order)


def _followed(order: FollowOrder) -> Followed:
    tables, counts = order.tables, dict.fromkeys(TABLES, 0)
    problems: list[Row] = []
    for kind in TABLES:
        for name in tables.names(kind):
            table = tables.table(name)
            counts[kind] += len(table)
            problems += table.to_pylist() if kind == "problems" else ()
    harm = [row for row in problems if row["kind"] not in NO_HARM]
    words = [f"{row['kind']}: {_in_words(row)}" for row in harm[:SHOWN]]
    if harm:
        words.append(f"not everything could be read: {counted(len(harm), 'problem')}, told in {order.to}/problems")
    summary = f"{counted(counts['offsets'], 'offset')}, {counted(counts['groups'], 'group')}"
    return Followed(f"{summary}; by the rules of {rules_in_words(order.reading.profile)}", tuple(words), bool(harm))


SHOWN = 5


def _in_words(row: Row) -> str:
    at = "" if row["position"] is None else f" at position {row['position']}"
    return row["problem"] if row["kind"] == "missing" else f"{row['file']}{at}: {row['problem']}"
