"""Records of every magic: traps others fell into, control records, compression bounds."""

from __future__ import annotations

import contextlib
import gzip
from dataclasses import replace

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, UnsupportedCompressionTypeError
from offsets_log.log_format import batch as b
from offsets_log.log_format import compression
from offsets_log.log_format.batch import RecordBatch, decode_batch_header, encode_batch
from offsets_log.log_format.building import (
    build_batch,
    build_marker,
    encode_legacy_message,
    encode_records,
    rebuild_batch,
)
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.control_record import ControlRecord, decode_control_record
from offsets_log.log_format.record import Record, iter_records
from tests.sizes import examples

ONE = Record(offset=4, timestamp_ms=1000, key=b"k", value=b"v")


def read(raw: bytes) -> list[Record]:
    found = list(iter_records(decode_batch_header(raw)))
    assert all(isinstance(record, Record) for record in found), found
    return found  # type: ignore[return-value]


def damage_of(raw: bytes) -> Damage:
    found = list(iter_records(decode_batch_header(raw)))
    (damage,) = (item for item in found if isinstance(item, Damage))
    assert found[-1] is damage
    return damage


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (b"k", None), (None, b"v"), (b"k", b"")])
def test_null_and_empty_stay_apart(magic: int, key: bytes | None, value: bytes | None) -> None:
    (record,) = read(build_batch([replace(ONE, key=key, value=value)], magic=magic))
    assert (record.key, record.value) == (key, value)


def test_header_values_null_and_empty_stay_apart() -> None:
    headers = (("a", None), ("b", b""), ("", b"x"))
    (record,) = read(build_batch([replace(ONE, headers=headers)]))
    assert record.headers == headers


def test_attributes_byte_is_not_a_varint() -> None:
    (record,) = read(build_batch([replace(ONE, attributes=-128)]))
    assert record.attributes == -128
    assert record.value == b"v"


def test_negative_timestamp_deltas_are_legal() -> None:
    records = [replace(ONE, timestamp_ms=1000), replace(ONE, offset=5, timestamp_ms=-7)]
    assert [record.timestamp_ms for record in read(build_batch(records))] == [1000, -7]


def test_log_append_time_overrules_the_deltas_which_are_kept() -> None:
    """``records:B2``."""
    plain = decode_batch_header(build_batch([replace(ONE, timestamp_delta=55)], timestamp_type="log_append"))
    batch = replace(plain, max_timestamp_ms=9999)
    raw = encode_batch(batch, encode_records(batch, [replace(ONE, timestamp_delta=55)]))
    (record,) = read(raw)
    assert (record.timestamp_ms, record.timestamp_delta) == (9999, 55)
    assert rebuild_batch(decode_batch_header(raw), [record]) == raw


def test_sequence_wraps_to_zero() -> None:
    """``records:B3``."""
    records = [replace(ONE, offset=offset) for offset in (4, 5, 6)]
    raw = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert [record.sequence for record in read(raw)] == [2**31 - 2, 2**31 - 1, 0]


def test_one_bad_record_inside_a_batch_leaves_the_others_readable() -> None:
    batch = decode_batch_header(build_batch([ONE, replace(ONE, offset=5), replace(ONE, offset=6)]))
    body = bytearray(batch.raw[b.BATCH_HEADER_SIZE :])
    size = body[0] // 2 + 1
    body[size + 4] = 0x7F  # the second record's key length
    found = list(iter_records(decode_batch_header(encode_batch(batch, bytes(body)))))
    assert [item.offset for item in found if isinstance(item, Record)] == [4, 6]
    (damage,) = (item for item in found if isinstance(item, Damage))
    assert isinstance(damage.error, CorruptRecordError)
    assert damage.error.field == "record.key"
    assert damage.error.position == b.BATCH_HEADER_SIZE + size


