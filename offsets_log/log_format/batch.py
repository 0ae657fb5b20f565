"""Record batches: the 61-byte header of magic 2, the entry header of magic 0 and 1, checksums.

magic 2      baseOffset 8 · batchLength 4 · partitionLeaderEpoch 4 · magic 1 · crc 4 · attributes 2 ·
             lastOffsetDelta 4 · baseTimestamp 8 · maxTimestamp 8 · producerId 8 · producerEpoch 2 ·
             baseSequence 4 · recordsCount 4 · records
magic 0, 1   offset 8 · size 4 · crc 4 · magic 1 · attributes 1 · (timestamp 8, magic 1 only) · key · value

The checksum is CRC-32C over everything behind it for magic 2, CRC-32 from the magic byte on for magic 0 and 1. A
batch of magic 2 ends at ``last_offset`` whatever records it still holds (``records:B1``).

References: ``DefaultRecordBatch.java``, ``LegacyRecord.java``, ``AbstractLegacyRecordBatch.java``.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import construct as c
import google_crc32c

from offsets_log.errors import CorruptBatchError
from offsets_log.log_format import primitives as p
from offsets_log.log_format.compression import Codec, codec_name, codec_of

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
UNTOLD_PRODUCER_ID = -2
"""Stands in segments made from texts for the producer of commits of which it is not told whether a transaction held
them, and how it ended."""
UNTOLD_ENDED_ID = -3
"""Stands there for the producer whose transaction a marker ended."""
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1
MAX_SEQUENCE = 0x7FFFFFFF

TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

BATCH_HEADER = p.PlainStruct(
    "base_offset" / p.INT64,
    "batch_length" / p.INT32,
    "partition_leader_epoch" / p.INT32,
    "magic" / p.INT8,
    "crc" / p.UINT32,
    "attributes" / p.INT16,
    "last_offset_delta" / p.INT32,
    "base_timestamp" / p.INT64,
    "max_timestamp" / p.INT64,
    "producer_id" / p.INT64,
    "producer_epoch" / p.INT16,
    "base_sequence" / p.INT32,
    "records_count" / p.INT32,
)

BATCH_FIELDS = tuple(field.name for field in BATCH_HEADER.subcons)
BATCH_NUMBERS = struct.Struct(">" + "".join(field.subcon.fmtstr[1:] for field in BATCH_HEADER.subcons))
"""Reads all numbers of `BATCH_HEADER` at once."""

LEGACY_HEADER = c.Struct(
    "offset" / p.INT64,
    "size" / p.INT32,
    "crc" / p.UINT32,
    "magic" / p.INT8,
    "attributes" / p.INT8,
    "timestamp" / c.If(c.this.magic > 0, p.INT64),
)
LEGACY_NUMBERS = struct.Struct(">qiIbb")
"""The fields of `LEGACY_HEADER` that both magics have, all at once."""

LOG_OVERHEAD = 8 + 4
"""Bytes of baseOffset and batchLength: they stand before the bytes that the length counts."""
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
LAST_OFFSET_DELTA_POSITION = 23
BATCH_HEADER_SIZE = 61
LEGACY_CRC_POSITION = 12
LEGACY_HEADER_SIZE = {0: 18, 1: 26}
MIN_SIZE = {0: 14, 1: 22, 2: BATCH_HEADER_SIZE - LOG_OVERHEAD}
"""magic → the smallest legal value of the length field: a message without key and value, a batch without records."""
SUPPORTED_MAGICS = (0, 1, 2)
NEWEST_MAGIC = SUPPORTED_MAGICS[-1]

MAX_OFFSETS_IN_SEGMENT = 1 << 31
"""How far a record's offset may be from its segment's base offset: the index holds the difference in 4 bytes."""


def time_of(timestamp_ms: int) -> int | None:
    """Return the time that a timestamp of a batch or record tells; None if it has none."""
    return None if timestamp_ms == NO_TIMESTAMP else timestamp_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """A batch as it was found; an uncompressed message of magic 0 or 1 is a batch of its own (``records:M9``).

    Attributes:
        position: bytes from the start of the file.
        raw: the whole batch, header included.
        base_offset: the first offset. The header of a compressed message of magic 0 or 1 knows only the last one.
        base_timestamp_ms: the records' timestamps are deltas from it; with attribute bit 6 it is the delete horizon.
        records_count: as the header declares it; 1 for a message of magic 0 or 1.
    """

    position: int
    raw: bytes
    magic: int
    crc: int
    attributes: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    base_timestamp_ms: int = NO_TIMESTAMP
    max_timestamp_ms: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    records_count: int = 1

    @property
    def size_bytes(self) -> int:
        """Size of the batch with its header."""
        return len(self.raw)

    @property
    def next_offset(self) -> int:
        """The offset that follows the batch in the log."""
        return self.last_offset + 1

    @property
    def codec(self) -> Codec:
        """The codec by which the records are compressed. Raises UnsupportedCompressionTypeError for an unknown id."""
        return codec_of(self.attributes)

    @property
    def compression(self) -> str:
        """The codec's name, or its id where the codec is unknown."""
        return codec_name(self.attributes)

    @property
    def timestamp_type(self) -> str:
        """``create``, ``log_append``, or ``none`` for magic 0."""
        if self.magic == 0:
            return "none"
        return "log_append" if self.attributes & TIMESTAMP_TYPE_MASK else "create"

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction (attribute bit 4)."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether it holds control records, such as transaction markers, and no data (attribute bit 5)."""
        return self.magic == 2 and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may drop the tombstones and markers inside (attribute bit 6, ``records:X4``)."""
        has_horizon = self.magic == 2 and self.attributes & DELETE_HORIZON_MASK
        return self.base_timestamp_ms if has_horizon else None

    @property
    def last_sequence(self) -> int:
        """The producer's sequence number at the last offset; −1 without one."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset - self.base_offset & MAX_SEQUENCE

    def computed_crc(self) -> int:
        """Compute the checksum of the bytes as they are."""
        if self.magic == 2:
            return int(google_crc32c.value(self.raw[ATTRIBUTES_POSITION:]))
        return zlib.crc32(memoryview(self.raw)[MAGIC_POSITION:])

    def is_valid(self) -> bool:
        """Return whether the stored checksum is that of the bytes."""
        return self.computed_crc() == self.crc


