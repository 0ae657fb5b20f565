"""The programs compact, rebuild and replay: tasks read logs and write Parquet, the driver puts it into its place.

A task has an offsets partition, and writes its file of each table. A log above ``cut_bytes`` is read in pieces by the
whole cluster; their states meet packed in one task (`columnar.shuffle.packed`), which joins them as threads do. Files
stand in a folder beside the output until all is written and told; then this gets the output's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.folds.replay import Replay, Replayed
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.packed import join, pack
from offsets_log.log_format.primitives import Uuid
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import counted
from spark_jobs.account import Account, load_in_words
from spark_jobs.answers import Answers, Told, add_outcomes
from spark_jobs.beside import BesideOptions, Directories
from spark_jobs.days import write_days
from spark_jobs.files import LogFiles, is_parquet, no_logs
from spark_jobs.options import SourceOptions
from spark_jobs.places import OutputPlace
from spark_jobs.planning import Plan, open_found, pieces_of, plan
from spark_jobs.records import by_partition
from spark_jobs.rows import WITH_MEMBERS, Piece, rows

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
        tables: folder → the table that is written there; "" for the place itself.
    """

    place: OutputPlace
    reading: SourceOptions
    told: Told
    tables: Mapping[str, str]
    as_broker: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether members of groups are read."""
        return any(table in WITH_MEMBERS for table in self.tables.values())

    def write(self, number: int, answers: Answers) -> Row:
        """Write the tables of a log, and return its facts."""
        name = f"part-{number:05}-partition-{partition_name(answers.log.offsets_partition)}.parquet"
        failure = answers.held.failure
        is_left_out = self.as_broker and failure is not None and not failure.is_served
        counts = {}
        for folder, kind in self.tables.items():
            table = answers.table(kind)
            table = table[:0] if is_left_out and kind != "loads" else table
            self.place.put_table(f"{folder}/{name}".lstrip("/"), table)
            counts[folder] = len(table)
        return answers.facts() | {"counts": counts, "number": number}


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
    facts: list[Row] = [json.loads(row["told"]) for frame in frames for row in frame.collect()]
    return sorted(facts, key=lambda one: int(one["number"]))


def _write_log(logs: Sequence[tuple[int, LogFiles]], work: Work, at: int) -> Iterator[pa.RecordBatch]:
    number, files = logs[at]
    with ExitStack() as stack:
        answers = Answers(files.open(stack), work.reading, work.told, stack, whole=work.is_whole)
        yield told_batch(work.write(number, answers))


def _replay(files: LogFiles, work: Work, count: int, stack: ExitStack) -> Replay:
    log, reading = files.open(stack), work.reading
    return Replay(
        log, reading.rules, until=reading.until(log.offsets_partition), release=reading.kafka, pieces=count,
        notes_activity=work.is_whole,
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
            state, carried = join([b"".join(data) for data in parts.values()], replay, seen.append)
            replayed = Replayed(replay.order.log, replay.order.layout, state)
            done = (replayed, stack.enter_context(carried), seen)
            answers = Answers(replayed.log, work.reading, work.told, stack, replayed=done, whole=work.is_whole)
            return pa.Table.from_batches([told_batch(work.write(number, answers))])

    return join_one


# ------------------------------------------------------------------------------------------------ programs


@dataclass(frozen=True, slots=True)
class Ended:
    """What is said of a run at its end."""

    summary: str
    account: Account


def _run(
    spark: Callable[[], SparkSession], order: JobOptions, tables: Mapping[str, str], finish: Callable[..., str]
) -> Ended:
    """Write tables by tasks, then what the driver knows, then tell; put all into its place last.

    Args:
        spark: waits for the session, which may still begin while logs are found.
        finish: does what is left, and returns the summary.
    """
    output = OutputPlace(order.output, order.store_options)
    reading = order.reading
    with ExitStack() as stack:
        is_parquet_given = is_parquet(reading.paths, reading.storage_options)
        opened = no_logs(stack) if is_parquet_given else open_found(reading, stack)
        for place in (output, *([OutputPlace(order.quarantine, order.store_options)] if order.quarantine else [])):
            place.check_free(reading.paths)
        directories = Directories(opened, reading, order.beside)
        found = plan(opened)
        told = directories.told(found.told)
        staged = stack.enter_context(output.staged())
        work = Work(staged, reading, told, tables, order.as_broker)
        run = partial(write_frame, spark()) if is_parquet_given else partial(run_tasks, spark())
        facts = run(dict(enumerate(found.logs)), work)
        for one in facts:
            if one["decided"] is not None and told.outcomes is not None:
                add_outcomes(told.outcomes, one["decided"])
        account = Account.of(facts, found.notes, found.absent)
        summary = finish(spark(), found, work, facts, directories, account)
        directories.tell(account)
        if order.strict:
            account.refuse()
        if order.quarantine is not None:
            keep_quarantine(order, account)
    return Ended(f"{summary}, {counted(account.partitions, 'partition')}; profile {reading.profile}", account)


def write_frame(spark: SparkSession, logs: Mapping[int, LogFiles], work: Work) -> list[Row]:
    """Have tasks write the tables of records in Parquet, as `run_tasks`."""

    def make(answers: Answers) -> pa.Table:
        return pa.Table.from_batches([told_batch(work.write(answers.log.offsets_partition or 0, answers))])

    frame = by_partition(spark.read.parquet(*work.reading.paths), work.reading, work.told, make, TOLD)
    facts: list[Row] = [json.loads(row["told"]) for row in frame.collect()]
    return sorted(facts, key=lambda one: int(one["number"]))


QUARANTINE = pa.schema(
    [("file", pa.string()), ("position", pa.int64()), ("record_offset", pa.int64()), ("field", pa.string()),
     ("kind", pa.string()), ("problem", pa.string()), ("raw_base64", pa.string())]
)  # fmt: skip


def keep_quarantine(order: JobOptions, account: Account) -> None:
    """Write pieces that could not be read, in the form of the command line's quarantine."""
    assert order.quarantine is not None
    with OutputPlace(order.quarantine, order.store_options).staged() as place:
        place.put_table("part-00000.parquet", pa.Table.from_pylist(account.damages, QUARANTINE))


