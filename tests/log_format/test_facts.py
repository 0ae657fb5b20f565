"""What batches, records and logs tell of themselves, at the bounds of each rule."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import replace

import pytest

from offsets_log.errors import CorruptBatchError, Damage
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch, decode_batch_header, encode_batch, time_of
from offsets_log.log_format.building import build_batch, encode_legacy_message, encode_records, rebuild_batch
from offsets_log.log_format.completeness import is_beyond_cleaner
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.control_record import ControlRecord, control_record, decode_control_record
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment, iter_log
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import (
    INT64_MAX,
    INT64_MIN,
    Record,
    as_int64,
    first_offset,
    has_other_magics_inside,
    iter_records,
)

ONE = Record(offset=4, timestamp_ms=1000, key=b"k", value=b"v")


@pytest.mark.parametrize(("timestamp_ms", "told"), [(-1, None), (0, 0), (-2, -2)])
def test_one_timestamp_tells_no_time(timestamp_ms: int, told: int | None) -> None:
    assert time_of(timestamp_ms) == told


@pytest.mark.parametrize(
    ("base_timestamp_ms", "delta", "timestamp_ms"),
    [
        (INT64_MAX - 3, 100, INT64_MIN + 96),
        (INT64_MIN + 3, -100, INT64_MAX - 96),
        (INT64_MAX, 1, INT64_MIN),
        (INT64_MAX, INT64_MAX, -2),
        (INT64_MIN, INT64_MIN, 0),
        (-1, INT64_MIN, INT64_MAX),
    ],
)
def test_a_time_wraps_around_as_in_kafka_and_back_to_the_same_bytes(
    base_timestamp_ms: int, delta: int, timestamp_ms: int
) -> None:
    """As kafka-clients 3.9.1 and 4.3.0 read it: ``DefaultRecord.readFrom`` adds Java's longs."""
    header = replace(decode_batch_header(build_batch([ONE])), base_timestamp_ms=base_timestamp_ms)
    raw = encode_batch(header, encode_records(header, [replace(ONE, timestamp_ms=base_timestamp_ms + delta)]))
    (record,) = iter_records(batch := decode_batch_header(raw))
    assert isinstance(record, Record)
    assert (record.timestamp_ms, record.timestamp_delta) == (timestamp_ms, delta)
    assert rebuild_batch(batch, [record]) == raw


def test_a_broker_s_time_is_that_of_all_records() -> None:
    """And deltas, of no meaning then, are kept (``records:B2``)."""
    header = decode_batch_header(build_batch([ONE], timestamp_type="log_append"))
    header = replace(header, base_timestamp_ms=INT64_MAX - 3, max_timestamp_ms=77)
    raw = encode_batch(header, encode_records(header, [replace(ONE, timestamp_delta=100)]))
    (record,) = iter_records(batch := decode_batch_header(raw))
    assert isinstance(record, Record)
    assert (record.timestamp_ms, record.timestamp_delta) == (77, 100)
    assert rebuild_batch(batch, [record]) == raw


@pytest.mark.parametrize(
    ("number", "kept"),
    [(INT64_MAX, INT64_MAX), (INT64_MAX + 1, INT64_MIN), (INT64_MIN, INT64_MIN), (INT64_MIN - 1, INT64_MAX), (-1, -1)],
)
def test_a_number_wraps_around_in_64_bits(number: int, kept: int) -> None:
    assert as_int64(number) == kept


@pytest.mark.parametrize(
    ("base_sequence", "last_offset", "told"),
    [(-1, 9, -1), (0, 4, 0), (0, 9, 5), (b.MAX_SEQUENCE - 1, 5, b.MAX_SEQUENCE), (b.MAX_SEQUENCE - 1, 6, 0)],
)
def test_the_last_sequence_number_counts_from_the_base_and_begins_anew_at_zero(
    base_sequence: int, last_offset: int, told: int
) -> None:
    """``records:B3``."""
    raw = build_batch([ONE], producer_id=7, producer_epoch=0, base_sequence=base_sequence, last_offset=last_offset)
    assert decode_batch_header(raw).last_sequence == told


@pytest.mark.parametrize(
    ("magic", "attributes", "told"),
    [(0, 0, "none"), (0, 8, "none"), (1, 0, "create"), (1, 8, "log_append"), (1, 16, "create"), (2, 8, "log_append")],
)
def test_whose_clock_the_timestamps_are_of(magic: int, attributes: int, told: str) -> None:
    batch = replace(decode_batch_header(build_batch([ONE])), magic=magic, attributes=attributes)
    assert batch.timestamp_type == told