def test_a_byte_behind_the_last_field_of_a_record_is_damage_of_that_record() -> None:
    batch = decode_batch_header(build_batch([ONE, replace(ONE, offset=5)]))
    size, *body = batch.raw[b.BATCH_HEADER_SIZE :]
    first, others = body[: size // 2], body[size // 2 :]
    changed = decode_batch_header(encode_batch(batch, bytes((size + 2, *first, 0, *others))))
    damage, record = iter_records(changed)
    assert isinstance(damage, Damage)
    assert damage.error.problem == "1 bytes are left over after the last field"
    assert (damage.error.field, damage.error.position) == ("record", b.BATCH_HEADER_SIZE)
    assert record.offset == 5


@pytest.mark.parametrize("count", [-(2**31), -1, 0, 1, 3, 2**31 - 1])
def test_wrong_record_count_is_damage(count: int) -> None:
    batch = replace(decode_batch_header(build_batch([ONE, replace(ONE, offset=5)])), records_count=count)
    body = encode_records(batch, [ONE, replace(ONE, offset=5)])
    assert isinstance(damage_of(encode_batch(batch, body)).error, CorruptBatchError | CorruptRecordError)
    if count < 0:
        for left in (body, b""):
            error = damage_of(encode_batch(batch, left)).error
            assert (error.field, error.problem) == ("records_count", f"the count is {count}")


# ---------------------------------------------------------------------------------------- control records


def test_markers_are_78_bytes_and_say_who_and_what() -> None:
    """``records:C1``–``C4``."""
    for commit, name in ((True, "COMMIT"), (False, "ABORT")):
        raw = build_marker(7, commit=commit, producer_id=9, producer_epoch=2, timestamp_ms=5, coordinator_epoch=3)
        batch = decode_batch_header(raw)
        assert len(raw) == 78
        assert (batch.is_control, batch.is_transactional, batch.producer_id) == (True, True, 9)
        assert (batch.compression, batch.base_sequence, batch.records_count) == ("none", -1, 1)
        assert [decode_control_record(record) for record in read(raw)] == [ControlRecord(name, 3)]


@pytest.mark.parametrize("key", [b"", b"\x00\x00", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_control_key_too_short_or_of_negative_version_is_an_error(key: bytes) -> None:
    """``records:C2``."""
    with pytest.raises(CorruptRecordError):
        decode_control_record(replace(ONE, key=key, value=bytes(6)))


def test_later_versions_and_unknown_types_of_control_records_are_read() -> None:
    assert decode_control_record(replace(ONE, key=b"\0\x05\0\x01", value=b"\0\x07\0\0\0\x08more")).type == "COMMIT"
    assert decode_control_record(replace(ONE, key=b"\0\0\0\x63", value=b"")) == ControlRecord("UNKNOWN", None)
    with pytest.raises(CorruptRecordError):
        decode_control_record(replace(ONE, key=b"\0\0\0\x01", value=b"\0\0\0"))
    with pytest.raises(CorruptRecordError, match="the version is -1"):
        decode_control_record(replace(ONE, key=b"\0\0\0\x01", value=b"\xff\xff\0\0\0\x08"))


# --------------------------------------------------------------------------------------- magic 0 and 1


def wrapper(magic: int, offset: int, inner: list[bytes], timestamp_type: int = 0) -> bytes:
    return encode_legacy_message(
        magic=magic,
        offset=offset,
        timestamp_ms=77,
        attributes=1 | timestamp_type,
        key=None,
        value=gzip.compress(b"".join(inner)),
    )


def message(magic: int, offset: int, timestamp_ms: int = 5, attributes: int = 0) -> bytes:
    return encode_legacy_message(
        magic=magic, offset=offset, timestamp_ms=timestamp_ms, attributes=attributes, key=b"k", value=b"v"
    )


def test_inner_offsets_are_absolute_in_magic_0_and_relative_in_magic_1() -> None:
    """``records:M5``, gaps left by the cleaner included."""
    assert [record.offset for record in read(wrapper(0, 12, [message(0, 3), message(0, 12)]))] == [3, 12]
    assert [record.offset for record in read(wrapper(1, 12, [message(1, 1), message(1, 4)]))] == [9, 12]
    assert [record.offset for record in read(wrapper(1, 0, [message(1, 0), message(1, 4)]))] == [0, 4]
    assert damage_of(wrapper(1, 2, [message(1, 0), message(1, 4)])).error.field == "offset"


def test_inner_timestamps_follow_the_wrapper_only_under_log_append_time() -> None:
    """``records:M6``, and ``M7``: an inner message of magic 0 has none."""
    assert [record.timestamp_ms for record in read(wrapper(1, 0, [message(1, 0)]))] == [5]
    assert [record.timestamp_ms for record in read(wrapper(1, 0, [message(1, 0)], 8))] == [77]
    for timestamp_type in (0, 8):
        assert [record.timestamp_ms for record in read(wrapper(1, 0, [message(0, 0)], timestamp_type))] == [-1]


def test_wrappers_that_kafka_cannot_have_written_are_damage() -> None:
    """``records:M3``; and one cut off at the end inside is left out in silence (``M10``)."""
    assert damage_of(wrapper(1, 0, [])).error.field == "value"
    assert damage_of(wrapper(1, 0, [wrapper(1, 0, [message(1, 0)])])).error.field == "attributes"
    assert [record.offset for record in read(wrapper(0, 3, [message(0, 3), message(0, 4)[:-3]]))] == [3]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec_id", [1, 2, 3])
def test_a_compressed_message_has_a_value(magic: int, codec_id: int) -> None:
    """``records:M3``."""
    raw = encode_legacy_message(magic=magic, offset=0, timestamp_ms=0, attributes=codec_id, key=None, value=None)
    error = damage_of(raw).error
    assert (error.field, error.problem) == ("value", "a compressed message has a null value")


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_inside_a_message_is_refused(magic: int) -> None:
    raw = encode_legacy_message(magic=magic, offset=0, timestamp_ms=0, attributes=4, key=None, value=b"")
    error = damage_of(raw).error
    assert (error.field, error.problem) == ("attributes", f"a message of magic {magic} is compressed with zstd")


@pytest.mark.parametrize("size", [-1, 0, b.MIN_SIZE[0] - 1])
def test_an_inner_message_cannot_say_that_it_is_smaller_than_any(size: int) -> None:
    head = (4).to_bytes(8) + size.to_bytes(4, signed=True)
    damage = damage_of(wrapper(0, 4, [message(0, 3), head + bytes(30)]))
    assert (damage.error.field, f"takes {size} bytes" in str(damage.error)) == ("size", True)


@pytest.mark.parametrize("delta", [-6, 1, 2])
def test_offsets_ascend_within_a_batch_and_stay_inside(delta: int) -> None:
    """A record that says otherwise is damaged, and the others are read."""
    batch = decode_batch_header(build_batch([ONE, replace(ONE, offset=5)]))
    body = bytearray(encode_records(batch, [ONE, replace(ONE, offset=5)]))
    body[3] = delta << 1 ^ delta >> 7  # zigzag, of the first record
    found = list(iter_records(decode_batch_header(encode_batch(batch, bytes(body)))))
    (damage,) = (item for item in found if isinstance(item, Damage))
    assert damage.error.field == "offset_delta"
    assert str(4 + delta if delta != 1 else 5) in str(damage.error)
    assert len(found) == 2


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("offsets", [(-9, 0), (2, 1, 3), (1, 1)])
def test_inner_offsets_ascend(magic: int, offsets: tuple[int, ...]) -> None:
    inner = [message(magic, offset) for offset in offsets]
    assert [
        item.error.field
        for item in iter_records(decode_batch_header(wrapper(magic, 3, inner)))
        if isinstance(item, Damage)
    ] == ["offset"]


# ------------------------------------------------------------------------------------------ compression


@pytest.mark.parametrize("name", [name for name in CODEC_NAMED if name != "none"])
@pytest.mark.parametrize("size", [0, 1, 1000, 70_000, 200_000])
def test_codecs_give_back_what_they_were_given(name: str, size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(size))
    for magic in (0, 1, 2):
        if name != "zstd" or magic == 2:
            assert CODEC_NAMED[name].decompress(CODEC_NAMED[name].compress(data, magic), magic) == data


@pytest.mark.parametrize("name", [name for name in CODEC_NAMED if name != "none"])
def test_bomb_is_an_error_and_not_an_allocation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = CODEC_NAMED[name].compress(bytes(3_000_000), 2)
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", 1_000_000)
    with pytest.raises(CorruptBatchError, match="decompresses to more than 1000000 bytes"):
        CODEC_NAMED[name].decompress(bomb, 2)


def test_snappy_without_the_java_frame_is_read() -> None:
    raw_block = bytes(cramjam.snappy.compress_raw(b"plain snappy block" * 10))
    assert CODEC_NAMED["snappy"].decompress(raw_block, 2) == b"plain snappy block" * 10


def test_snappy_streams_that_are_joined_end_to_end_are_one() -> None:
    snappy = CODEC_NAMED["snappy"]
    joined = snappy.compress(b"one", 2) + snappy.compress(b"", 2) + snappy.compress(b"two", 2)
    assert snappy.decompress(joined, 2) == b"onetwo"
    assert snappy.decompress(snappy.compress(b"one", 2) * 3, 2) == b"one" * 3


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (b"\0\0\0", "a block length is cut off"),
        (b"\0\0\0\2\0", "a block takes 2 bytes, 1 are left"),
        (b"\xff\xff\xff\xff\0", "a block takes -1 bytes, 1 are left"),
        (bytes(4), "snappy: corrupt input"),
    ],
)
def test_a_block_of_snappy_that_does_not_fit_is_refused(behind: bytes, words: str) -> None:
    with pytest.raises(CorruptBatchError, match=f"snappy: {words}"):
        CODEC_NAMED["snappy"].decompress(CODEC_NAMED["snappy"].compress(b"one", 2) + behind, 2)


def test_snappy_that_declares_more_than_it_can_hold_is_refused_before_allocating() -> None:
    with pytest.raises(CorruptBatchError):
        CODEC_NAMED["snappy"].decompress(b"\xff\xff\xff\x3f\x00", 2)


def test_lz4_header_checksum_of_magic_0_is_kafkas_wrong_one() -> None:
    """``records:K1``: written wrong for magic 0 and not checked there."""
    frame = CODEC_NAMED["lz4"].compress(b"data", 0)
    assert frame.startswith(bytes.fromhex("04224d1860401a"))
    assert CODEC_NAMED["lz4"].compress(b"data", 1).startswith(bytes.fromhex("04224d18604082"))
    assert CODEC_NAMED["lz4"].decompress(frame, 0) == b"data"
    with pytest.raises(CorruptBatchError, match="header checksum"):
        CODEC_NAMED["lz4"].decompress(frame, 1)


def test_a_block_of_lz4_has_its_size_before_it_and_not_in_it() -> None:
    """Not all readers get over the size of what is in it; it begins with its first letter and a match."""
    frame = CODEC_NAMED["lz4"].compress(b"a" * 1000, 2)
    size = int.from_bytes(frame[7:11], "little")
    assert frame[11 : 11 + size][:2] == b"\x1fa"
    assert frame[11 + size :] == bytes(4)


def test_gzip_of_several_members_is_read() -> None:
    assert CODEC_NAMED["gzip"].decompress(gzip.compress(b"one") + gzip.compress(b"two"), 2) == b"onetwo"


def test_what_follows_a_whole_gzip_member_is_padding() -> None:
    """As for Java's GZIPInputStream; there must be a member before it."""
    assert CODEC_NAMED["gzip"].decompress(gzip.compress(b"one") + bytes(20), 2) == b"one"
    with pytest.raises(CorruptBatchError, match="gzip"):
        CODEC_NAMED["gzip"].decompress(bytes(20), 2)


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_unknown_codec_is_unsupported(codec_id: int) -> None:
    batch = decode_batch_header(build_batch([ONE]))
    raw = bytearray(batch.raw)
    raw[b.ATTRIBUTES_POSITION + 1] = codec_id
    damage = damage_of(bytes(raw))
    assert isinstance(damage.error, UnsupportedCompressionTypeError)


def test_zstd_below_magic_2_is_refused() -> None:
    with pytest.raises(CorruptBatchError):
        build_batch([ONE], magic=1, compression="zstd")


@examples(200)
@given(
    data=st.binary(max_size=300),
    name=st.sampled_from(["gzip", "snappy", "lz4", "zstd"]),
    magic=st.sampled_from([0, 1, 2]),
)
def test_any_bytes_decompress_or_are_one_error(data: bytes, name: str, magic: int) -> None:
    codec = CODEC_NAMED[name]
    prefix = {"gzip": b"\x1f\x8b\x08\x00", "lz4": b"\x04\x22\x4d\x18\x60\x40\x82", "zstd": b"\x28\xb5\x2f\xfd"}
    for candidate in (data, prefix.get(name, compression.XERIAL_HEADER) + data):
        with contextlib.suppress(CorruptBatchError):
            codec.decompress(candidate, magic)


@pytest.mark.parametrize("timestamp_type", ["create", "log_append"])
@pytest.mark.parametrize(("magic", "name"), [(m, n) for m in (0, 1, 2) for n in CODEC_NAMED if m == 2 or n != "zstd"])
def test_attributes_tell_the_codec_and_of_the_rest_what_the_magic_knows(
    magic: int, name: str, timestamp_type: str
) -> None:
    """Magic 0 has no times, whoever would give them (``LegacyRecord.computeAttributes``)."""
    of_producers = {"is_transactional": True, "is_control": True} if magic == 2 else {}
    batch = decode_batch_header(
        build_batch([ONE], magic=magic, compression=name, timestamp_type=timestamp_type, **of_producers)
    )
    assert (batch.compression, batch.timestamp_type) == (name, timestamp_type if magic else "none")
    append_time = 8 if magic and timestamp_type == "log_append" else 0
    assert batch.attributes == CODEC_NAMED[name].id | append_time | (0x30 if of_producers else 0)


KEYS = st.none() | st.binary(max_size=12)


@examples(150)
@given(
    facts=st.lists(st.tuples(KEYS, KEYS, st.integers(-(2**62), 2**62), st.integers(1, 9)), min_size=1, max_size=5),
    magic=st.sampled_from([0, 1, 2]),
    name=st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]),
)
def test_built_batches_are_read_back_whatever_the_records(
    facts: list[tuple[bytes | None, bytes | None, int, int]], magic: int, name: str
) -> None:
    if magic < 2 and name == "zstd":
        name = "lz4"
    offset = 0
    records = []
    for key, value, timestamp_ms, step in facts:
        offset += step
        records.append(Record(offset=offset, timestamp_ms=timestamp_ms if magic else -1, key=key, value=value))
    raw = build_batch(records, magic=magic, compression=name)
    if magic < 2 and name == "none":
        raw = build_batch(records[:1], magic=magic)
        records = records[:1]
    batch = decode_batch_header(raw)
    assert isinstance(batch, RecordBatch)
    assert batch.is_valid()
    assert batch.last_offset == records[-1].offset
    assert batch.max_timestamp_ms == max(record.timestamp_ms for record in records)
    assert (batch.base_offset, batch.base_timestamp_ms, batch.records_count) == (
        (records[0].offset, records[0].timestamp_ms, len(records))
        if magic == 2
        else (batch.last_offset, batch.max_timestamp_ms, 1)
    )
    got = [(record.offset, record.timestamp_ms, record.key, record.value) for record in read(raw)]
    assert got == [(record.offset, record.timestamp_ms, record.key, record.value) for record in records]
