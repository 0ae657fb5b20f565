"""The programs compact, rebuild and replay: tasks read logs and write Parquet, the driver puts it into its place.

A task has an offsets partition, and writes its file of each table. A log above ``cut_bytes`` is read in pieces by the
whole cluster; their states meet packed in one task (`columnar.shuffle.packed`), which joins them as threads do. Files
stand in a folder beside the output until all is written and told; then this gets the output's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.materialize.arrow import schema_of, table_of_rows
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.packed import join, pack
from offsets_log.data_directory.share_offsets import SHARE_OFFSET_COLUMNS
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.questions.offsets_tables import with_lag
from offsets_log.rows.tables import Row, partition_name
from offsets_log.session.share_offsets import share_offsets_of
from offsets_log.words import counted
from spark_jobs.answers import OneLog, Told, Written, compacted, looked_at, rebuilt, rows
from spark_jobs.directories import Directory
from spark_jobs.driver import Driver, JobOptions, parts_to_read
from spark_jobs.files import LogFiles
from spark_jobs.kernels import Kernels, kernels_for
from spark_jobs.options import SourceOptions

TOLD = "number int, told string"
TOLD_SCHEMA = pa.schema({"number": pa.int32(), "told": pa.string()})
PACKED = "log int, piece int, part int, data binary"
PACKED_SCHEMA = pa.schema({"log": pa.int32(), "piece": pa.int32(), "part": pa.int32(), "data": pa.binary()})
PART_BYTES = 64 << 20
"""A row that carries a piece's state has so much of it at most."""


@dataclass(frozen=True, slots=True)
class Work:
    """What all tasks of a program have.

    Attributes:
        write: makes the tables of a log.
    """

    place: Directory
    reading: SourceOptions
    told: Told
    write: Callable[[OneLog], Written]
    kernels: Kernels

    def put(self, number: int, one: OneLog) -> Row:
        """Write the tables of a log, and return what is told of it."""
        name = file_name(number, one.log)
        tables, facts = self.write(one)
        for folder, table in tables.items():
            self.place.put_table(f"{folder}/{name}".lstrip("/"), table)
        return facts | {"counts": {folder: len(table) for folder, table in tables.items()}}


@dataclass(frozen=True, slots=True)
class Piece:
    """One of so many pieces of a large log, which has a number."""

    log: int
    files: LogFiles
    number: int
    count: int


def file_name(number: int, log: PartitionLog) -> str:
    """Return the name of a file of rows of a log."""
    return f"part-{number:05}-partition-{partition_name(log.offsets_partition)}.parquet"


