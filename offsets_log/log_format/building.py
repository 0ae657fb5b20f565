"""Batches written from records: as found, new, as the cleaner leaves them, and transaction markers."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from dataclasses import replace

from offsets_log.errors import CorruptBatchError
from offsets_log.log_format import batch as b
from offsets_log.log_format import primitives as p
from offsets_log.log_format.batch import RecordBatch, encode_batch
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.control_record import ControlRecord, control_record
from offsets_log.log_format.java_text import encode_string
from offsets_log.log_format.record import LEGACY_PAYLOAD, RECORD, SIZED_RECORD, Record, as_int64


def encode_records(batch: RecordBatch, records: Sequence[Record]) -> bytes:
    """Write records as magic 2 has them, uncompressed, as deltas from the batch's base offset and timestamp."""
    out = io.BytesIO()
    is_append_time = batch.attributes & b.TIMESTAMP_TYPE_MASK
    for record in records:
        fields = {
            "attributes": record.attributes,
            "timestamp_delta": record.timestamp_delta
            if is_append_time
            else as_int64(record.timestamp_ms - batch.base_timestamp_ms),
            "offset_delta": record.offset - batch.base_offset,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": encode_string(key), "value": value} for key, value in record.headers],
        }
        out.write(p.build(SIZED_RECORD, p.build(RECORD, fields, "record"), "record"))
    return out.getvalue()


def encode_legacy_message(
    *,
    magic: int,
    offset: int,
    timestamp_ms: int,
    attributes: int,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    """Write one message of magic 0 or 1 with its own length and checksum."""
    payload = p.build(LEGACY_PAYLOAD, {"key": key, "value": value}, "message")
    header = {
        "offset": offset,
        "size": b.LEGACY_HEADER_SIZE[magic] - b.LOG_OVERHEAD + len(payload),
        "crc": 0,
        "magic": magic,
        "attributes": attributes,
        "timestamp": timestamp_ms if magic else None,
    }
    raw = bytearray(p.build(b.LEGACY_HEADER, header, "message") + payload)
    raw[b.LEGACY_CRC_POSITION : b.MAGIC_POSITION] = zlib.crc32(raw[b.MAGIC_POSITION :]).to_bytes(4)
    return bytes(raw)


def rebuild_batch(batch: RecordBatch, records: Sequence[Record]) -> bytes:
    """Write a batch that was read again from its records: the same bytes, if it is not compressed."""
    if batch.magic == 2:
        return encode_batch(batch, encode_records(batch, records))
    codec = batch.codec
    if codec.id == 0:
        (record,) = records
        return _legacy(batch.magic, batch.attributes, record)
    offset = records[-1].offset
    # Magic 1 numbers the inner messages from the first one on, gaps kept; magic 0 has absolute offsets.
    base = 0 if batch.magic == 0 else records[0].offset
    inner = b"".join(
        _legacy(batch.magic, batch.attributes & b.TIMESTAMP_TYPE_MASK, record, record.offset - base)
        for record in records
    )
    return encode_legacy_message(
        magic=batch.magic,
        offset=offset,
        timestamp_ms=batch.max_timestamp_ms,
        attributes=batch.attributes,
        key=None,
        value=codec.compress(inner, batch.magic),
    )


def _legacy(magic: int, attributes: int, record: Record, offset: int | None = None) -> bytes:
    return encode_legacy_message(
        magic=magic,
        offset=record.offset if offset is None else offset,
        timestamp_ms=record.timestamp_ms,
        attributes=attributes,
        key=record.key,
        value=record.value,
    )


def build_batch(  # noqa: PLR0913 - the fields of a batch by their names
    records: Sequence[Record],
    *,
    magic: int = 2,
    compression: str = "none",
    timestamp_type: str = "create",
    producer_id: int = b.NO_PRODUCER_ID,
    producer_epoch: int = b.NO_PRODUCER_EPOCH,
    base_sequence: int = b.NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = 0,
    last_offset: int | None = None,
) -> bytes:
    """Write a new batch as a broker would append it: one batch of magic 2, or messages of magic 0 or 1.

    Args:
        records: at least one, with ascending offsets.
        last_offset: the batch's end if it lies beyond the last record, as in a compacted batch; only for magic 2.

    Raises:
        CorruptBatchError: there are no records, or zstd is asked for with magic 0 or 1.
    """
    if not records:
        raise CorruptBatchError("a batch needs a record")
    codec = CODEC_NAMED[compression]
    if codec.name == "zstd" and magic < 2:
        raise CorruptBatchError("zstd needs magic 2")
    attributes = codec.id | (b.TIMESTAMP_TYPE_MASK if timestamp_type == "log_append" and magic > 0 else 0)
    max_timestamp_ms = max(record.timestamp_ms for record in records)
    if magic < 2 and codec.id == 0:
        return b"".join(_legacy(magic, attributes, record) for record in records)
    batch = RecordBatch(
        position=0,
        raw=b"",
        magic=magic,
        crc=0,
        attributes=attributes
        | (b.TRANSACTIONAL_MASK if is_transactional else 0)
        | (b.CONTROL_MASK if is_control else 0),
        base_offset=records[0].offset,
        last_offset=records[-1].offset if last_offset is None else last_offset,
        partition_leader_epoch=partition_leader_epoch,
        base_timestamp_ms=records[0].timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return rebuild_batch(batch, records)


def build_marker(
    offset: int,
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    coordinator_epoch: int = 0,
) -> bytes:
    """Write a transaction marker: a control batch of 78 bytes with one record (``records:C1``, ``C4``)."""
    record = control_record(
        Record(offset=offset, timestamp_ms=timestamp_ms, key=None, value=None),
        ControlRecord("COMMIT" if commit else "ABORT", coordinator_epoch),
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def empty_batch(batch: RecordBatch) -> bytes:
    """Write the 61 bytes that the cleaner leaves of a batch whose records are all gone (``records:X5``)."""
    kept = batch.attributes & (b.TIMESTAMP_TYPE_MASK | b.TRANSACTIONAL_MASK | b.CONTROL_MASK)
    return encode_batch(replace(batch, attributes=kept, base_timestamp_ms=b.NO_TIMESTAMP, records_count=0), b"")
