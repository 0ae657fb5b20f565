"""Turn DataFrames of records to partial states: from Kafka's source, the levels ``records`` and ``events``, Parquet.

The columns tell which it is. Records are sorted to log order by ranges of (offsets partition, offset), and each range
is replayed as a piece, record by record, by `offsets_log.pipeline`. Files are read much faster at the level
``partials`` of the data source.

Kafka's source shows neither producer ids nor transaction markers: commits in a transaction, ended or not, cannot be
distinguished from other commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from offsets_log.columnar.events.rows import TOLD
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.shuffle.partials import PARTIAL_COLUMNS, table_of, table_of_partial
from offsets_log.dumps.events_parquet import offset_commit_of
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.events import Event, LogEvent
from offsets_log.log_format.batch import CONTROL_MASK, TRANSACTIONAL_MASK, RecordBatch
from offsets_log.log_format.control_record import ControlRecord, decode_control_record
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record, encode_coordinator_record
from offsets_log.replay.fold import replay_into
from offsets_log.replay.partial import PartialState
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.rows.tables import Row
from spark_jobs.pieces import seen_row
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
         "value_version", "is_tombstone", "key", "value", "file")
    )
)  # fmt: skip
"""Columns of the level ``events`` from which a record and its batch are rebuilt."""
RUN = 10_000


class UnknownColumnsError(ValueError):
    """A DataFrame whose columns are not those of any kind that the jobs take."""


SELECTION = "records hold what was put into them"
"""Why nothing is reported missing around them."""


def is_partials(frame: DataFrame) -> bool:
    """Return whether a DataFrame has the columns of partials."""
    return {"kind", "piece", "facts"} <= set(frame.columns)


def knows_transactions(frame: DataFrame) -> bool:
    """Return whether a DataFrame shows which offsets were committed in a transaction."""
    return is_partials(frame) or set(frame.columns) >= EVENT_COLUMNS or "isTransactional" in frame.columns


def partials_of(frame: DataFrame, profile: str) -> DataFrame:
    """Return the partial states of a DataFrame of records; a DataFrame of partials is returned as it is.

    Raises:
        UnknownColumnsError: it is neither.
    """
    names = set(frame.columns)
    if is_partials(frame):
        return frame
    if names >= EVENT_COLUMNS:
        records = frame.select(*(name for name in RECORD_NAMES if name in names or name not in OF_TAGS))
        order = ["offsets_partition", "record_offset"]
    elif names >= KAFKA_COLUMNS:
        facts = [f.col(name) if name in names else f.lit(default).alias(name) for name, default in BATCH_FACTS.items()]
        records = frame.select("key", "value", "partition", "offset", *facts)
        order = ["partition", "offset"]
    else:
        raise UnknownColumnsError(
            "the DataFrame has none of the columns that are read: those of Kafka's source (key, value, partition, "
            "offset), or of the levels records, events and partials of format offsets_log"
        )
    ranges = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    ordered = records.repartitionByRange(ranges, *order).sortWithinPartitions(*order)
    return ordered.mapInArrow(_replayer(profile, ranges, order[0]), schema_text(PARTIAL_COLUMNS))


def _replayer(profile: str, ranges: int, partition_column: str) -> Callable[..., Iterator[pa.RecordBatch]]:
    read = _event_record if partition_column == "offsets_partition" else _kafka_record

    def replay_range(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        rows = (row for batch in batches for part in _parts(batch) for row in part.to_pylist())
        for partition, of_partition in groupby(rows, lambda row: row[partition_column]):
            facts = {"log": partition, "offsets_partition": partition, "piece": number, "pieces": ranges}
            table = replay_rows(map(read, of_partition), PROFILES[profile])
            filled = pa.Table.from_pylist([row | facts for row in table.to_pylist()], schema_of(PARTIAL_COLUMNS))
            yield from filled.to_batches()

    return replay_range


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(at, RUN) for at in range(0, batch.num_rows, RUN))


def replay_rows(records: Iterator[tuple[Record, RecordBatch]], profile: Profile) -> pa.Table:
    """Return the partial state of records in log order, as rows; a record that comes twice counts once."""
    state = PartialState(profile)
    seen: list[Damage] = []
    last = -1
    count = 0

    def events() -> Iterator[LogEvent]:
        nonlocal last, count
        for record, batch in records:
            if record.offset > last:
                last = record.offset
                count += 1
                yield _event(record, batch)

    replay_into(state, events(), on_damage=seen.append)
    unsupported = sum(damage.is_unsupported for damage in seen)
    facts: Row = {
        "first_file": "", "first_base_offset": 0, "begins_a_file": False, "next_offset": last + 1,
        "end_offset": last + 1, "log_end": None, "is_stopped": False, "batches": 0, "records": count,
        "corrupt": len(seen) - unsupported, "unsupported": unsupported, "kafka": None, "notes": [],
        "absent": [], "checkpoints": {}, "selection": SELECTION, "until_offset": None, "is_broken": False,
        "last_file": None, "base_of_last": None, "shows_cleaning": False,
    }  # fmt: skip
    rows = [{"kind": "piece", "facts": json.dumps(facts)}, *(seen_row(item, i) for i, item in enumerate(seen))]
    return pa.concat_tables([table_of(rows), table_of_partial(state)])


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
    return Record(offset=row["offset"], key=row["key"], value=row["value"]), batch


def _event_record(row: Row) -> tuple[Record, RecordBatch]:
    """Return the record of a row of events: offset commits are rebuilt from columns, all others from their bytes."""
    offset = row["record_offset"]
    batch = _batch(offset, row["producer_id"], row["producer_epoch"], row["is_transactional"], row["is_control"])
    key, value = row["key"], row["value"]
    if key is None and row["record_type"] in (0, 1) and row["group"] is not None:
        key, value = encode_coordinator_record(offset_commit_of(row))
    return Record(offset=offset, key=key, value=value), batch