def size_of_entry(length: int, magic: int) -> int:
    """Return the size of a whole batch, from its length field.

    Raises:
        CorruptBatchError: the magic is none of 0, 1 and 2, or the length is too small for the header (``records:T5``).
    """
    if magic not in SUPPORTED_MAGICS:
        raise CorruptBatchError(f"unknown magic {magic}", field="magic")
    if length < MIN_SIZE[magic]:
        name = "batch_length" if magic == 2 else "size"
        raise CorruptBatchError(f"the length is {length}, at least {MIN_SIZE[magic]} are needed", field=name)
    return length + LOG_OVERHEAD


def decode_batch_header(raw: bytes, position: int = 0) -> RecordBatch:
    """Read the header of one whole batch; its records are not read.

    Args:
        raw: exactly one batch, long enough for its magic (`size_of_entry`).
        position: where it lies in its file.
    """
    magic = int.from_bytes(raw[MAGIC_POSITION : MAGIC_POSITION + 1], signed=True)
    if magic == 2:
        header = dict(zip(BATCH_FIELDS, BATCH_NUMBERS.unpack_from(raw), strict=True))
        return RecordBatch(
            position=position,
            raw=raw,
            magic=magic,
            crc=header["crc"],
            attributes=header["attributes"],
            base_offset=header["base_offset"],
            last_offset=header["base_offset"] + header["last_offset_delta"],
            partition_leader_epoch=header["partition_leader_epoch"],
            base_timestamp_ms=header["base_timestamp"],
            max_timestamp_ms=header["max_timestamp"],
            producer_id=header["producer_id"],
            producer_epoch=header["producer_epoch"],
            base_sequence=header["base_sequence"],
            records_count=header["records_count"],
        )
    offset, _, crc, _, attributes = LEGACY_NUMBERS.unpack_from(raw)
    timestamp = NO_TIMESTAMP
    if magic > 0:
        timestamp = int.from_bytes(raw[LEGACY_NUMBERS.size : LEGACY_HEADER_SIZE[1]], signed=True)
    return RecordBatch(
        position=position,
        raw=raw,
        magic=magic,
        crc=crc,
        attributes=attributes,
        base_offset=offset,
        last_offset=offset,
        base_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
    )


def encode_batch(batch: RecordBatch, records: bytes) -> bytes:
    """Write a batch of magic 2 with new records; its codec, length and checksum are applied to them.

    Args:
        batch: every header field but length, crc and raw is taken from it.
        records: the records, uncompressed.
    """
    body = batch.codec.compress(records, batch.magic)
    header = {
        "base_offset": batch.base_offset,
        "batch_length": BATCH_HEADER_SIZE - LOG_OVERHEAD + len(body),
        "partition_leader_epoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "crc": 0,
        "attributes": batch.attributes,
        "last_offset_delta": batch.last_offset - batch.base_offset,
        "base_timestamp": batch.base_timestamp_ms,
        "max_timestamp": batch.max_timestamp_ms,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "records_count": batch.records_count,
    }
    raw = bytearray(p.build(BATCH_HEADER, header, "batch") + body)
    raw[CRC_POSITION:ATTRIBUTES_POSITION] = google_crc32c.value(bytes(raw[ATTRIBUTES_POSITION:])).to_bytes(4)
    return bytes(raw)
