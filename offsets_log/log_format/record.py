"""Records inside a batch, of every magic.

magic 2   length varint · attributes int8 · timestampDelta varlong · offsetDelta varint · key · value · headers
magic 0,1 the message itself, or behind a wrapper's compressed value a sequence of whole messages

`iter_records` yields what can be read, and one `Damage` for a rest that cannot. `control_record` reads what control
records say; `building` writes batches by the same layouts.

References: ``DefaultRecord.java``, ``AbstractLegacyRecordBatch.java``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import construct as c

from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format import primitives as p
from offsets_log.log_format.batch import RecordBatch, decode_batch_header
from offsets_log.log_format.java_text import decode_string
from offsets_log.log_format.readers import NOT_PLAIN
from offsets_log.log_format.segment import ReadAt

VARINT_BYTES = p.Sized(p.VARINT, nullable=True)

HEADER = p.PlainStruct("key" / p.Sized(p.VARINT, nullable=False), "value" / VARINT_BYTES)

RECORD = p.PlainStruct(
    "attributes" / p.INT8,
    "timestamp_delta" / p.VARLONG,
    "offset_delta" / p.VARINT,
    "key" / VARINT_BYTES,
    "value" / VARINT_BYTES,
    "headers" / p.Array(p.VARINT, HEADER),
)

LOADED_BYTES = p.Sized(p.VARINT, nullable=True, lowest=p.LOWEST_INT32)
"""Kafka writes −1 for null, and reads every negative length as null."""

LOADED_RECORD = p.PlainStruct(
    "attributes" / p.INT8,
    "timestamp_delta" / p.VARLONG,
    "offset_delta" / p.VARINT,
    "key" / LOADED_BYTES,
    "value" / LOADED_BYTES,
    "headers" / p.Array(p.VARINT, p.PlainStruct("key" / p.Sized(p.VARINT, nullable=False), "value" / LOADED_BYTES)),
)

SIZED_RECORD = p.Sized(p.VARINT, nullable=False)
"""A record behind its own length."""

LEGACY_BYTES = p.Sized(p.INT32, nullable=True)
LEGACY_PAYLOAD = c.Struct("key" / LEGACY_BYTES, "value" / LEGACY_BYTES)
LOADED_LEGACY_BYTES = p.Sized(p.INT32, nullable=True, lowest=p.LOWEST_INT32)
LOADED_LEGACY_PAYLOAD = c.Struct("key" / LOADED_LEGACY_BYTES, "value" / LOADED_LEGACY_BYTES)

INT64_MAX, INT64_MIN = (1 << 63) - 1, -(1 << 63)


def as_int64(number: int) -> int:
    """Return a number as it wraps around in 64 bits, as Java's long does, in which Kafka keeps offsets and timestamps.

    What is read here as the sum of a base and a delta is written as the delta of that sum, which wraps back.
    """
    return (number + (1 << 63) & (1 << 64) - 1) - (1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of any magic.

    Attributes:
        offset: place in the partition, not relative to the batch.
        position: where it begins in the file; if it is compressed, where the compressed bytes begin.
        timestamp_ms: −1 for magic 0; of magic 2 the sum of base timestamp and delta, which wraps around in 64 bits.
        timestamp_delta: the delta in a batch of LogAppendTime, where it has no meaning (``records:B2``).
        sequence: the producer's sequence number, −1 without one (``records:B3``).
        value: None is a tombstone; empty bytes are not.
        attributes: an int8, which Kafka writes as 0.
    """

    offset: int
    position: int = 0
    timestamp_ms: int = b.NO_TIMESTAMP
    timestamp_delta: int = 0
    sequence: int = b.NO_SEQUENCE
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    attributes: int = 0


def iter_records(batch: RecordBatch, *, as_loaded: bool = False) -> Iterator[Record | Damage]:
    """Yield the records of a batch in order; a `Damage` for a record, or for all the rest, that cannot be read.

    Offsets rise, with gaps of any size (``records:X8``).

    Args:
        as_loaded: accept what a coordinator's load accepts unchecked: offsets that do not rise or leave the batch, and
            records in a batch that declares none (``D-5``).
    """
    try:
        if as_loaded and batch.records_count == 0:
            return
        if batch.magic == 2:
            yield from _iter_default(batch, as_loaded)
        else:
            yield from _iter_legacy(batch, as_loaded)
    except OffsetsLogError as error:
        yield Damage(error.at(position=batch.position, record_offset=batch.base_offset, field="records"), batch.raw)


# --------------------------------------------------------------------------------------------- magic 2


