"""Turn rows of ``decode -o parquet`` to batches, column by column: nothing is done record by record in Python.

Only plainly valid rows of batches of magic 2 are taken: for any other row `encode_batches` returns None, and the table
is read row by row. Batches are written uncompressed, whatever codec they had.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.events.rows import COLUMN_OF_FIELD, has_column
from offsets_log.dumps.positions import DecodedBatch
from offsets_log.dumps.source import SegmentPiece, SegmentPlace, place_of
from offsets_log.log_format import batch as b
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.offset_commit import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import OFFSET_COMMIT_TYPES
from offsets_log.messages.schema import STRING, UUID, Field, Message, Scalar

Int64s = npt.NDArray[np.int64]

FACTS_OF_BATCH = (
    "file", "offsets_partition", "batch_base_offset", "timestamp_type", "producer_id", "producer_epoch",
    "is_transactional", "is_control",
)  # fmt: skip
NEEDED = (*FACTS_OF_BATCH[2:], "file", "record_offset", "timestamp_ms", "magic")
INT_TYPES = {"int16": ">i2", "int32": ">i4", "int64": ">i8"}
OFFSET_COMMITS = pa.array(sorted(OFFSET_COMMIT_TYPES), pa.int32())
MAX_STRING = 0x7FFF
EMPTY = pa.scalar(b"", pa.binary())

HEADER = np.dtype(
    [
        ("base_offset", ">i8"), ("batch_length", ">i4"), ("partition_leader_epoch", ">i4"), ("magic", "i1"),
        ("crc", ">u4"), ("attributes", ">i2"), ("last_offset_delta", ">i4"), ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"), ("producer_id", ">i8"), ("producer_epoch", ">i2"), ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)  # fmt: skip
"""`log_format.batch.BATCH_HEADER` as a NumPy type, to fill many headers at once."""
CRC = struct.Struct(">I")


def batch_starts(table: pa.Table) -> Int64s:
    """Return the numbers of the rows at which a batch begins."""
    changes = np.zeros(len(table), np.bool_)
    changes[:1] = True
    for name in FACTS_OF_BATCH:
        column = _codes(table[name])
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)


def encode_batches(table: pa.Table) -> list[SegmentPiece] | None:
    """Return whole batches as bytes of segments; None if a row is not plain."""
    if not _is_plain(table):
        return None
    try:
        return list(_pieces(table, batch_starts(table)))
    except (pa.ArrowException, ValueError, KeyError, TypeError, OverflowError):
        return None


def _is_plain(table: pa.Table) -> bool:
    if not set(NEEDED) | {"key", "value", "error", "record_type"} <= set(table.column_names):
        return False
    if any(table[name].null_count for name in NEEDED) or table["error"].null_count < len(table):
        return False
    is_told = pc.or_(table["key"].is_valid(), pc.is_in(table["record_type"], OFFSET_COMMITS))
    return bool(pc.all(pc.and_(pc.equal(table["magic"], 2), is_told), min_count=0).as_py())


def _codes(column: pa.ChunkedArray) -> Any:
    """Return a column as numbers that are equal where its values are equal."""
    array = column.combine_chunks()
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
    if pa.types.is_dictionary(array.type):
        array = array.indices
    return array.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)


def _numbers(table: pa.Table, name: str, none: int = b.NO_TIMESTAMP) -> Int64s:
    numbers: Int64s = table[name].cast(pa.int64()).fill_null(none).to_numpy()
    return numbers


def _flags(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = table[name].combine_chunks().to_numpy(zero_copy_only=False)
    return flags


# ----------------------------------------------------------------------------------------------- batches


def _pieces(table: pa.Table, starts: Int64s) -> Iterator[SegmentPiece]:
    ends = np.append(starts[1:], len(table))
    offsets, times = _numbers(table, "record_offset"), _numbers(table, "timestamp_ms")
    headers = np.zeros(len(starts), HEADER)
    headers["base_offset"] = _numbers(table, "batch_base_offset")[starts]
    headers["partition_leader_epoch"] = b.NO_PARTITION_LEADER_EPOCH
    headers["magic"] = 2
    headers["last_offset_delta"] = _int32(offsets[ends - 1] - headers["base_offset"])
    headers["base_timestamp"] = times[starts]
    headers["max_timestamp"] = np.maximum.reduceat(times, starts)
    headers["producer_id"] = _numbers(table, "producer_id")[starts]
    headers["producer_epoch"] = _numbers(table, "producer_epoch")[starts]
    headers["base_sequence"] = b.NO_SEQUENCE
    headers["records_count"] = ends - starts
    is_append_time = pc.equal(table["timestamp_type"].cast(pa.string()), "log_append").to_numpy()
    headers["attributes"] = (
        is_append_time[starts] * b.TIMESTAMP_TYPE_MASK
        + _flags(table, "is_transactional")[starts] * b.TRANSACTIONAL_MASK
        + _flags(table, "is_control")[starts] * b.CONTROL_MASK
    )
    batch_of = np.repeat(np.arange(len(starts)), ends - starts)
    deltas = _int32(offsets - headers["base_offset"].astype(np.int64)[batch_of])
    records = _records(table, times - times[starts][batch_of], deltas)
    places = np.frombuffer(records.buffers()[1], np.int32)[records.offset : records.offset + len(records) + 1]
    sizes = places[ends] - places[starts]
    headers["batch_length"] = b.BATCH_HEADER_SIZE - b.LOG_OVERHEAD + sizes
    decoded = _decoded(table, headers, starts, ends, offsets, places)
    is_control = headers["attributes"] & b.CONTROL_MASK > 0
    written = _written(headers, memoryview(records.buffers()[2]), places[starts], places[ends])
    file, partition = _codes(table["file"])[starts], _codes(table["offsets_partition"])[starts]
    runs = np.flatnonzero(np.append(True, (file[1:] != file[:-1]) | (partition[1:] != partition[:-1])))
    for begin, end in zip(runs, [*runs[1:], len(starts)], strict=True):
        name = table["file"][int(starts[begin])].as_py()
        told = place_of(name) or SegmentPlace(name)
        place = SegmentPlace(told.file, table["offsets_partition"][int(starts[begin])].as_py(), told.base_offset)
        yield SegmentPiece(
            place,
            b"".join(written[begin:end]),
            decoded=tuple(decoded[begin:end]),
            has_markers=bool(is_control[begin:end].any()),
        )


def _decoded(
    table: pa.Table, headers: Any, starts: Int64s, ends: Int64s, offsets: Int64s, places: Any
) -> list[DecodedBatch]:
    """Return where each batch was in its file."""
    told, lasts = _numbers(table, "position") if "position" in table.column_names else None, ends - 1
    is_told = pc.equal(table["compression"].cast(pa.string()), "none").to_numpy()[starts]
    is_told &= headers["attributes"] & b.TIMESTAMP_TYPE_MASK == 0
    positions = [np.where(is_told, -1 if told is None else told[rows], -1) for rows in (starts, lasts)]
    sizes = places[lasts] - places[starts], places[ends] - places[lasts]
    is_exact = ~np.logical_or.reduceat(table["is_tombstone"].fill_null(True).to_numpy(), starts)
    columns = (*positions, *sizes, ends - starts, offsets[starts], offsets[lasts], is_exact)
    return [DecodedBatch(0, 0, *row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _written(headers: Any, data: memoryview, begins: Any, ends: Any) -> list[bytes]:
    """Return each batch as bytes with its checksum."""
    written = []
    heads, size = headers.tobytes(), b.BATCH_HEADER_SIZE
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        head = heads[i * size : (i + 1) * size]
        body = head[b.ATTRIBUTES_POSITION :] + data[begin:end]
        written.append(head[: b.CRC_POSITION] + CRC.pack(google_crc32c.value(body)) + body)
    return written


def _int32(numbers: Any) -> Any:
    if len(numbers) and (numbers.min() < 0 or numbers.max() > 0x7FFFFFFF):
        raise ValueError("offsets that cannot be in one batch")
    return numbers


def _records(table: pa.Table, time_deltas: Int64s, offset_deltas: Int64s) -> pa.BinaryArray:
    """Return each record with its length, like `log_format.record.RECORD` but many at once."""
    keys, values = _keys(table), _values(table)
    body = _join(
        _constant(b"\0", len(table)),
        _varints(time_deltas),
        _varints(offset_deltas),
        _varints(_lengths(keys)),
        keys,
        _varints(_lengths(values)),
        pc.fill_null(values, EMPTY),
        _constant(b"\0", len(table)),
    )
    return _join(_varints(_lengths(body)), body)


def _lengths(column: pa.BinaryArray) -> Int64s:
    """Return the length of each value; −1 for null."""
    lengths: Int64s = pc.fill_null(pc.binary_length(column).cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return lengths


# -------------------------------------------------------------------------------------- keys and values


def _keys(table: pa.Table) -> pa.BinaryArray:
    """Return keys: raw where the row has them, else encoded from the columns of an offset commit."""
    raw, types = table["key"].combine_chunks(), table["record_type"].fill_null(-1).combine_chunks()
    is_raw = raw.is_valid().to_numpy(zero_copy_only=False)
    return _by_class(
        np.where(is_raw, -1, types.to_numpy()),
        lambda number, rows: (
            raw.take(rows)
            if number < 0
            else _join(_fixed(np.full(len(rows), number), ">i2"), _message(OFFSET_COMMIT_KEY, 0, table.take(rows)))
        ),
    )


TOMBSTONE = -2


def _values(table: pa.Table) -> pa.BinaryArray:
    raw = table["value"].combine_chunks()
    is_raw = table["key"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    versions = _numbers(table, "value_version", TOMBSTONE)
    is_tombstone = table["is_tombstone"].fill_null(False).combine_chunks().to_numpy(zero_copy_only=False)
    if (is_tombstone != (versions == TOMBSTONE))[~is_raw].any():
        raise ValueError("a tombstone with a version, or a value without one")

    def encode(version: int, rows: pa.Array) -> pa.BinaryArray:
        if version == -1:
            return raw.take(rows)
        if version == TOMBSTONE:
            return pa.nulls(len(rows), pa.binary())
        return _join(
            _fixed(np.full(len(rows), version), ">i2"), _message(OFFSET_COMMIT_VALUE, version, table.take(rows))
        )

    return _by_class(np.where(is_raw, -1, versions), encode)


def _by_class(classes: Int64s, encode: Any) -> pa.BinaryArray:
    """Make the rows of each class at once, and put them back into their order."""
    order = np.argsort(classes, kind="stable")
    parts = []
    for number in np.unique(classes):
        rows = pa.array(np.flatnonzero(classes == number))
        parts.append(encode(int(number), rows))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(place))


def _message(message: Message, version: int, table: pa.Table) -> pa.BinaryArray:
    """Encode the fields of one version, by its schema table."""
    if not message.has_version(version):
        raise ValueError(f"{message.name} has no version {version}")
    flexible = message.is_flexible(version)
    fields = message.fields_of(version)
    parts = [_field(field, table, flexible) for field in fields if field.tag is None]
    if flexible:
        parts.append(
            _tags([field for field in fields if field.tag is not None and has_column(field, table.column_names)], table)
        )
    return _join(*parts)


def _field(field: Field, table: pa.Table, flexible: bool) -> pa.BinaryArray:
    column = table[COLUMN_OF_FIELD.get(field.name, field.name)]
    if column.null_count:
        if field.name not in ("leader_epoch", "expire_timestamp"):
            raise ValueError(f"{field.name} is null")
        column = column.fill_null(-1)
    return _scalars(field, column, flexible)


def _scalars(field: Field, column: pa.ChunkedArray, flexible: bool) -> pa.BinaryArray:
    """Encode the values of a field, none of them null."""
    assert isinstance(field.type, Scalar)
    if field.type.name in INT_TYPES:
        return _fixed(column.cast(pa.int64()).to_numpy(), INT_TYPES[field.type.name])
    if field.type is UUID:
        ids = column.cast(pa.string()).combine_chunks().dictionary_encode()
        distinct = [bytes(Uuid.from_text(text)) for text in ids.dictionary.to_pylist()]
        return pa.array(distinct, pa.binary()).take(ids.indices)
    if field.type is not STRING:
        raise ValueError(f"{field.name} is neither a number, an id nor a text")
    text = column.cast(pa.string()).cast(pa.binary()).combine_chunks()
    lengths = _lengths(text)
    if len(lengths) and lengths.max() > MAX_STRING:
        raise ValueError(f"{field.name} is too long")
    return _join(_uvarints(lengths + 1) if flexible else _fixed(lengths, ">i2"), text)


def _tags(fields: list[Field], table: pa.Table) -> pa.BinaryArray:
    """Encode the section of tagged fields, in the order of their tags; a field is left out where it is null."""
    counts, parts = np.zeros(len(table), np.int64), []
    for field in sorted(fields, key=lambda field: field.tag or 0):
        column = table[COLUMN_OF_FIELD[field.name]]
        is_there = column.is_valid().to_numpy()
        counts += is_there
        values = _scalars(field, column.drop_null(), flexible=True)
        tags = _uvarints(np.full(len(values), field.tag or 0))
        place = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
        parts.append(pc.fill_null(_join(tags, _uvarints(_lengths(values)), values).take(place), EMPTY))
    return _join(_uvarints(counts), *parts)


# ------------------------------------------------------------------------------------- columns of bytes


def _join(*columns: pa.BinaryArray) -> pa.BinaryArray:
    return pc.binary_join_element_wise(*columns, EMPTY)


def _constant(data: bytes, count: int) -> pa.BinaryArray:
    return pa.repeat(pa.scalar(data, pa.binary()), count)


def _fixed(numbers: Int64s, dtype: str) -> pa.BinaryArray:
    """Return numbers as big-endian bytes of one width. Raises OverflowError."""
    made = numbers.astype(dtype)
    if (made != numbers).any():
        raise OverflowError
    fixed = pa.binary(made.dtype.itemsize)
    return pa.Array.from_buffers(fixed, len(made), [None, pa.py_buffer(made.tobytes())]).cast(pa.binary())


def _varints(numbers: Int64s) -> pa.BinaryArray:
    """Encode numbers as Kafka's varint and varlong: zigzag, seven bits in each byte."""
    return _uvarints((numbers << 1) ^ (numbers >> 63))


def _uvarints(numbers: Int64s) -> pa.BinaryArray:
    bits = numbers.astype(np.uint64)
    sizes = np.ones(len(bits), np.int32)
    for power in range(7, 64, 7):
        sizes += bits >= np.uint64(1 << power)
    width = int(sizes.max(initial=1))
    shifts = (np.arange(width) * 7).astype(np.uint64)
    digits = (bits[:, None] >> shifts & np.uint64(0x7F)).astype(np.uint8)
    is_used = np.arange(width) < sizes[:, None]
    digits[np.arange(width) < sizes[:, None] - 1] |= 0x80
    places = np.concatenate(([0], np.cumsum(sizes, dtype=np.int32))).astype(np.int32)
    data = pa.py_buffer(digits[is_used].tobytes())
    return pa.Array.from_buffers(pa.binary(), len(bits), [None, pa.py_buffer(places.tobytes()), data])
