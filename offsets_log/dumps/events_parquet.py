"""Read the tables of ``decode -o parquet``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offsets_log.columnar.events.rows import TOLD, has_column
from offsets_log.dumps.events_json import Row, batches
from offsets_log.dumps.source import SourcePiece, damaged_line
from offsets_log.errors import CorruptRecordError
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.segment import Buffer
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.messages.schema import UUID, Field, default_of

PARQUET = b"PAR1"
ROWS_AT_ONCE = 1 << 17


def is_parquet(head: bytes) -> bool:
    """Return whether a file begins as Parquet does."""
    return head.startswith(PARQUET)


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield the batches of a table, in bulk if all is plain, else row by row; a row counts as a line."""
    import pyarrow as pa

    from offsets_log.dumps.events_columns import encode_batches

    number = 1
    try:
        for table in _tables(buffer):
            pieces = encode_batches(table)
            yield from batches(enumerate(table.to_pylist(), number), bytes_of_row) if pieces is None else pieces
            number += len(table)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        yield damaged_line(number, b"", f"the Parquet file cannot be read on, or is no table of decode: {error}")


def _tables(buffer: Buffer) -> Iterator[Any]:
    """Yield Arrow tables of whole batches, with dictionaries of texts turned to plain texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from offsets_log.dumps.events_columns import batch_starts

    rest = None
    for chunk in pq.ParquetFile(pa.BufferReader(pa.py_buffer(buffer))).iter_batches(ROWS_AT_ONCE):
        plain = [
            pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
            for field in chunk.schema
        ]
        table = pa.Table.from_batches([chunk]).cast(pa.schema(plain))
        table = table if rest is None else pa.concat_tables([rest, table])
        starts = batch_starts(table)
        last = int(starts[-1]) if len(starts) else 0
        if last:
            yield table.slice(0, last)
        rest = table.slice(last)
    if rest:
        yield rest


def bytes_of_row(row: Row) -> tuple[bytes | None, bytes | None]:
    """Return key and value: raw where the row has them, else encoded from its columns. Raises OffsetsLogError."""
    if row.get("key") is not None or row.get("value") is not None or row.get("error") is not None:
        return row.get("key"), row.get("value")
    return encode_coordinator_record(_commit(row))


def _commit(row: Row) -> CoordinatorRecord:
    if row["record_type"] not in (0, 1):
        raise CorruptRecordError("a row without key that is no offset commit")
    version = row["value_version"]
    if row["is_tombstone"] != (version is None) or not (version is None or OFFSET_COMMIT_VALUE.has_version(version)):
        raise CorruptRecordError(f"is_tombstone is {row['is_tombstone']}, and the value version {version}")
    return offset_commit_of(row)


def offset_commit_of(row: Row) -> CoordinatorRecord:
    """Return the offset commit, or its tombstone, that a row of ``decode`` tells in its columns."""
    key = {name: row[name] for name in ("group", "topic", "partition")}
    if row["is_tombstone"] or row["value_version"] is None:
        return CoordinatorRecord(record_type=row["record_type"], key=key)
    fields = OFFSET_COMMIT_VALUE.fields_of(row["value_version"])
    value = {field.name: _value_of(field, row) for field in fields}
    return CoordinatorRecord(record_type=row["record_type"], key=key, value_version=row["value_version"], value=value)


def _value_of(field: Field, row: Row) -> Any:
    told = row[TOLD[field]] if has_column(field, row.keys()) else None
    if told is None:
        return default_of(field)
    return Uuid.from_text(told) if field.type is UUID else told
