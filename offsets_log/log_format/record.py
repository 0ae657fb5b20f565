"""Records inside a batch, of every magic, and the control records among them (``records.md`` §3.1, §3.2, §4).

magic 2   length varint · attributes int8 · timestampDelta varlong · offsetDelta varint · key · value · headers
magic 0,1 the message itself, or behind a wrapper's compressed value a sequence of whole messages

`iter_records` gives what can be read and one `Damage` for a rest that cannot. `encode_records` and
`build_batch` write.

References: ``DefaultRecord.java``, ``AbstractLegacyRecordBatch.java``, ``ControlRecordType.java``,
``EndTransactionMarker.java``.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import construct as c

from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format import primitives as p
from offsets_log.log_format.batch import RecordBatch, decode_batch_header, encode_batch
from offsets_log.log_format.compression import CODEC_NAMED

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
"""Kafka writes −1 for null and takes every negative length for it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record, whatever the magic.

    Attributes:
        offset: absolute.
        position: of its first byte in the file; of the compressed bytes it is in where it is compressed.
        timestamp_ms: −1 for magic 0.
        timestamp_delta: as it stands in a batch of LogAppendTime, where it has no meaning (``records:B2``).
        sequence: the producer's sequence number, −1 without one (``records:B3``).
        value: None is a tombstone, empty bytes are not.
        attributes: int8, 0 as Kafka writes it.
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


def time_of(record: Record) -> int | None:
    """When a record was written, within 64 bits as hostile deltas need not be; None if it has no time."""
    if record.timestamp_ms == b.NO_TIMESTAMP:
        return None
    return min(max(record.timestamp_ms, INT64_MIN), INT64_MAX)


def iter_records(batch: RecordBatch, *, as_loaded: bool = False) -> Iterator[Record | Damage]:
    """The records of a batch in order; a `Damage`, which is then the last item, for what cannot be read.

    Offsets rise, with any gaps (``records:X8``).

    Args:
        as_loaded: take what a coordinator's load takes without a look: offsets that do not rise or leave the batch, and
            what lies in a batch that declares no records (``D-5``).
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
            if as_loaded and i + 1 == batch.records_count and at != len(body):
                break
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
    return Record(
        offset=batch.base_offset + fields["offset_delta"],
        position=position,
        timestamp_ms=batch.max_timestamp_ms if is_append_time else batch.base_timestamp_ms + fields["timestamp_delta"],
        timestamp_delta=fields["timestamp_delta"],
        sequence=sequence,
        key=fields["key"],
        value=fields["value"],
        headers=tuple((p.decode_string(header["key"]), header["value"]) for header in fields["headers"]),
        attributes=fields["attributes"],
    )


def encode_records(batch: RecordBatch, records: Sequence[Record]) -> bytes:
    """The records of magic 2, uncompressed, with the batch's base offset and timestamp as their base."""
    out = io.BytesIO()
    is_append_time = batch.attributes & b.TIMESTAMP_TYPE_MASK
    for record in records:
        fields = {
            "attributes": record.attributes,
            "timestamp_delta": record.timestamp_delta
            if is_append_time
            else record.timestamp_ms - batch.base_timestamp_ms,
            "offset_delta": record.offset - batch.base_offset,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": p.encode_string(key), "value": value} for key, value in record.headers],
        }
        out.write(p.build(SIZED_RECORD, p.build(RECORD, fields, "record"), "record"))
    return out.getvalue()


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
    """The offset of the first message of magic 0 or 1, as a broker finds it: in a compressed one inside.

    Raises:
        OffsetsLogError: that cannot be read.
    """
    if batch.codec.id == 0:
        return batch.base_offset
    offset, message = _inner_messages(batch, as_loaded=True)[0]
    _check_plain(message)
    return offset


def _inner_messages(batch: RecordBatch, as_loaded: bool) -> list[tuple[int, RecordBatch]]:
    """The messages inside a compressed one, at least one, with their absolute offsets (``records:M3``)."""
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
    """Whole messages; one cut off at the end is left out in silence, as Kafka does (``records:M10``)."""
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
    """One of another magic than 0 is laid out as one of magic 1; only a load takes it."""
    magic = raw[b.MAGIC_POSITION]
    if not as_loaded:
        if magic not in b.LEGACY_HEADER_SIZE:
            raise CorruptBatchError(f"an inner message has magic {magic}", field="magic")
        b.size_of_entry(length, magic)
    elif magic not in b.LEGACY_HEADER_SIZE:
        raw = raw[: b.MAGIC_POSITION] + b"\x01" + raw[b.MAGIC_POSITION + 1 :]
    return decode_batch_header(raw)


