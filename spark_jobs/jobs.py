"""The programs compact, rebuild and replay: tasks read logs and write Parquet, the driver puts it into its place.

A task has an offsets partition, and writes its file of each table. A log above ``cut_bytes`` is read in pieces by the
whole cluster; their states meet packed in one task (`columnar.shuffle.packed`), which joins them as threads do. Files
stand in a folder beside the output until all is written and told; then this gets the output's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.packed import join, pack
from offsets_log.log_format.primitives import Uuid
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted
from spark_jobs.answers import OneLog, Told, Written, compacted, looked_at, rebuilt
from spark_jobs.days import write_days
from spark_jobs.directories import Directory
from spark_jobs.driver import BesideOptions, Driver, Plan, pieces_of
from spark_jobs.files import LogFiles, find_logs, is_parquet, no_logs
from spark_jobs.kernels import Kernels, kernels_for
from spark_jobs.options import SourceOptions
from spark_jobs.records import by_partition
from spark_jobs.rows import Piece, rows

TOLD = "told string"
PACKED = "log int, piece int, part int, data binary"
PART_BYTES = 64 << 20
"""A row that carries a piece's state has so much of it at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of a job, the same for all jobs.

    Attributes:
        output, quarantine: directories to make.
        strict: write nothing if something could not be read.
        as_broker: leave out partitions whose load would fail.
    """

    reading: SourceOptions
    output: str
    quarantine: str | None = None
    strict: bool = False
    as_broker: bool = False
    beside: BesideOptions = field(default_factory=BesideOptions)

    @property
    def store_options(self) -> tuple[tuple[str, Any], ...]:
        """Options of the outputs' store."""
        return tuple(sorted(self.reading.storage_options.items()))


@dataclass(frozen=True, slots=True)
class Work:
    """What all tasks of a program have.

    Attributes:
        write: makes the tables of a log.
        folders: those of its tables that are written; None for all.
    """

    place: Directory
    reading: SourceOptions
    told: Told
    write: Callable[[OneLog], Written]
    kernels: Kernels
    folders: Collection[str] | None = None

    def put(self, number: int, one: OneLog) -> Row:
        """Write the tables of a log, and return what is told of it."""
        name = f"part-{number:05}-partition-{partition_name(one.log.offsets_partition)}.parquet"
        tables, facts = self.write(one)
        for folder, table in tables.items():
            if self.folders is None or folder in self.folders:
                self.place.put_table(f"{folder}/{name}".lstrip("/"), table)
        return facts | {"counts": {folder: len(table) for folder, table in tables.items()}, "number": number}


# ------------------------------------------------------------------------------------------------ tasks


