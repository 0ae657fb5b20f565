"""Walking a segment whatever happened to it: tails, holes, wrong checksums, damaged lengths."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import CorruptBatchError, CorruptLogError, Damage, TruncatedBatchError
from offsets_log.events import BatchStart, Event, Until
from offsets_log.log_format import batch as b
from offsets_log.log_format import segment
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch, empty_batch, encode_legacy_message
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Tail, iter_batches
from offsets_log.pipeline import iter_events
from tests.conftest import read_json
from tests.sizes import examples

FORMATS = [
    (magic, compression)
    for magic in (0, 1, 2)
    for compression in ("none", "gzip", "snappy", "lz4", "zstd")
    if magic == 2 or compression != "zstd"
]


def records(first_offset: int, count: int = 3) -> list[Record]:
    return [
        Record(offset=first_offset + i, timestamp_ms=1_700_000_000_000 + i, key=b"key %d" % i, value=b"value" * 9)
        for i in range(count)
    ]


def segment_of(*first_offsets: int, magic: int = 2, compression: str = "none") -> tuple[bytes, list[int]]:
    """A segment and the position of each batch."""
    batches = [build_batch(records(offset), magic=magic, compression=compression) for offset in first_offsets]
    positions = [sum(map(len, batches[:i])) for i in range(len(batches))]
    return b"".join(batches), positions


def offsets_read(data: bytes, *, is_last: bool = True) -> list[int]:
    return [
        record.offset
        for item in iter_batches(data, is_last=is_last)
        if isinstance(item, RecordBatch)
        for record in iter_records(item)
        if isinstance(record, Record)
    ]


def problems(data: bytes, *, is_last: bool = True) -> list[Damage | Tail]:
    return [item for item in iter_batches(data, is_last=is_last) if not isinstance(item, RecordBatch)]


@pytest.mark.parametrize("until", range(11))
@pytest.mark.parametrize(("magic", "compression"), FORMATS)
def test_a_bound_ends_the_reading_of_every_magic(magic: int, compression: str, until: int) -> None:
    """All records below it are read, and no batch behind the last of them."""
    data, _ = segment_of(0, 3, 6, magic=magic, compression=compression)
    batches = [item for item in iter_batches(data) if isinstance(item, RecordBatch)]
    events = list(iter_events(PartitionLog(0, (Segment("x", 0, data),)), until=Until(until)))
    assert [event.record.offset for event in events if isinstance(event, Event)] == list(range(min(until, 9)))
    begun = [event.batch.position for event in events if isinstance(event, BatchStart)]
    assert begun == [batch.position for batch in batches][: -(-until * len(batches) // 9)]


@pytest.mark.parametrize(("magic", "compression"), FORMATS)
def test_batches_of_every_magic_and_codec_are_read_back(magic: int, compression: str) -> None:
    """``records:M9``: a plain message of magic 0 and 1 is a batch of its own."""
    data, _ = segment_of(5, 8, magic=magic, compression=compression)
    assert offsets_read(data) == [5, 6, 7, 8, 9, 10]
    assert problems(data) == []
    first = next(iter_batches(data))
    assert isinstance(first, RecordBatch)
    assert first.compression == compression
    expected = [-1] * 3 if magic == 0 else [1_700_000_000_000 + i for i in range(3)]
    if compression != "none" or magic == 2:
        assert [record.timestamp_ms for record in iter_records(first)] == expected  # type: ignore[union-attr]


def test_torn_tail_of_the_last_segment_is_normal_and_whole_batches_are_kept() -> None:
    data, positions = segment_of(0, 1 << 40)
    for end in range(positions[1] + 4, len(data)):  # before that it is zeros
        torn = data[:end]
        assert offsets_read(torn) == [0, 1, 2]
        assert problems(torn) == [Tail("torn", positions[1], end - positions[1])]


def test_torn_tail_of_an_earlier_segment_is_damage() -> None:
    data, positions = segment_of(0, 3)
    (damage,) = problems(data[:-10], is_last=False)
    assert isinstance(damage, Damage)
    assert isinstance(damage.error, TruncatedBatchError)
    assert damage.error.position == positions[1]
    assert damage.raw == data[positions[1] : -10]


@pytest.mark.parametrize("zeros", [1, 11, 16, 17, 61, 4096, 3_000_000])
def test_zeros_behind_the_last_batch_are_a_preallocated_tail(zeros: int) -> None:
    data, _ = segment_of(0, 3)
    assert offsets_read(data + bytes(zeros)) == [0, 1, 2, 3, 4, 5]
    assert problems(data + bytes(zeros)) == [Tail("zeros", len(data), zeros)]


def test_empty_and_zero_filled_files_have_no_batches() -> None:
    assert list(iter_batches(b"")) == []
    assert problems(bytes(10_000)) == [Tail("zeros", 0, 10_000)]


@pytest.mark.parametrize("is_last", [True, False])
def test_zeros_that_are_not_in_the_buffer_are_told_as_if_they_were(is_last: bool) -> None:
    """Wherever the written part ends, with more zeros in the buffer than the batch there can reach into."""

    def told(data: bytes, zeros_behind: int) -> list[object]:
        items = iter_batches(data, is_last=is_last, zeros_behind=zeros_behind)
        return [(str(item.error), item.error.position) if isinstance(item, Damage) else item for item in items]

    data, _ = segment_of(0, 3)
    damaged = data[:70] + b"x" + data[71:]
    for end in range(len(data) + 1):
        for written in (data[:end], damaged[:end]):
            assert told(written + bytes(400), 5000) == told(written + bytes(5400), 0)
    assert told(data, 5000) == told(data + bytes(5000), 0), "not one zero in the buffer"


def test_hole_of_zeros_in_the_middle_is_damage_and_the_rest_is_read() -> None:
    data, positions = segment_of(0, 3, 6)
    hole = data[: positions[1]] + bytes(positions[2] - positions[1]) + data[positions[2] :]
    assert offsets_read(hole) == [0, 1, 2, 6, 7, 8]
    (damage,) = problems(hole)
    assert isinstance(damage, Damage)
    assert damage.error.position == positions[1]
    assert len(damage.raw) == positions[2] - positions[1]


COVERED_BY_NO_CHECKSUM = {*range(8), *range(12, 16)}
"""Of a magic 2 batch: base offset and partition leader epoch (``DefaultRecordBatch.computeChecksum``)."""


def test_every_flipped_byte_of_a_batch_is_noticed_or_listed_as_not_covered() -> None:
    data, positions = segment_of(0, 3, 6)
    end = positions[2] - positions[1]
    for at in range(end):
        broken = bytearray(data)
        broken[positions[1] + at] ^= 0x55
        if at in COVERED_BY_NO_CHECKSUM:
            continue
        assert offsets_read(bytes(broken)) == [0, 1, 2, 6, 7, 8], at
        (damage,) = problems(bytes(broken))
        assert isinstance(damage, Damage), at
        assert damage.error.position == positions[1], at


@pytest.mark.parametrize("length", [0, 1, 13, 48, -1, -(2**31), 2**31 - 1, 10**6])
def test_forged_length_hides_only_its_own_batch(length: int) -> None:
    data, positions = segment_of(0, 3, 6)
    at = positions[1] + 8
    broken = data[:at] + length.to_bytes(4, signed=True) + data[at + 4 :]
    assert offsets_read(broken) == [0, 1, 2, 6, 7, 8]
    (damage,) = problems(broken)
    assert isinstance(damage, Damage)


def test_search_behind_damage_checks_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that all claim the rest of the file would otherwise cost the square of its size."""
    monkeypatch.setattr(segment, "MIN_SEARCH_BYTES", 0)
    header = bytearray(build_batch(records(0, 1))[: b.BATCH_HEADER_SIZE])
    count = 2_000
    data = bytearray(header * count)
    for i in range(count):
        left = len(data) - i * len(header) - b.LOG_OVERHEAD
        data[i * len(header) + 8 : i * len(header) + 12] = left.to_bytes(4)
    checked = 0
    real = RecordBatch.computed_crc

    def counting(batch: RecordBatch) -> int:
        nonlocal checked
        checked += batch.size_bytes
        return real(batch)

    monkeypatch.setattr(RecordBatch, "computed_crc", counting)
    (damage,) = problems(b"x" + bytes(data))
    assert isinstance(damage, Damage)
    assert checked <= (segment.SEARCH_FACTOR + 2) * 2 * len(data)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_search_ends_where_its_bytes_are_used_up(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place that turns out to be no batch costs some."""
    odd = bytes(8) + b"\x07\xff\xff\xff" + bytes(4) + b"\2" + b"\xff" * 9
    data = b"\xff" * 20 + odd * count + build_batch(records(5))
    assert sum(1 for _ in segment.PLAUSIBLE.finditer(data, 0, 20 + len(odd) * count)) == count
    monkeypatch.setattr(segment, "SEARCH_FACTOR", 0)
    for more, found in ((-1, []), (0, []), (1, [5, 6, 7])):
        monkeypatch.setattr(segment, "MIN_SEARCH_BYTES", count * segment.MIN_CANDIDATE_COST + more)
        assert offsets_read(data) == found


@pytest.mark.parametrize(("more", "found"), [(-1, [5, 6, 7]), (0, [3, 4]), (1, [3, 4])])
def test_behind_damage_a_large_batch_gives_way_to_one_inside_it(
    more: int, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks like a large batch is seldom one; without another in it it is read."""
    inner = build_batch(records(5))
    for value in (inner, bytes(len(inner))):
        outer = build_batch([Record(offset=at, timestamp_ms=1, key=b"k", value=value) for at in (3, 4)])
        monkeypatch.setattr(segment, "LARGE_BATCH", len(outer) + more)
        assert offsets_read(b"\xff" * 20 + outer)[:3] == (found if value == inner else [3, 4])


def test_unknown_magic_is_damage_and_skipped() -> None:
    """``records:T5``: a broker raises CorruptRecordException."""
    data, positions = segment_of(0, 3, 6)
    at = positions[1] + b.MAGIC_POSITION
    broken = data[:at] + b"\x03" + data[at + 1 :]
    (damage,) = problems(broken)
    assert isinstance(damage, Damage)
    assert isinstance(damage.error, CorruptBatchError)
    assert (damage.error.field, damage.is_unsupported) == ("magic", False)
    assert offsets_read(broken) == [0, 1, 2, 6, 7, 8]


def test_wrong_checksum_is_read_all_the_same_where_asked_as_a_load_does() -> None:
    """``records:B4``."""
    data, positions = segment_of(0, 3)
    broken = data[: positions[1] + 17] + bytes(4) + data[positions[1] + 21 :]
    read = [item for item in iter_batches(broken, verify_crc=False) if isinstance(item, RecordBatch)]
    assert [batch.base_offset for batch in read] == [0, 3]
    assert not read[1].is_valid()


def test_last_offset_is_the_headers_and_not_that_of_the_last_record() -> None:
    """A compacted batch ends where it always did (``records:B1``)."""
    (batch,) = iter_batches(build_batch(records(10, 2), last_offset=99))
    assert isinstance(batch, RecordBatch)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (10, 99, 100)
    assert [record.offset for record in iter_records(batch)] == [10, 11]  # type: ignore[union-attr]


def test_emptied_batch_keeps_its_span_and_has_no_records() -> None:
    """``records:X5``."""
    (batch,) = iter_batches(build_batch(records(10, 2), is_transactional=True, producer_id=7, last_offset=20))
    assert isinstance(batch, RecordBatch)
    raw = empty_batch(batch)
    assert len(raw) == b.BATCH_HEADER_SIZE
    (emptied,) = iter_batches(raw)
    assert isinstance(emptied, RecordBatch)
    assert list(iter_records(emptied)) == []
    assert (emptied.next_offset, emptied.producer_id, emptied.is_transactional) == (21, 7, True)


def test_delete_horizon_is_bit_6_and_moves_no_timestamp(recording: Callable[[str], Path]) -> None:
    """Cleaned batches of a 4.3 broker: the base timestamp is the horizon, the deltas lead back (``records:X4``)."""
    seen = 0
    for path in sorted((recording("kafka-4.3-cleaned") / "log").glob("*/*.log")):
        for batch in iter_batches(path.read_bytes()):
            if isinstance(batch, RecordBatch) and batch.delete_horizon_ms is not None:
                seen += 1
                assert batch.attributes & 0x40
                for record in iter_records(batch):
                    assert isinstance(record, Record)
                    assert record.timestamp_ms <= batch.max_timestamp_ms < batch.delete_horizon_ms
    assert seen


def test_every_field_of_a_header_is_read_from_its_place() -> None:
    """In Kafka's order: each of them another number here, and the same again where the batch is written again."""
    written = struct.pack(">qiiBIhiqqqhii", 1 << 40, 49, 3, 2, 4, 0x50, 5, 6, 7, 8, 9, 10, 0)
    batch = b.decode_batch_header(written, 11)
    assert batch == RecordBatch(
        position=11, raw=written, magic=2, crc=4, attributes=0x50, base_offset=1 << 40, last_offset=(1 << 40) + 5,
        partition_leader_epoch=3, base_timestamp_ms=6, max_timestamp_ms=7, producer_id=8, producer_epoch=9,
        base_sequence=10, records_count=0,
    )  # fmt: skip
    again = b.encode_batch(batch, b"")
    assert (again[:17], again[21:]) == (written[:17], written[21:]), "all but the checksum"


@pytest.mark.parametrize("magic", [0, 1])
def test_later_bits_of_a_message_of_magic_0_and_1_mean_nothing(magic: int) -> None:
    """``records:X4``, ``records:M9``: a delete horizon, control and transactions came with magic 2."""
    raw = encode_legacy_message(magic=magic, offset=0, timestamp_ms=5, attributes=0x70, key=b"k", value=b"v")
    batch = b.decode_batch_header(raw)
    assert (batch.delete_horizon_ms, batch.is_control, batch.is_transactional) == (None, False, False)
    assert (batch.partition_leader_epoch, batch.producer_id, batch.last_sequence) == (-1, -1, -1)
    plain = b.decode_batch_header(build_batch(records(0)))
    assert (plain.delete_horizon_ms, plain.is_control, plain.is_transactional) == (None, False, False)


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 22), (2, 49)])
def test_an_entry_has_room_for_its_header(magic: int, least: int) -> None:
    """Magic 1 has a timestamp more than magic 0."""
    assert b.size_of_entry(least, magic) == b.LOG_OVERHEAD + least
    with pytest.raises(CorruptBatchError, match=f"at least {least} are needed") as caught:
        b.size_of_entry(least - 1, magic)
    assert caught.value.field == ("batch_length" if magic == 2 else "size")