def _inner_base_offset(batch: RecordBatch, last_inner_offset: int) -> int:
    """What to add to inner offsets: nothing for magic 0, which has them absolute (``records:M5``)."""
    if batch.magic == 0 or batch.last_offset == 0:
        return 0
    if batch.last_offset < last_inner_offset:
        raise CorruptBatchError(
            f"the last inner offset {last_inner_offset} is beyond the wrapper's {batch.last_offset}",
            field="offset",
        )
    return batch.last_offset - last_inner_offset


def encode_legacy_message(
    *,
    magic: int,
    offset: int,
    timestamp_ms: int,
    attributes: int,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    """One message of magic 0 or 1, with its own length and checksum."""
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


# --------------------------------------------------------------------------------------------- writing


def rebuild_batch(batch: RecordBatch, records: Sequence[Record]) -> bytes:
    """A batch as found, written anew from its records: the same bytes where it is not compressed."""
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


def build_batch(
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
    """A new batch as a broker would append it: one batch of magic 2, or messages of magic 0 or 1.

    Args:
        records: at least one; offsets ascend.
        last_offset: where the batch ends if beyond its last record (a compacted batch); magic 2 only.

    Raises:
        CorruptBatchError: zstd with magic 0 or 1, or no records.
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


# -------------------------------------------------------------------------------------- control records

CONTROL_KEY = c.Struct("version" / p.INT16, "type" / p.INT16)
END_TXN_MARKER = c.Struct("version" / p.INT16, "coordinator_epoch" / p.INT32)
CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
UNKNOWN_CONTROL_TYPE = 0x7FFF
END_TRANSACTION = frozenset({"ABORT", "COMMIT"})


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """What a control record says: ``COMMIT``, ``ABORT`` or another of `CONTROL_TYPES`, else ``UNKNOWN``."""

    type: str
    coordinator_epoch: int | None

    @property
    def ends_transaction(self) -> bool:
        """COMMIT or ABORT."""
        return self.type in END_TRANSACTION


def control_type(record: Record) -> str:
    """What a control record's key says, all of it that a coordinator's load looks at (``records:C2``).

    Raises:
        CorruptRecordError: a key below 4 bytes or of a negative version.
    """
    key, _ = p.parse_prefix(CONTROL_KEY, record.key or b"", "control.key")
    if key.version < 0:
        raise CorruptRecordError(f"the version is {key.version}", field="control.key.version")
    return CONTROL_TYPES.get(key.type, "UNKNOWN")


def decode_control_record(record: Record) -> ControlRecord:
    """Read a control record's key and, of a transaction marker, its value (``records:C2``, ``C3``).

    Raises:
        CorruptRecordError: a key that says nothing, a marker's value that is cut off.
    """
    name = control_type(record)
    if name not in END_TRANSACTION:
        return ControlRecord(name, None)
    marker, _ = p.parse_prefix(END_TXN_MARKER, record.value or b"", "control.value")
    if marker.version < 0:
        raise CorruptRecordError(f"the version is {marker.version}", field="control.value.version")
    return ControlRecord(name, marker.coordinator_epoch)


def build_marker(
    offset: int,
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    coordinator_epoch: int = 0,
) -> bytes:
    """A transaction marker: a control batch of one record, 78 bytes, of its producer (``records:C1``, ``C4``)."""
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


def control_record(record: Record, control: ControlRecord) -> Record:
    """A record with a control record's key and value; `CONTROL_TYPES` that end no transaction have no value here."""
    number = next((number for number, name in CONTROL_TYPES.items() if name == control.type), UNKNOWN_CONTROL_TYPE)
    marker = {"version": 0, "coordinator_epoch": control.coordinator_epoch or 0}
    return replace(
        record,
        key=p.build(CONTROL_KEY, {"version": 0, "type": number}, "control.key"),
        value=p.build(END_TXN_MARKER, marker, "control.value") if control.ends_transaction else b"",
    )


def empty_batch(batch: RecordBatch) -> bytes:
    """What the cleaner leaves of a batch whose records are all gone: 61 bytes (``records:X5``)."""
    kept = batch.attributes & (b.TIMESTAMP_TYPE_MASK | b.TRANSACTIONAL_MASK | b.CONTROL_MASK)
    return encode_batch(replace(batch, attributes=kept, base_timestamp_ms=b.NO_TIMESTAMP, records_count=0), b"")