def in_tasks(
    spark: SparkSession, count: int, work: Callable[[int], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """Return what becomes of so many numbers, each in a task of its own."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(number)

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(run, schema)


def told_batch(facts: Any) -> pa.RecordBatch:
    return pa.record_batch([pa.array([json.dumps(facts)], pa.string())], ["told"])


def facts_of(frames: Iterable[DataFrame]) -> list[Row]:
    """Return what tasks have told of logs, in the order of these."""
    facts: list[Row] = [json.loads(row["told"]) for frame in frames for row in frame.collect()]
    return sorted(facts, key=lambda one: int(one["number"]))


def run_tasks(spark: SparkSession, logs: Mapping[int, LogFiles], work: Work) -> list[Row]:
    """Have tasks write the tables of all logs, which have numbers; return the facts of each, in their order."""
    in_pieces = {number: pieces_of(files, work.reading, is_cut=True) for number, files in logs.items()}
    whole = [(number, logs[number]) for number, pieces in in_pieces.items() if len(pieces) == 1]
    cut = [(number, piece) for number, pieces in in_pieces.items() if len(pieces) > 1 for piece in pieces]
    frames = []
    if whole:
        frames.append(in_tasks(spark, len(whole), partial(_write_log, whole, work), TOLD))
    if cut:
        packed = in_tasks(spark, len(cut), partial(_pack_piece, cut, work), PACKED)
        frames.append(
            packed.groupBy("log").applyInArrow(_joiner({number: logs[number] for number, _ in cut}, work), TOLD)
        )
    return facts_of(frames)


def _write_log(logs: Sequence[tuple[int, LogFiles]], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    number, files = logs[at]
    with ExitStack() as stack:
        yield told_batch(work.put(number, OneLog(files.open(stack), work.reading, work.told, stack)))


def _replay(files: LogFiles, work: Work, count: int, stack: ExitStack) -> Replay:
    log, reading = files.open(stack), work.reading
    return Replay(
        log, reading.rules, until=reading.until(log.offsets_partition), release=reading.kafka, pieces=count
    )  # fmt: skip


def _pack_piece(pieces: Sequence[tuple[int, Piece]], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    """Yield what became of a piece; nothing where the log has no such cut."""
    number, piece = pieces[at]
    with ExitStack() as stack:
        replay = _replay(piece.files, work, piece.count, stack)
        if piece.number >= len(replay.cuts):
            return
        part = replay.replay_piece(replay.cuts[piece.number], replay.ends[piece.number], lambda size_bytes: None)
        data = pack(part, replay.order.layout)
        for i, begin in enumerate(range(0, len(data), PART_BYTES)):
            columns = [[number], [piece.number], [i], [data[begin : begin + PART_BYTES]]]
            kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary())
            arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.record_batch(arrays, ["log", "piece", "part", "data"])


def _joiner(logs: Mapping[int, LogFiles], work: Work) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Return the function that joins the pieces of a log, writes its tables and tells its facts."""

    def join_one(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        number = key[0].as_py()
        parts: dict[int, list[bytes]] = {}
        for row in table.sort_by([("piece", "ascending"), ("part", "ascending")]).to_pylist():
            parts.setdefault(row["piece"], []).append(row["data"])
        count = len(pieces_of(logs[number], work.reading, is_cut=True))
        with ExitStack() as stack:
            replay = _replay(logs[number], work, count, stack)
            seen: list[Seen] = []
            joined = join([b"".join(data) for data in parts.values()], replay, seen.append), seen
            one = OneLog(replay.order.log, work.reading, work.told, stack, joined=joined)
            return pa.Table.from_batches([told_batch(work.put(number, one))])

    return join_one


# ------------------------------------------------------------------------------------------------ programs


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run: its exit status, and what is said."""

    status: int
    words: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a program does.

    Attributes:
        write: makes the tables of a log.
        finish: does what is left when tasks have written, and returns the result in words.
        offsets: the folder of the offsets that lag is appended to; None where there are none.
        tells_loads: whether words do not tell yet which logs a coordinator would not load.
        levels: those that tasks read.
    """

    write: Callable[[OneLog], Written]
    finish: Callable[[SparkSession, Plan, Work, list[Row], Driver], str]
    offsets: str | None = None
    tells_loads: bool = False
    levels: Sequence[str] = ("offsets",)


def run(spark: Callable[[], SparkSession], order: JobOptions, program: Program) -> Ended:
    """Have tasks write tables, write what the driver knows, then tell; all comes into its place last.

    Args:
        spark: waits for the session, which may still begin while logs are found.
    """
    output, reading = Directory(order.output, order.store_options), order.reading
    with ExitStack() as stack:
        is_of_records = is_parquet(reading.paths, reading.storage_options)
        opened = no_logs(stack) if is_of_records else find_logs(reading, stack)
        quarantine = Directory(order.quarantine, order.store_options) if order.quarantine else None
        for place in filter(None, (output, quarantine)):
            place.check_free(reading.paths)
        scope = replace(reading.scope, strict=order.strict, quarantine=order.quarantine)
        driver = Driver(scope, opened, reading, order.beside, stack)
        found = driver.plan
        kernels = kernels_for(*program.levels)
        work = Work(stack.enter_context(output.staged()), reading, found.told, program.write, kernels)
        facts = _of_records(spark(), work) if is_of_records else run_tasks(spark(), dict(enumerate(found.logs)), work)
        driver.take(facts)
        words = program.finish(spark(), found, work, facts, driver)
        if program.offsets is not None and driver.tells_lag:
            for name in work.place.names(program.offsets):
                work.place.put_table(name, driver.with_lag(work.place.table(name)))
        partitions = [one["offsets_partition"] for one in facts]
        words = f"{words}, {counted(len(partitions), 'partition')}"
        driver.finish(words, partitions, tells_loads=program.tells_loads)
        if quarantine is not None:
            place = stack.enter_context(quarantine.staged())
            place.put_table("part-00000.parquet", pa.Table.from_pylist(driver.damages, QUARANTINE))
    return Ended(driver.session.account.exit_status, driver.remarks)


def _of_records(spark: SparkSession, work: Work) -> list[Row]:
    """Have tasks write the tables of records in Parquet, as `run_tasks`."""

    def make(one: OneLog) -> pa.Table:
        return pa.Table.from_batches([told_batch(work.put(one.log.offsets_partition or 0, one))])

    return facts_of([by_partition(spark.read.parquet(*work.reading.paths), work.reading, work.told, make, TOLD)])


QUARANTINE = pa.schema(
    [("file", pa.string()), ("position", pa.int64()), ("record_offset", pa.int64()), ("field", pa.string()),
     ("kind", pa.string()), ("problem", pa.string()), ("raw_base64", pa.string())]
)  # fmt: skip
"""The columns of the command line's quarantine."""


def compact(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write the latest served offset of every group, topic and partition."""

    def finish(spark: SparkSession, found: Plan, work: Work, facts: list[Row], driver: Driver) -> str:
        return counted(sum(one["counts"][""] for one in facts), "offset")

    return run(spark, order, Program(write=compacted, finish=finish, offsets="", tells_loads=True))


def rebuild(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write groups, members, offsets, pending and share groups' offsets after loading, as a table each."""

    def finish(spark: SparkSession, found: Plan, work: Work, facts: list[Row], driver: Driver) -> str:
        _name_again(spark, found, work, facts)
        if (share_offsets := driver.share_offsets) is not None:
            work.place.put_table("share_offsets/part-00000.parquet", share_offsets)
        return ", ".join(f"{sum(one['counts'][name] for one in facts)} {name}" for name in TOLD_COUNTS)

    order = replace(order, beside=replace(order.beside, shows_outcomes=True))
    write = partial(rebuilt, as_broker=order.as_broker)
    return run(spark, order, Program(write=write, finish=finish, offsets="offsets"))


TOLD_COUNTS = ("groups", "offsets", "pending")


def _name_again(spark: SparkSession, found: Plan, work: Work, facts: list[Row]) -> None:
    """Write again the groups of logs whose members' topics only records of other logs name."""
    names: dict[str, str] = {}
    for one in reversed(facts):
        names |= one["names"]
    lacking = [
        one["number"] for one in facts if any(names.get(topic_id) != name for topic_id, name in one["asked"].items())
    ]
    if lacking and found.logs:
        known = {bytes(Uuid.from_text(topic_id)): name for topic_id, name in names.items()}
        told = replace(work.told, topic_ids=known | dict(work.told.topic_ids))
        again = replace(work, told=told, folders=("groups", "members"))
        run_tasks(spark, {number: found.logs[number] for number in lacking}, again)


def replay(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write all records as a table by offsets partition and day."""

    def finish(spark: SparkSession, found: Plan, work: Work, facts: list[Row], driver: Driver) -> str:
        pieces = [piece for files in found.logs for piece in pieces_of(files, work.reading, is_cut=True)]
        frame = in_tasks(spark, len(pieces), partial(_write_records, pieces, work), TOLD)
        written = sum(json.loads(row["told"]) for row in frame.collect())
        if not written:
            work.place.put_table("part-00000.parquet", schema_of(EVENT_COLUMNS).empty_table())
        return counted(written, "record")

    order = replace(order, reading=replace(order.reading, level="records"))
    return run(spark, order, Program(write=looked_at, finish=finish, levels=("offsets", "records")))


def _write_records(pieces: Sequence[Piece], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    yield told_batch(write_days(work.place, rows(pieces[at], work.reading), f"{at:05}"))


JOBS = {"compact": compact, "rebuild": rebuild, "replay": replay}