def test_magics_are_0_to_2_of_which_a_new_batch_has_the_last() -> None:
    for magic in set(range(-128, 128)) - {0, 1, 2}:
        with pytest.raises(CorruptBatchError, match=f"unknown magic {magic}"):
            b.size_of_entry(1 << 20, magic)
    assert b.NEWEST_MAGIC == b.decode_batch_header(build_batch(records(0))).magic == 2


@pytest.mark.parametrize("kind", ["torn", "zeros"])
def test_recorded_damaged_ends_are_tails(kind: str, recording: Callable[[str], Path]) -> None:
    folder = recording("kafka-4.3-live-copy")
    facts = read_json(folder / "recording.json")[kind]
    (tail,) = problems((folder / f"log-{kind}" / facts["file"]).read_bytes())
    assert isinstance(tail, Tail)
    assert tail.kind == kind
    assert tail.position == facts["last_batch_starts_at" if kind == "torn" else "zero_bytes_from"]


@pytest.mark.parametrize("garbage", [b"hello world\n", b"\x02" * 3000, b"\xff" * 40, bytes(8) + b"\x7f" * 60])
def test_garbage_behind_the_last_batch_is_no_torn_tail(garbage: bytes) -> None:
    data, _ = segment_of(0, 3)
    (damage,) = problems(data + garbage)
    assert isinstance(damage, Damage)
    assert damage.raw == garbage


