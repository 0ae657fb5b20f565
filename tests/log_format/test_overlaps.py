"""Offsets that several batches claim: which are read, in a segment and from one to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of, iter_log
from offsets_log.log_format.segment import Tail
from tests.log_format.test_segment import records, segment_of


def test_overlapping_segments_are_not_read_twice() -> None:
    first, _ = segment_of(0, 3)
    second, _ = segment_of(3, 6)
    log = PartitionLog(0, (Segment("a.log", 0, first), Segment("b.log", 3, second)))
    items = [item for _, item in iter_log(log)]
    assert [item.base_offset for item in items if isinstance(item, RecordBatch)] == [0, 3, 6]
    (damage,) = (item for item in items if isinstance(item, Damage))
    assert (damage.error.file, damage.error.position, damage.error.record_offset) == ("b.log", 0, 3)


def read_log(*segments: tuple[int, bytes]) -> tuple[list[int], list[Damage]]:
    """Base offsets of the batches read, and what was damaged."""
    log = PartitionLog(0, tuple(Segment(f"{base}.log", base, data) for base, data in segments))
    items = [item for _, item in iter_log(log)]
    damages = [item for item in items if isinstance(item, Damage)]
    return [item.base_offset for item in items if isinstance(item, RecordBatch)], damages


@pytest.mark.parametrize("bit", range(0, 63, 3))
@pytest.mark.parametrize("which", [0, 1, 2])
def test_flipped_bit_of_a_base_offset_costs_its_own_batch_only(bit: int, which: int) -> None:
    """No checksum covers it."""
    data, positions = segment_of(100, 103, 106, 109)
    offset = (100, 103, 106)[which] ^ (1 << bit)
    at = positions[which]
    broken = data[:at] + offset.to_bytes(8) + data[at + 8 :]
    read, damages = read_log((100, broken), (112, segment_of(112, 115)[0]))
    left = [base for base in (100, 103, 106, 109, 112, 115) if base != (100, 103, 106)[which]]
    if offset > 100 and read != left:  # a small flip may look like a gap and overlap its neighbour instead
        assert len(damages) <= 2
        assert len(read) >= 4
    else:
        assert read == left
        (damage,) = damages
        assert damage.error.field == "base_offset"
        assert damage.error.position == at


def test_batches_that_overlap_in_part_are_not_read_twice() -> None:
    data = segment_of(0, 3)[0] + segment_of(4, 7)[0]
    read, damages = read_log((0, data))
    assert read == [0, 3, 7]
    assert [damage.error.record_offset for damage in damages] == [4]


def test_a_batch_that_begins_at_the_last_offset_read_is_not_read() -> None:
    read, damages = read_log((0, segment_of(0, 2, 5)[0]))
    assert read == [0, 5]
    assert [damage.error.record_offset for damage in damages] == [2]


@pytest.mark.parametrize(
    ("following", "read"), [(4, [0, 10]), (5, [0, 10]), (6, [0, 6]), (10, [0, 10]), (13, [0, 10, 13])]
)
def test_behind_a_gap_a_batch_gives_way_to_the_next_only_if_that_fits(following: int, read: list[int]) -> None:
    """The next one fits if it begins behind what was read."""
    data = build_batch(records(0, 6)) + segment_of(10, following)[0]
    assert read_log((0, data))[0] == read


@pytest.mark.parametrize(("following", "read"), [(99, [110]), (100, [100]), (105, [105]), (110, [110])])
def test_behind_a_gap_a_segments_first_batch_gives_way_to_what_fits_the_segment(
    following: int, read: list[int]
) -> None:
    """The next one fits if it begins no earlier than the segment."""
    data = segment_of(110, following)[0]
    assert read_log((100, data))[0] == read


def test_a_batch_that_ends_before_it_begins_is_not_read() -> None:
    odd = build_batch(records(5, 1), last_offset=4)
    read, (damage,) = read_log((0, segment_of(0)[0] + odd))
    assert read == [0]
    assert "offsets 5 to 4 make no sense" in str(damage.error)


def test_the_last_offset_of_a_segment_is_2_to_the_31_less_1_beyond_its_base() -> None:
    """An index holds the difference in 4 bytes with a sign."""
    last = (1 << 31) - 1
    assert read_log((0, build_batch(records(last, 1))))[0] == [last]
    read, (damage,) = read_log((0, build_batch(records(last + 1, 1))))
    assert read == []
    assert "cannot be in a segment that begins at 0" in str(damage.error)


def test_offsets_too_far_for_a_segment_are_believed_where_the_next_ones_are_too() -> None:
    """A broker splits such segments (``D-8``, KAFKA-6264); one changed bit puts one batch far."""
    far = 1 << 32
    assert read_log((0, segment_of(0, far, far + 7, far + 15)[0])) == ([0, far, far + 7, far + 15], [])
    assert read_log((0, segment_of(0, far)[0]), (far + 9, segment_of(far + 9)[0])) == ([0, far, far + 9], [])
    for changed in ((0, far, 7, 15), (0, 7, far)):
        read, (damage,) = read_log((0, segment_of(*changed)[0]))
        assert (read, damage.error.record_offset) == ([offset for offset in changed if offset != far], far)


def test_of_two_batches_that_share_an_offset_the_one_behind_a_gap_is_the_odd_one() -> None:
    read, (damage,) = read_log((0, segment_of(0, 10, 12)[0]))
    assert read == [0, 12]
    assert "offsets 10 to 12 are beyond the next batch's 12" in str(damage.error)


def test_behind_a_gap_the_last_batch_of_a_segment_ends_before_the_next_segment_begins() -> None:
    """Which its name tells; where it does not, nothing is odd but what was read already."""
    first, second = segment_of(0, 10)[0], segment_of(12, 15)[0]
    read, (damage,) = read_log((0, first), (12, second))
    assert read == [0, 12, 15]
    assert "offsets 10 to 12 are beyond the next batch's 12" in str(damage.error)
    assert read_log((0, first), (13, segment_of(13)[0])) == ([0, 10, 13], [])
    nameless = PartitionLog(0, (Segment("0.log", 0, first), Segment("x", None, second)))
    items = [item for _, item in iter_log(nameless)]
    assert [item.base_offset for item in items if isinstance(item, RecordBatch)] == [0, 10, 15]


@pytest.mark.parametrize("zeros_behind", [0, 7])
@pytest.mark.parametrize("torn", [0, 1, 2])
def test_only_the_last_segment_of_a_log_may_end_in_the_middle_of_a_batch(torn: int, zeros_behind: int) -> None:
    """Which is its tail, as is what was never written behind it; in those before it something is gone."""
    segments = [
        Segment(f"{base}.log", base, segment_of(base, base + 3)[0][: -10 if i == torn else None])
        for i, base in enumerate((0, 6, 12))
    ]
    segments[torn] = replace(segments[torn], zeros_behind=zeros_behind)
    log = PartitionLog(0, tuple(segments))
    items = [(segment.file, item) for segment, item in iter_log(log)]
    read = [item for _, item in items if isinstance(item, RecordBatch)]
    assert [batch.base_offset for batch in read] == [base for base in range(0, 18, 3) if base != 6 * torn + 3]
    assert list(batches_of(log)) == read
    odd = [(file, type(item)) for file, item in items if not isinstance(item, RecordBatch)]
    assert odd == [(f"{6 * torn}.log", Tail if torn == 2 else Damage)]


@pytest.mark.parametrize("zeros", [1, (1 << 16) - 1, 1 << 16, 3 << 16])
def test_zeros_before_any_other_byte_are_no_tail(zeros: int) -> None:
    read, (damage,) = read_log((0, segment_of(0, 3)[0] + bytes(zeros) + b"x"))
    assert read == [0, 3]
    assert damage.raw == bytes(zeros) + b"x"