@pytest.mark.parametrize(("magic", "told"), [(0, "none"), (1, "log_append"), (2, "log_append")])
def test_a_batch_is_built_with_times_of_the_log_where_its_format_has_them(magic: int, told: str) -> None:
    assert decode_batch_header(build_batch([ONE], magic=magic, timestamp_type="log_append")).timestamp_type == told


# ------------------------------------------------------------------------------------------------- as a load reads


def shifted(*offsets: int, last_offset: int) -> RecordBatch:
    """A batch from offset 4 on with records at these offsets, whether they fit it or not."""
    records = [Record(offset=offset, timestamp_ms=1, key=b"k", value=b"v") for offset in (4, *offsets)]
    batch = decode_batch_header(build_batch(records))
    return replace(batch, last_offset=last_offset)


@pytest.mark.parametrize(
    ("offsets", "last_offset", "kept"),
    [
        ((5, 6), 6, [4, 5, 6]),
        ((7, 6), 7, [4, 7]),
        ((5, 6), 5, [4, 5]),
        ((5, 5), 6, [4, 5]),
        ((3, 6), 6, [4, 6]),
        ((9, 6), 6, [4, 6]),
    ],
)
def test_records_that_do_not_rise_or_leave_their_batch_are_refused_but_loaded(
    offsets: tuple[int, ...], last_offset: int, kept: list[int]
) -> None:
    """``D-5``: a load looks at no offset."""
    batch = shifted(*offsets, last_offset=last_offset)
    loaded = list(iter_records(batch, as_loaded=True))
    assert [record.offset for record in loaded if isinstance(record, Record)] == [4, *offsets]
    read = list(iter_records(batch))
    assert [record.offset for record in read if isinstance(record, Record)] == kept
    assert sum(isinstance(item, Damage) for item in read) == 3 - len(kept)


@pytest.mark.parametrize(("count", "loaded", "read"), [(0, 0, 0), (1, 0, 1), (2, 2, 2), (3, 2, 2), (-1, 0, 0)])
def test_a_count_that_is_not_that_of_the_records(count: int, loaded: int, read: int) -> None:
    """``D-5``: a load takes nothing of a batch of none, and the last record only where it ends the batch."""
    batch = replace(shifted(5, last_offset=5), records_count=count)
    for as_loaded, expected in ((True, loaded), (False, read)):
        items = list(iter_records(batch, as_loaded=as_loaded))
        assert sum(isinstance(item, Record) for item in items) == expected
        is_whole = count == 2 or (count == 0 and as_loaded)
        assert any(isinstance(item, Damage) for item in items) is not is_whole


@pytest.mark.parametrize(("size", "is_right"), [(1, True), (0, False), (-1, False), (2, False)])
def test_the_key_of_a_header_is_never_null(size: int, is_right: bool) -> None:
    raw = bytearray(build_batch([replace(ONE, headers=(("a", b"x"),))]))
    at = raw.index(b"\x02a\x02x")
    raw[at] = (size << 1 ^ size >> 7) & 0xFF
    items = list(iter_records(decode_batch_header(bytes(raw))))
    assert any(isinstance(item, Record) for item in items) is is_right


def packed(magic: int, *messages: bytes) -> RecordBatch:
    """A compressed message around others."""
    wrapper = encode_legacy_message(
        magic=magic,
        offset=9,
        timestamp_ms=5,
        attributes=CODEC_NAMED["gzip"].id,
        key=None,
        value=CODEC_NAMED["gzip"].compress(b"".join(messages), magic),
    )
    return decode_batch_header(wrapper)


def message(offset: int, magic: int = 1, **facts: int) -> bytes:
    facts = {"attributes": 0, "timestamp_ms": 1} | facts
    return encode_legacy_message(magic=magic, offset=offset, key=b"k", value=b"v", **facts)


def test_the_first_offset_of_a_message_is_that_of_the_first_one_inside() -> None:
    """``records:M5``: inner offsets of magic 1 are relative to the last, those of magic 0 absolute."""
    assert first_offset(decode_batch_header(message(7))) == 7
    assert first_offset(packed(1, message(0), message(3))) == 6
    assert first_offset(packed(0, message(5, 0), message(9, 0))) == 5
    with pytest.raises(CorruptBatchError, match="compressed again"):
        first_offset(packed(1, message(0, attributes=1)))


