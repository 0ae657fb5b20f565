"""The tables of ``decode -o parquet``."""

from __future__ import annotations

from collections.abc import Iterator

from offsets_log.dumps.events_json import Row, batches
from offsets_log.dumps.source import Piece, damaged_line
from offsets_log.errors import CorruptRecordError, Damage
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record

PARQUET = b"PAR1"
ROWS_AT_ONCE = 1 << 14


def is_parquet(head: bytes) -> bool:
    """Whether it begins as Parquet does."""
    return head.startswith(PARQUET)


def read(buffer: Buffer) -> Iterator[Piece]:
    """The batches of a table; a row counts as a line."""
    yield from batches(_rows(buffer), bytes_of_row)


def _rows(buffer: Buffer) -> Iterator[tuple[int, Row] | Damage]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(buffer)))
        for table in file.iter_batches(ROWS_AT_ONCE):
            for row in table.to_pylist():
                number += 1
                yield number, row
    except (pa.ArrowException, OSError, ValueError) as error:
        yield damaged_line(number + 1, b"", f"the Parquet file cannot be read on: {error}")


def bytes_of_row(row: Row) -> tuple[bytes | None, bytes | None]:
    """Key and value: as they are where the row has them, else from its columns. Raises OffsetsLogError."""
    if row.get("key") is not None or row.get("value") is not None or row.get("error") is not None:
        return row.get("key"), row.get("value")
    return encode_coordinator_record(_commit(row))


def _commit(row: Row) -> CoordinatorRecord:
    if row["record_type"] not in (0, 1):
        raise CorruptRecordError("a row without key that is no offset commit")
    key = {name: row[name] for name in ("group", "topic", "partition")}
    if row["is_tombstone"]:
        return CoordinatorRecord(record_type=row["record_type"], key=key)
    value = {
        "offset": row["committed_offset"],
        "leader_epoch": -1 if row["leader_epoch"] is None else row["leader_epoch"],
        "metadata": row["metadata"],
        "commit_timestamp": row["commit_timestamp_ms"],
        "expire_timestamp": -1 if row["expire_timestamp_ms"] is None else row["expire_timestamp_ms"],
        "topic_id": Uuid(16) if row["topic_id"] is None else Uuid.from_text(row["topic_id"]),
    }
    return CoordinatorRecord(record_type=row["record_type"], key=key, value_version=row["value_version"], value=value)