@pytest.mark.parametrize(("length", "is_torn"), [(0x07FFFFFF, True), (0x08000000, False)])
def test_a_batch_longer_than_any_broker_takes_is_no_torn_tail(length: int, is_torn: bool) -> None:
    data, _ = segment_of(0, 3)
    head = bytes(8) + length.to_bytes(4) + bytes(4) + b"\x02" + bytes(20)
    (found,) = problems(data + head)
    assert isinstance(found, Tail if is_torn else Damage)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("value", [None, b"value"])
def test_damage_before_a_tail_of_zeros_ends_where_its_batch_does(magic: int, value: bytes | None) -> None:
    """The least batch of magic 0 is the least of all."""
    data = build_batch([Record(offset=0, timestamp_ms=1, key=None, value=value)], magic=magic)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    damage, tail = problems(damaged + bytes(100))
    assert isinstance(damage, Damage)
    assert damage.raw == damaged
    assert tail == Tail("zeros", len(data), 100)


def test_of_a_large_damaged_piece_the_begin_is_kept_and_the_size_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAX_QUARANTINED_BYTES", 10)
    (damage,) = problems(b"hello world, this is no batch")
    assert isinstance(damage, Damage)
    assert damage.raw == b"hello worl"
    assert "(29 bytes left out)" in str(damage.error)