@pytest.mark.parametrize(
    ("magic", "inside", "told"), [(1, (1, 1), False), (1, (1, 0), True), (0, (0, 0), False), (0, (1,), True)]
)
def test_messages_of_another_magic_inside(magic: int, inside: tuple[int, ...], told: bool) -> None:
    assert has_other_magics_inside(packed(magic, *(message(i, of) for i, of in enumerate(inside)))) is told
    assert not has_other_magics_inside(decode_batch_header(message(7, magic)))


@pytest.mark.parametrize(("offsets", "is_read"), [((3, 5), True), ((5, 5), False), ((5, 3), False)])
def test_inner_messages_whose_offsets_do_not_rise_are_refused_but_loaded(
    offsets: tuple[int, ...], is_read: bool
) -> None:
    """``D-5``."""
    batch = packed(0, *(message(offset, 0) for offset in offsets))
    assert [record.offset for record in iter_records(batch, as_loaded=True) if isinstance(record, Record)] == [*offsets]
    assert all(isinstance(item, Record) for item in iter_records(batch)) is is_read


def test_an_inner_message_of_an_unknown_magic_is_refused_and_loaded_as_one_of_magic_1() -> None:
    """``D-5``."""
    raw = bytearray(message(0))
    raw[b.MAGIC_POSITION] = 3
    (loaded,) = iter_records(packed(1, bytes(raw)), as_loaded=True)
    assert isinstance(loaded, Record)
    assert (loaded.timestamp_ms, loaded.key) == (1, b"k")
    (damage,) = iter_records(packed(1, bytes(raw)))
    assert isinstance(damage, Damage)
    assert "magic 3" in str(damage.error)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_written_anew_is_the_same(magic: int) -> None:
    raw = message(7, magic)
    batch = decode_batch_header(raw)
    (record,) = iter_records(batch)
    assert isinstance(record, Record)
    assert rebuild_batch(batch, [record]) == raw


def test_a_batch_of_nothing_is_not_built() -> None:
    with pytest.raises(CorruptBatchError, match="needs a record"):
        build_batch([])


# --------------------------------------------------------------------------------------------------------- lz4

FRAME = CODEC_NAMED["lz4"].compress(b"some bytes", 2)


@pytest.mark.parametrize(
    ("at", "bits", "words"),
    [
        (0, 0x01, "no frame header"),
        (4, 0x80, "frame version 3"),
        (4, 0x40, "frame version 0"),
        (4, 0x20, "dependent blocks"),
        (4, 0x01, "dictionaries"),
        (5, 0x70, "unknown block size"),
        (5, 0x10, "header checksum"),
        (6, 0x01, "header checksum"),
    ],
)
def test_a_header_of_lz4_that_kafka_does_not_write_is_refused(at: int, bits: int, words: str) -> None:
    broken = FRAME[:at] + bytes([FRAME[at] ^ bits]) + FRAME[at + 1 :]
    with pytest.raises(CorruptBatchError, match=words):
        CODEC_NAMED["lz4"].decompress(broken, 2)


@pytest.mark.parametrize("size", range(8))
def test_a_block_of_lz4_has_one_of_four_sizes(size: int) -> None:
    """4 to 7 stand for one; magic 0, whose checksum nobody looks at, is refused the others as well."""
    frame = FRAME[:5] + bytes([size << 4]) + FRAME[6:]
    if size >= 4:
        assert CODEC_NAMED["lz4"].decompress(frame, 0) == b"some bytes"
    else:
        with pytest.raises(CorruptBatchError, match="unknown block size"):
            CODEC_NAMED["lz4"].decompress(frame, 0)


@pytest.mark.parametrize("end", range(len(FRAME) - 4))
def test_a_frame_of_lz4_that_is_cut_off_is_refused(end: int) -> None:
    with pytest.raises(CorruptBatchError, match="lz4"):
        CODEC_NAMED["lz4"].decompress(FRAME[:end], 2)


# ----------------------------------------------------------------------------------------------- logs, and the rest


def test_a_log_is_the_sum_of_its_segments() -> None:
    segments = (
        Segment("a", 0, b"12345", missing_columns=frozenset({"x"})),
        Segment("b", 5, b"67", zeros_behind=100, missing_columns=frozenset({"y"})),
        Segment("c", 9, b""),
    )
    log = PartitionLog(0, segments, checkpoints=Checkpoints(cleaned_until=7))
    assert (log.size_bytes, log.bytes_to_read, log.missing_columns) == (107, 7, {"x", "y"})
    assert (log.cleaned_until, PartitionLog(0, segments).cleaned_until) == (7, None)