def in_tasks(
    spark: SparkSession, count: int, work: Callable[[int], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """Return what becomes of so many numbers, each in a task of its own."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(number)

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(run, schema)


def told_batch(number: int, told: Any) -> pa.RecordBatch:
    """Return what is told of a number, plain data, as a row of `TOLD`."""
    return pa.RecordBatch.from_pylist([{"number": number, "told": json.dumps(told)}], TOLD_SCHEMA)


def told_by(*frames: DataFrame) -> list[Any]:
    """Return what is told in frames of `TOLD`, in the order of the numbers."""
    rows = sorted((row["number"], row["told"]) for frame in frames for row in frame.collect())
    return [json.loads(told) for _, told in rows]


def ask_tasks(spark: SparkSession, count: int, ask: Callable[[int], Any]) -> DataFrame:
    """Return what a function tells of so many numbers, each in a task of its own, as `TOLD`."""
    return in_tasks(spark, count, lambda number: iter([told_batch(number, ask(number))]), TOLD)


def run_tasks(spark: SparkSession, logs: Sequence[tuple[int, LogFiles]], work: Work) -> list[Row]:
    """Have tasks write the tables of all logs, which have numbers; return the facts of each, in their order."""
    pieces = [piece for number, files in logs for piece in _pieces(number, files, work.reading)]
    whole, cut = ([piece for piece in pieces if (piece.count > 1) is is_cut] for is_cut in (False, True))
    frames = []
    if whole:
        frames.append(in_tasks(spark, len(whole), partial(_write_log, whole, work), TOLD))
    if cut:
        packed = in_tasks(spark, len(cut), partial(_pack_piece, cut, work), PACKED)
        frames.append(packed.groupBy("log").applyInArrow(_joiner({one.log: one for one in cut}, work), TOLD))
    return told_by(*frames)


def _pieces(number: int, files: LogFiles, reading: SourceOptions) -> list[Piece]:
    """Return one piece, or several of a large log; up to a time it is read whole, as for records."""
    count = 1 if reading.until_time is not None else max(-(-files.size_bytes // reading.cut_bytes), 1)
    return [Piece(number, files, at, count) for at in range(count)]


def _write_log(pieces: Sequence[Piece], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    piece = pieces[at]
    with ExitStack() as stack:
        one = OneLog(piece.files.open(stack), work.reading, work.told, stack)
        yield told_batch(piece.log, work.put(piece.log, one))


def _replay(piece: Piece, work: Work, stack: ExitStack) -> Replay:
    """Begin to replay the log that a piece is of, in as many."""
    log, reading = piece.files.open(stack), work.reading
    until, count = reading.until(log.offsets_partition), piece.count
    return Replay(log, reading.rules, until=until, release=reading.kafka, pieces=count, notes_activity=True)


def _pack_piece(pieces: Sequence[Piece], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    """Yield what became of a piece; nothing where the log has no such cut."""
    piece = pieces[at]
    with ExitStack() as stack:
        replay = _replay(piece, work, stack)
        if piece.number >= len(replay.cuts):
            return
        part = replay.replay_piece(replay.cuts[piece.number], replay.ends[piece.number], lambda size_bytes: None)
        data = pack(part, replay.order.layout)
        for i, begin in enumerate(range(0, len(data), PART_BYTES)):
            row = {"log": piece.log, "piece": piece.number, "part": i, "data": data[begin : begin + PART_BYTES]}
            yield pa.RecordBatch.from_pylist([row], PACKED_SCHEMA)


def _joiner(pieces: Mapping[int, Piece], work: Work) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Return the function that joins the pieces of a log, writes its tables and tells its facts."""

    def join_one(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        number = key[0].as_py()
        rows = table.sort_by([("piece", "ascending"), ("part", "ascending")]).to_pylist()
        packed = [b"".join(row["data"] for row in of_piece) for _, of_piece in groupby(rows, itemgetter("piece"))]
        with ExitStack() as stack:
            replay = _replay(pieces[number], work, stack)
            seen: list[Seen] = []
            joined = join(packed, replay, seen.append), seen
            one = OneLog(replay.order.log, work.reading, work.told, stack, joined=joined)
            return pa.Table.from_batches([told_batch(number, work.put(number, one))])

    return join_one


@dataclass(frozen=True, slots=True)
class Run:
    """What tasks have written of all logs: the facts of each, and what they were told."""

    spark: SparkSession
    logs: Sequence[LogFiles]
    work: Work
    facts: Sequence[Row]
    driver: Driver

    def count(self, folder: str) -> int:
        """Return how many rows a table has."""
        return sum(one["counts"][folder] for one in self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a program does.

    Attributes:
        write: makes the tables of a log.
        finish: does what is left when tasks have written, and returns the result in words.
        offsets: the folder of the offsets that lag is appended to; None where there are none.
        levels: those that tasks read.
        tells_loads: whether words do not tell yet which logs a coordinator would not load.
        shows_outcomes: whether to tell what becomes of open transactions.
    """

    write: Callable[[OneLog], Written]
    finish: Callable[[Run], str]
    offsets: str | None = None
    levels: Sequence[str] = ("offsets",)
    tells_loads: bool = False
    shows_outcomes: bool = False


def run(spark: Callable[[], SparkSession], job: str, order: JobOptions) -> tuple[int, Sequence[str]]:
    """Have tasks write tables, write what the driver knows, then tell; all comes into its place last.

    Args:
        spark: waits for the session, which may still begin while logs are found.

    Returns:
        The exit status, and what is said.
    """
    program, reading = PROGRAMS[job], order.reading
    with ExitStack() as stack:
        driver = Driver(order, stack, shows_outcomes=program.shows_outcomes)
        output = Directory(order.output, tuple(sorted(reading.storage_options.items())))
        output.check_free()
        output.refuse_inside(reading.paths)
        found, kernels = driver.plan, kernels_for(*program.levels)
        work = Work(stack.enter_context(output.staged()), reading, found.told, program.write, kernels)
        facts = run_tasks(spark(), [*enumerate(found.logs)], work)
        driver.take(facts)
        words = program.finish(Run(spark(), found.logs, work, facts, driver))
        if program.offsets is not None and driver.lag is not None:
            for name in work.place.names(program.offsets):
                work.place.put_table(name, with_lag(work.place.table(name), driver.lag, order.now_ms))
        driver.finish(f"{words}, {counted(len(facts), 'partition')}", tells_loads=program.tells_loads)
    return driver.session.account.exit_status, driver.remarks


def _finish_rebuild(run: Run) -> str:
    _name_again(run)
    if (found := share_offsets_of(run.driver.session, run.driver.lag)) is not None:
        share_offsets = table_of_rows(found.rows(), SHARE_OFFSET_COLUMNS)
        run.work.place.put_table("share_offsets/part-00000.parquet", share_offsets)
    return ", ".join(f"{run.count(name)} {name}" for name in ("groups", "offsets", "pending"))


def _name_again(run: Run) -> None:
    """Write logs again whose members' topics only records of other logs name."""
    names: dict[str, str] = {}
    for one in reversed(run.facts):
        names |= one["names"]
    lacking = [
        (number, files)
        for (number, files), one in zip(enumerate(run.logs), run.facts, strict=True)
        if any(names.get(topic_id) != name for topic_id, name in one["asked"].items())
    ]
    if lacking:
        told = run.work.told
        known = {bytes(Uuid.from_text(topic_id)): name for topic_id, name in names.items()} | dict(told.topic_ids)
        run_tasks(run.spark, lacking, replace(run.work, told=replace(told, topic_ids=known)))


def _finish_replay(run: Run) -> str:
    """Write all records."""
    reading = replace(run.work.reading, level="records")
    parts, work = parts_to_read(run.logs, reading), replace(run.work, reading=reading)
    return counted(sum(told_by(ask_tasks(run.spark, len(parts), partial(_write_records, parts, work)))), "record")


def _write_records(parts: Sequence[LogFiles], work: Work, at: int) -> int:
    tables = rows(parts[at], work.reading, work.told)
    return work.place.put_tables(file_name(at, parts[at].log), schema_of(EVENT_COLUMNS), tables)


PROGRAMS = {
    "compact": Program(
        write=compacted, finish=lambda run: counted(run.count(""), "offset"), offsets="", tells_loads=True
    ),
    "rebuild": Program(write=rebuilt, finish=_finish_rebuild, offsets="offsets", shows_outcomes=True),
    "replay": Program(write=looked_at, finish=_finish_replay, levels=("offsets", "records")),
}
