"""Tables of DataFrames of records: from Kafka's source, the levels ``records`` and ``raw_records``, Parquet of decode.

The columns tell which it is. A task has the records of an offsets partition, and replays them record by record with
`offsets_log.pipeline`: files are read much faster.

Kafka's source shows neither producer ids nor transaction markers: commits in a transaction, ended or not, cannot be
distinguished from other commits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from offsets_log.columnar.events.rows import TOLD
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.dumps.events_parquet import offset_commit_of
from offsets_log.errors import Damage, InputError, OffsetsLogError
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.batch import CONTROL_MASK, NO_TIMESTAMP, TRANSACTIONAL_MASK, RecordBatch
from offsets_log.log_format.control_record import ControlRecord, decode_control_record
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record, encode_coordinator_record
from offsets_log.rows.tables import Row
from spark_jobs.answers import NOTHING_TOLD, Answers, Told
from spark_jobs.levels import as_read, columns_of
from spark_jobs.options import LEVELS, SourceOptions
from spark_jobs.source import schema_text

KAFKA_COLUMNS = frozenset({"key", "value", "partition", "offset"})
EVENT_COLUMNS = frozenset({"record_type", "committed_offset", "record_offset", "offsets_partition"})
BATCH_FACTS = {"producerId": -1, "producerEpoch": -1, "isTransactional": False, "isControl": False}
"""Columns that Kafka's source does not have, and the values used instead."""
OFFSET_FIELDS = ("group", "topic", "partition", *TOLD.values())
OF_TAGS = frozenset(column for field, column in TOLD.items() if field.tag is not None)
"""Columns that tables which are older than the tagged field do not have."""
RECORD_NAMES = tuple(
    dict.fromkeys(
        (*sorted(EVENT_COLUMNS), *OFFSET_FIELDS, "producer_id", "producer_epoch", "is_transactional", "is_control",
         "value_version", "is_tombstone", "key", "value", "file", "timestamp_ms")
    )
)  # fmt: skip
"""Columns of the level ``events`` from which a record and its batch are rebuilt."""


RUN = 10_000
OF_STATES = tuple(level for level in LEVELS if level not in ("history", "transactions", "records", "raw_records"))
UNDECIDED = (
    "this DataFrame has no isTransactional column, as Kafka's source has none: whether an offset was committed in a "
    "transaction, and whether that ended, cannot be told; all commits are taken as plain ones"
)


class UndecidedWarning(UserWarning):
    """Warns that transactions cannot be resolved."""


class UnknownColumnsError(ValueError):
    """A DataFrame whose columns are not those of any kind that is taken."""


def table_of(frame: DataFrame, level: str = "offsets", *, profile: str = "modern", **options: Any) -> DataFrame:
    """Return a level of a DataFrame of records, as `format("offsets_log")` has it of files.

    Of ``offsets`` there is the column ``unstable`` too: null where the records do not tell transactions.

    Args:
        options: further attributes of `SourceOptions`, such as ``group=("billing-*",)``.

    Raises:
        UnknownColumnsError: it has other columns.
        InputError: there is no such level of records.
    """
    if level not in OF_STATES:
        raise InputError(f"records lead to the levels {', '.join(OF_STATES)}, not {level}")
    reading = SourceOptions(paths=(), level=level, profile=profile, unstable=level == "offsets", **options)
    columns = columns_of(reading)
    names, schema = [column.name for column in columns], schema_of(columns)

    def make(answers: Answers) -> pa.Table:
        return as_read(answers.level(level), names, schema)

    return by_partition(frame, reading, NOTHING_TOLD, make, schema_text(columns))