@pytest.mark.parametrize("bit", [5, 9, 14, 20, 24])
def test_flipped_bit_of_the_last_batches_length_is_no_torn_tail(bit: int) -> None:
    data, positions = segment_of(0, 3)
    at = positions[1] + 8
    length = int.from_bytes(data[at : at + 4]) | (1 << bit)
    broken = data[:at] + length.to_bytes(4) + data[at + 4 :]
    if broken != data:
        (damage,) = problems(broken)
        assert isinstance(damage, Damage)


def test_zeros_that_are_not_the_tail_are_skipped_without_trying_each(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = segment_of(0, 3)
    tried = 0
    real = segment._entry_at

    def counting(view: memoryview, position: int, verify_crc: bool) -> object:
        nonlocal tried
        tried += 1
        return real(view, position, verify_crc)

    monkeypatch.setattr(segment, "_entry_at", counting)
    for filler in (bytes(3_000_000), b"\x02" * 3_000_000):
        tried = 0
        assert offsets_read(data + filler + b"x") == [0, 1, 2, 3, 4, 5]
        assert tried < 100


@examples(300)
@given(data=st.binary(max_size=400))
def test_any_bytes_give_batches_damage_or_a_tail_that_cover_them(data: bytes) -> None:
    covered = 0
    for item in iter_batches(data):
        match item:
            case RecordBatch():
                covered += item.size_bytes
            case Damage(error, raw):
                assert isinstance(error, CorruptLogError)
                covered += len(raw)
            case Tail():
                covered += item.size_bytes
    assert covered == len(data)