def _iter_default(batch: RecordBatch, as_loaded: bool) -> Iterator[Record | Damage]:
    codec = batch.codec
    body = codec.decompress(batch.raw[b.BATCH_HEADER_SIZE :], batch.magic)
    start = batch.position + b.BATCH_HEADER_SIZE
    if batch.records_count < 0:
        raise CorruptBatchError(f"the count is {batch.records_count}", field="records_count")
    at, least = 0, batch.base_offset
    for i in range(batch.records_count):
        position = start if codec.id else start + at
        try:
            raw, at = p.parse_at(SIZED_RECORD, body, at)
        except c.ConstructError as error:
            raise CorruptRecordError(
                f"record {i} of {batch.records_count}: {error.args[0].splitlines()[-1]}",
                position=position,
                record_offset=batch.base_offset,
                field="length",
            ) from None
        try:
            record = _decode_default(batch, raw, position, LOADED_RECORD if as_loaded else RECORD)
            if not (as_loaded or least <= record.offset <= batch.last_offset):
                raise CorruptRecordError(
                    f"its offset would be {record.offset}, of a batch with {least} to {batch.last_offset} to come",
                    field="offset_delta",
                )
            least = record.offset + 1
            if not as_loaded or i + 1 < batch.records_count or at == len(body):
                yield record
        except OffsetsLogError as error:
            # Its length is sound, so the records behind it can still be read.
            yield Damage(error.at(position=position, record_offset=batch.base_offset), raw)
    if at != len(body):
        raise CorruptBatchError(
            f"{len(body) - at} bytes are left behind the last of {batch.records_count} records",
            field="records",
        )


def _decode_default(batch: RecordBatch, raw: bytes, position: int, layout: c.Construct) -> Record:
    fields = p.parse_exactly(layout, raw, "record")
    is_append_time = batch.attributes & b.TIMESTAMP_TYPE_MASK
    sequence = b.NO_SEQUENCE
    if batch.base_sequence >= 0:
        sequence = batch.base_sequence + fields["offset_delta"] & b.MAX_SEQUENCE
    timestamp_ms = as_int64(batch.base_timestamp_ms + fields["timestamp_delta"])
    return Record(
        offset=batch.base_offset + fields["offset_delta"],
        position=position,
        timestamp_ms=batch.max_timestamp_ms if is_append_time else timestamp_ms,
        timestamp_delta=fields["timestamp_delta"],
        sequence=sequence,
        key=fields["key"],
        value=fields["value"],
        headers=tuple((decode_string(header["key"]), header["value"]) for header in fields["headers"]),
        attributes=fields["attributes"],
    )


_VARINT, _VARLONG = p.VARINT.unsigned.reader(), p.VARLONG.unsigned.reader()


RECORD_HEAD_BYTES = 5 + 1 + 10 + 5
"""The most that the length, the attributes and the deltas of time and offset of a record take: its key follows them."""