def _add_lag(directories: Directories, place: OutputPlace, folder: str) -> None:
    """Append the columns of lag to offsets that are written, if they are told."""
    if directories.logs is not None:
        for name in place.names(folder):
            place.put_table(name, directories.with_lag(place.table(name)))


def compact(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write the latest served offset of every group, topic and partition."""

    def finish(
        spark: SparkSession, found: Plan, work: Work, facts: list[Row], directories: Directories, account: Account
    ) -> str:
        _add_lag(directories, work.place, "")
        return counted(sum(one["counts"][""] for one in facts), "offset")

    return _run(spark, order, {"": "committed"}, finish)


REBUILT = {name: name for name in ("pending", "orphans", "members", "loads")} | {
    "offsets": "committed", "groups": "documents",
}  # fmt: skip


def rebuild(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write groups, members, offsets, pending and share groups' offsets after loading, as a table each."""

    def finish(
        spark: SparkSession, found: Plan, work: Work, facts: list[Row], directories: Directories, account: Account
    ) -> str:
        _name_again(spark, found, work, facts)
        _add_lag(directories, work.place, "offsets")
        if (share_offsets := directories.share_offsets()) is not None:
            work.place.put_table("share_offsets/part-00000.parquet", share_offsets)
        for one in facts:
            account.words += load_in_words(one, work.reading.profile)
        counts = {name: sum(one["counts"][name] for one in facts) for name in REBUILT}
        return ", ".join(f"{counts[name]} {name}" for name in ("groups", "offsets", "pending"))

    return _run(spark, order, REBUILT, finish)


def _name_again(spark: SparkSession, found: Plan, work: Work, facts: list[Row]) -> None:
    """Write again the groups of logs whose members' topics only records of other logs name."""
    names: dict[str, str] = {}
    for one in reversed(facts):
        names |= one["names"]
    lacking = [
        one["number"] for one in facts if any(names.get(topic_id) != name for topic_id, name in one["asked"].items())
    ]
    if lacking:
        known = {bytes(Uuid.from_text(topic_id)): name for topic_id, name in names.items()}
        told = replace(work.told, topic_ids=known | dict(work.told.topic_ids))
        tables = {name: kind for name, kind in work.tables.items() if kind in WITH_MEMBERS}
        run_tasks(spark, {number: found.logs[number] for number in lacking}, replace(work, told=told, tables=tables))


def replay(spark: Callable[[], SparkSession], order: JobOptions) -> Ended:
    """Write all records as a table by offsets partition and day."""
    reading = replace(order.reading, level="records")

    def finish(
        spark: SparkSession, found: Plan, work: Work, facts: list[Row], directories: Directories, account: Account
    ) -> str:
        pieces = [piece for files in found.logs for piece in pieces_of(files, reading, is_cut=True)]
        frame = in_tasks(spark, len(pieces), partial(_write_records, pieces, reading, work.place), TOLD)
        written = sum(json.loads(row["told"])["rows"] for row in frame.collect())
        if not written:
            work.place.put_table("part-00000.parquet", schema_of(EVENT_COLUMNS).empty_table())
        return counted(account.records, "record")

    return _run(spark, order, {}, finish)


def _write_records(
    pieces: Sequence[Piece], reading: SourceOptions, place: OutputPlace, at: int
) -> Iterator[pa.RecordBatch]:
    piece = pieces[at]
    written = write_days(place, rows(piece, reading), piece.files.offsets_partition, f"{at:05}")
    yield told_batch({"rows": written})


JOBS = {"compact": compact, "rebuild": rebuild, "replay": replay}