def test_damage_names_its_file() -> None:
    one = Record(offset=0, timestamp_ms=0, key=b"k", value=b"v")
    segments = (Segment("a", 0, build_batch([one])), Segment("b", 1, b"\xff" * 100), Segment("c", 9, b""))
    (damage,) = (item for _, item in iter_log(PartitionLog(0, segments)) if isinstance(item, Damage))
    assert damage.error.file == "b"


@pytest.mark.parametrize(
    ("offset", "left"), [(0, "abc"), (4, "abc"), (5, "bc"), (8, "bc"), (9, "c"), (10, "c"), (1 << 40, "c")]
)
def test_segments_that_end_before_an_offset_are_left_out(offset: int, left: str) -> None:
    log = PartitionLog(0, tuple(Segment(file, base, b"") for file, base in (("a", 0), ("b", 5), ("c", 9))))
    assert "".join(segment.file for segment in log.since(offset).segments) == left
    assert PartitionLog(0, ()).since(offset).segments == ()


@pytest.mark.parametrize(
    ("base_offset", "cleaned_until", "stopped_cleanly", "is_empty", "told"),
    [
        (5, 5, None, False, True),
        (4, 5, None, False, False),
        (None, None, None, False, True),
        (None, 1, None, False, False),
        (5, 5, None, True, True),
        (5, 5, True, True, False),
        (5, 5, False, True, False),
        (5, 5, True, False, True),
    ],
)
def test_what_a_broker_had_not_cleaned(
    base_offset: int | None, cleaned_until: int | None, stopped_cleanly: bool | None, is_empty: bool, told: bool
) -> None:
    checkpoints = Checkpoints(cleaned_until=cleaned_until, stopped_cleanly=stopped_cleanly)
    assert is_beyond_cleaner(base_offset, checkpoints, is_empty=is_empty) is told


def test_a_string_that_is_not_utf_8_is_the_same_in_another_process() -> None:
    text = MalformedString(b"a\xff")
    again = pickle.loads(pickle.dumps(text))
    assert (again, again.raw, type(again)) == (text, b"a\xff", MalformedString)


def test_an_id_is_16_bytes_of_base64() -> None:
    assert Uuid.from_text(str(Uuid(range(16)))) == bytes(range(16))
    for text in ("", "AAAA", "A" * 24):
        with pytest.raises(ValueError, match="not 16"):
            Uuid.from_text(text)


def test_a_record_has_nothing_but_what_it_was_given() -> None:
    record = Record(offset=4, key=None, value=None)
    assert (record.position, record.attributes, record.headers) == (0, 0, ())
    assert (record.timestamp_ms, record.timestamp_delta, record.sequence) == (-1, 0, -1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("key_length", "behind"), [(-2, b""), (-1, b""), (-1, b"more")])
def test_a_load_reads_messages_with_odd_lengths_and_ends(magic: int, key_length: int, behind: bytes) -> None:
    """Any length below zero is null, and nobody asks for what stands behind the value."""
    raw = bytearray(
        encode_legacy_message(magic=magic, offset=4, timestamp_ms=5, attributes=0, key=None, value=b"v") + behind
    )
    raw[8:12] = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    at = b.LEGACY_HEADER_SIZE[magic]
    raw[at : at + 4] = key_length.to_bytes(4, signed=True)
    raw[b.LEGACY_CRC_POSITION : b.MAGIC_POSITION] = zlib.crc32(raw[b.MAGIC_POSITION :]).to_bytes(4)
    batch = decode_batch_header(bytes(raw))
    (record,) = iter_records(batch, as_loaded=True)
    assert isinstance(record, Record)
    assert (record.key, record.value) == (None, b"v")
    (strictly,) = iter_records(batch)
    assert isinstance(strictly, Record) is (key_length == -1 and not behind)


CONTROL_TYPES = [
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
    "UNKNOWN",
]


def test_control_records_have_the_types_of_kafka() -> None:
    """``ControlRecordType``."""
    for number, name in enumerate(CONTROL_TYPES):
        epoch = 3 if number < 2 else None
        made = control_record(ONE, ControlRecord(name, epoch))
        assert made.key == b"\0\0" + (number.to_bytes(2) if name != "UNKNOWN" else b"\x7f\xff")
        assert decode_control_record(made) == ControlRecord(name, epoch)
        assert decode_control_record(replace(made, key=b"\0\0" + number.to_bytes(2))) == ControlRecord(name, epoch)