def iter_deltas(read_at: ReadAt, begin: int, end: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield offset delta and timestamp delta of each record of magic 2; keys, values and headers stay unread.

    Args:
        read_at: how to read pieces of the records of a batch, uncompressed. Nothing is read of what is not asked for.
        begin, end: where they lie.
        count: how many they are.

    Raises:
        CorruptRecordError: one reaches beyond the bytes, or these numbers beyond it.
        CorruptBatchError: the count is negative, or bytes are left.
    """
    if count < 0:
        raise CorruptBatchError(f"the count is {count}", field="records_count")
    at = begin
    for i in range(count):
        left = end - at
        head = read_at(at, RECORD_HEAD_BYTES if left > RECORD_HEAD_BYTES else left)
        try:
            size, start = _VARINT(head, 0)
            time, place = _VARLONG(head, start + 1)  # behind the attributes
            offset, place = _VARINT(head, place)
        except NOT_PLAIN:
            raise CorruptRecordError(f"record {i} of {count} is cut off or begins with no numbers") from None
        size_bytes = size >> 1
        if size & 1 or not place - start <= size_bytes <= left - start:
            raise CorruptRecordError(f"record {i} of {count} does not end where its length says", field="length")
        at += start + size_bytes
        yield offset >> 1 ^ -(offset & 1), time >> 1 ^ -(time & 1)
    if at != end:
        raise CorruptBatchError(f"{end - at} bytes are left behind the last of {count} records", field="records")


# ----------------------------------------------------------------------------------------- magic 0 and 1


def _legacy_payload(raw: bytes, magic: int, as_loaded: bool) -> tuple[bytes | None, bytes | None]:
    raw = raw[b.LEGACY_HEADER_SIZE[magic] :]
    if as_loaded:
        payload, _ = p.parse_prefix(LOADED_LEGACY_PAYLOAD, raw, "message")
    else:
        payload = p.parse_exactly(LEGACY_PAYLOAD, raw, "message")
    return payload.key, payload.value


def _iter_legacy(batch: RecordBatch, as_loaded: bool) -> Iterator[Record]:
    if batch.codec.id == 0:
        key, value = _legacy_payload(batch.raw, batch.magic, as_loaded)
        yield Record(
            offset=batch.base_offset,
            position=batch.position,
            timestamp_ms=batch.max_timestamp_ms,
            key=key,
            value=value,
        )
        return
    least = 0
    for offset, message in _inner_messages(batch, as_loaded):
        _check_plain(message)
        key, value = _legacy_payload(message.raw, message.magic, as_loaded)
        if offset < least and not as_loaded:
            raise CorruptBatchError(f"an inner message has offset {offset}, behind {least - 1}", field="offset")
        least = offset + 1
        # The wrapper rules over the inner messages' timestamps only if it is LogAppendTime (records:M6), and over
        # none of an inner message of magic 0 (records:M7).
        is_append_time = message.magic > 0 and batch.timestamp_type == "log_append"
        yield Record(
            offset=offset,
            position=batch.position,
            timestamp_ms=batch.max_timestamp_ms if is_append_time else message.max_timestamp_ms,
            key=key,
            value=value,
        )


def first_offset(batch: RecordBatch) -> int:
    """Return the offset of the first message of magic 0 or 1, as a broker finds it: inside, if it is compressed.

    Raises:
        OffsetsLogError: the message cannot be read.
    """
    if batch.codec.id == 0:
        return batch.base_offset
    offset, message = _inner_messages(batch, as_loaded=True)[0]
    _check_plain(message)
    return offset


def has_other_magics_inside(batch: RecordBatch) -> bool:
    """Return whether a message of magic 0 or 1 holds inner ones of another magic, as brokers once wrote them.

    Raises:
        OffsetsLogError: they cannot be read.
    """
    if batch.codec.id == 0:
        return False
    return any(message.magic != batch.magic for _, message in _inner_messages(batch, as_loaded=True))


def _inner_messages(batch: RecordBatch, as_loaded: bool) -> list[tuple[int, RecordBatch]]:
    """Return the messages inside a compressed one, at least one, with their absolute offsets (``records:M3``)."""
    codec = batch.codec
    if codec.name == "zstd":
        raise CorruptBatchError(f"a message of magic {batch.magic} is compressed with zstd", field="attributes")
    _, value = _legacy_payload(batch.raw, batch.magic, as_loaded)
    if value is None:
        raise CorruptBatchError("a compressed message has a null value", field="value")
    inner = list(_iter_inner_messages(codec.decompress(value, batch.magic), as_loaded))
    if not inner:
        raise CorruptBatchError("a compressed message is empty", field="value")
    base = _inner_base_offset(batch, inner[-1].base_offset)
    return [(base + message.base_offset, message) for message in inner]


def _check_plain(message: RecordBatch) -> None:
    if message.codec.id:
        raise CorruptBatchError("an inner message is compressed again", field="attributes")


def _iter_inner_messages(data: bytes, as_loaded: bool) -> Iterator[RecordBatch]:
    """Yield whole messages; one that is cut off at the end is left out silently, as Kafka does (``records:M10``)."""
    at = 0
    while at + b.LOG_OVERHEAD <= len(data):
        length = int.from_bytes(data[at + 8 : at + b.LOG_OVERHEAD], signed=True)
        if length < b.MIN_SIZE[0]:
            raise CorruptBatchError(f"an inner message takes {length} bytes", field="size")
        end = at + b.LOG_OVERHEAD + length
        if end > len(data):
            return
        yield _inner_message(data[at:end], length, as_loaded)
        at = end


def _inner_message(raw: bytes, length: int, as_loaded: bool) -> RecordBatch:
    """Read one inner message. One of an unknown magic is an error, but a load reads it as one of magic 1."""
    magic = raw[b.MAGIC_POSITION]
    if not as_loaded:
        if magic not in b.LEGACY_HEADER_SIZE:
            raise CorruptBatchError(f"an inner message has magic {magic}", field="magic")
        b.size_of_entry(length, magic)
    elif magic not in b.LEGACY_HEADER_SIZE:
        raw = raw[: b.MAGIC_POSITION] + b"\x01" + raw[b.MAGIC_POSITION + 1 :]
    return decode_batch_header(raw)


def _inner_base_offset(batch: RecordBatch, last_inner_offset: int) -> int:
    """Return what to add to inner offsets: nothing for magic 0, whose offsets are absolute (``records:M5``)."""
    if batch.magic == 0 or batch.last_offset == 0:
        return 0
    if batch.last_offset < last_inner_offset:
        raise CorruptBatchError(
            f"the last inner offset {last_inner_offset} is beyond the wrapper's {batch.last_offset}",
            field="offset",
        )
    return batch.last_offset - last_inner_offset