def by_partition(
    frame: DataFrame, reading: SourceOptions, told: Told, make: Callable[[Answers], pa.Table], schema: str
) -> DataFrame:
    """Return what is made of the answers of each offsets partition, of which one task has all records."""
    names = set(frame.columns)
    if names >= EVENT_COLUMNS:
        records = frame.select(*(name for name in RECORD_NAMES if name in names or name not in OF_TAGS))
        partition, offset, read = "offsets_partition", "record_offset", _event_record
        tells_transactions = True
    elif names >= KAFKA_COLUMNS:
        facts = [f.col(name) if name in names else f.lit(default).alias(name) for name, default in BATCH_FACTS.items()]
        time_ms = f.unix_millis("timestamp") if "timestamp" in names else f.lit(NO_TIMESTAMP)
        records = frame.select("key", "value", "partition", "offset", time_ms.alias("timestamp_ms"), *facts)
        partition, offset, read = "partition", "offset", _kafka_record
        tells_transactions = "isTransactional" in names
    else:
        raise UnknownColumnsError(
            "the DataFrame has none of the columns that are read: those of Kafka's source (key, value, partition, "
            "offset), or of the levels records and raw_records of format offsets_log"
        )
    if not tells_transactions:
        warnings.warn(UNDECIDED, UndecidedWarning, stacklevel=3)

    def replay_one(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        ordered = table.sort_by(offset)
        rows = (row for batch in ordered.to_batches(max_chunksize=RUN) for row in batch.to_pylist())
        segment = Segment("", None, b"", missing_columns=frozenset() if tells_transactions else UNTOLD)
        log = PartitionLog(key[0].as_py(), (segment,), selection=SELECTION)
        with ExitStack() as stack:
            return make(Answers(log, reading, told, stack, events=_each_once(map(read, rows))))

    return records.groupBy(partition).applyInArrow(replay_one, schema)


SELECTION = "records hold what was put into them"
"""Why nothing is reported missing around them."""
UNTOLD = frozenset({"is_transactional"})


def _each_once(records: Iterator[tuple[Record, RecordBatch]]) -> Iterator[LogEvent]:
    """Yield records in log order as events; one that comes twice counts once."""
    last = -1
    for record, batch in records:
        if record.offset > last:
            last = record.offset
            yield _event(record, batch)


_SEGMENT = Segment("", None, b"")


def _event(record: Record, batch: RecordBatch) -> Event:
    control: ControlRecord | None = None
    decoded: CoordinatorRecord | None = None
    damage = None
    try:
        if batch.is_control:
            control = decode_control_record(record)
        else:
            decoded = decode_coordinator_record(record.key, record.value)
    except OffsetsLogError as error:
        error.at(record_offset=record.offset)
        damage = Damage(error, (record.key or b"") + (record.value or b""))
    return Event(
        segment=_SEGMENT, offsets_partition=None, batch=batch, batch_base_offset=record.offset, record=record,
        control=control, decoded=decoded, damage=damage,
    )  # fmt: skip


def _batch(offset: int, producer_id: int, producer_epoch: int, transactional: bool, control: bool) -> RecordBatch:
    """Return a batch of one record."""
    attributes = TRANSACTIONAL_MASK * transactional | CONTROL_MASK * control
    return RecordBatch(
        position=0, raw=b"", magic=2, crc=0, attributes=attributes, base_offset=offset, last_offset=offset,
        producer_id=producer_id, producer_epoch=producer_epoch,
    )  # fmt: skip


def _kafka_record(row: Row) -> tuple[Record, RecordBatch]:
    batch = _batch(row["offset"], *(row[name] for name in BATCH_FACTS))
    return Record(offset=row["offset"], key=row["key"], value=row["value"], timestamp_ms=row["timestamp_ms"]), batch


def _event_record(row: Row) -> tuple[Record, RecordBatch]:
    """Return the record of a row of events: offset commits are rebuilt from columns, all others from their bytes."""
    offset = row["record_offset"]
    batch = _batch(offset, row["producer_id"], row["producer_epoch"], row["is_transactional"], row["is_control"])
    key, value = row["key"], row["value"]
    if key is None and row["record_type"] in (0, 1) and row["group"] is not None:
        key, value = encode_coordinator_record(offset_commit_of(row))
    return Record(offset=offset, key=key, value=value, timestamp_ms=row.get("timestamp_ms", NO_TIMESTAMP)), batch
