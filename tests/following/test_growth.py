"""What happens to files while they are followed: torn batches, damage, cleaning, truncation, new logs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from offsets_log.disk.growing import read_at, segment_files
from offsets_log.errors import Damage
from offsets_log.events import TailFound
from offsets_log.following.growth import GrowingLog, GrownPiece, SegmentFile, _position_of
from offsets_log.following.offsets import FollowedOffsets, OffsetsAsked
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import iter_batches
from offsets_log.replay.profile import MODERN
from tests.builders import LogBuilder
from tests.following.grown import Follower


def commit(offset: int, topic: str, committed: int) -> bytes:
    """A batch of one commit of group g."""
    return LogBuilder().skip(offset).commit(committed, topic=topic).batches[0]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "__consumer_offsets-0"
    made.mkdir()
    return made


@pytest.fixture
def follower(directory: Path) -> Follower:
    asked = OffsetsAsked(profile=MODERN, shows_group=lambda name: True, shows_topic=lambda name: True, rules={})
    return Follower(directory, FollowedOffsets(asked, 0), bulk_from=1 << 40, piece_bytes=200)


def changes(follower: Follower) -> list[tuple[str, int | None]]:
    follower.look()
    return [(row["topic"], row["committed_offset"]) for row in follower.followed.changes(0)]


def segment(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020}.log"


def test_a_torn_batch_is_waited_for_and_a_new_segment_makes_it_damage(directory: Path, follower: Follower) -> None:
    whole = commit(1, "b", 7)
    segment(directory, 0).write_bytes(commit(0, "a", 5) + whole[:-1])
    assert changes(follower) == [("a", 5)]
    assert changes(follower) == []
    assert [type(seen) for seen in follower.growing.rest()] == [TailFound]
    with segment(directory, 0).open("ab") as file:
        file.write(whole[-1:] + commit(2, "c", 1)[:40])
    assert changes(follower) == [("b", 7)]
    assert not follower.seen.damages
    segment(directory, 3).write_bytes(commit(3, "d", 9))
    assert changes(follower) == [("d", 9)]
    assert [damage.error.position for damage in follower.seen.damages] == [len(commit(0, "a", 5) + whole)]
    assert not follower.seen.replaced


@pytest.mark.parametrize("cut", [-1, 30])
def test_what_is_wrong_is_damage_as_soon_as_the_log_goes_on_behind_it(
    directory: Path, follower: Follower, cut: int
) -> None:
    bad = bytearray(commit(1, "b", 7))
    bad[cut] ^= 0xFF
    segment(directory, 0).write_bytes(commit(0, "a", 5) + bad)
    assert changes(follower) == [("a", 5)]
    assert not follower.seen.damages
    assert [type(seen) for seen in follower.growing.rest()] == [Damage]
    with segment(directory, 0).open("ab") as file:
        file.write(commit(2, "c", 1))
    assert changes(follower) == [("c", 1)]
    assert [damage.error.position for damage in follower.seen.damages] == [len(commit(0, "a", 5))]


def test_zeros_that_become_a_batch_are_read(directory: Path, follower: Follower) -> None:
    first, second = commit(0, "a", 5), commit(1, "b", 7)
    segment(directory, 0).write_bytes(first + bytes(4096))
    assert changes(follower) == [("a", 5)]
    segment(directory, 0).write_bytes(first + second + bytes(4096 - len(second)))
    assert changes(follower) == [("b", 7)]
    assert not follower.seen.damages + follower.seen.replaced


def test_what_the_cleaner_does_below_the_place_is_no_news(directory: Path, follower: Follower) -> None:
    old = [commit(0, "a", 5), commit(1, "b", 6), commit(2, "a", 7)]
    segment(directory, 0).write_bytes(b"".join(old))
    assert changes(follower) == [("a", 7), ("b", 6)]
    unseen = commit(3, "c", 1)
    segment(directory, 0).write_bytes(old[1] + old[2] + unseen)  # grown, rolled and cleaned between two looks
    segment(directory, 4).write_bytes(commit(4, "d", 2))
    assert changes(follower) == [("c", 1), ("d", 2)]
    segment(directory, 0).rename(segment(directory, 0).with_suffix(".log.deleted"))
    assert changes(follower) == []
    segment(directory, 6).write_bytes(commit(6, "e", 3))
    assert changes(follower) == [("e", 3)]
    assert not follower.seen.damages + follower.seen.replaced
    assert len(follower.seen.others) == 1  # offset 5 is in no segment


def test_a_swap_file_stands_for_its_segment(directory: Path, follower: Follower) -> None:
    segment(directory, 0).write_bytes(commit(0, "a", 5))
    assert changes(follower) == [("a", 5)]
    segment(directory, 0).rename(segment(directory, 0).with_suffix(".log.swap"))
    segment(directory, 1).write_bytes(commit(1, "b", 6))
    assert changes(follower) == [("b", 6)]
    assert not follower.seen.replaced


def test_a_truncated_log_is_read_again_and_tells_what_differs(directory: Path, follower: Follower) -> None:
    first = commit(0, "a", 5)
    segment(directory, 0).write_bytes(first + commit(1, "b", 6) + commit(2, "a", 7))
    assert changes(follower) == [("a", 7), ("b", 6)]
    segment(directory, 0).write_bytes(first)
    assert changes(follower) == []  # one look is not believed
    assert changes(follower) == [("a", 5), ("b", None)]
    assert [found.next_offset for found in follower.seen.replaced] == [3]
    assert "ends before position" in follower.seen.replaced[0].why
    with segment(directory, 0).open("ab") as file:
        file.write(commit(1, "c", 8))
    assert changes(follower) == [("c", 8)]


def test_another_batch_at_the_same_place_is_another_log(directory: Path, follower: Follower) -> None:
    first = commit(0, "a", 5)
    segment(directory, 0).write_bytes(first + commit(1, "b", 6))
    assert changes(follower) == [("a", 5), ("b", 6)]
    segment(directory, 0).write_bytes(first + commit(1, "b", 4) + commit(2, "c", 1))
    assert changes(follower) + changes(follower) == [("b", 4), ("c", 1)]
    assert "another batch at position" in follower.seen.replaced[0].why


def test_a_log_that_begins_anew_behind_the_place_is_another_one(directory: Path, follower: Follower) -> None:
    segment(directory, 0).write_bytes(commit(0, "a", 5))
    segment(directory, 9).write_bytes(commit(9, "b", 6))
    assert changes(follower) == [("a", 5), ("b", 6)]
    segment(directory, 9).unlink()
    segment(directory, 0).write_bytes(commit(0, "z", 1))
    assert changes(follower) + changes(follower) == [("a", None), ("b", None), ("z", 1)]
    assert "segments end before 9" in follower.seen.replaced[0].why
    segment(directory, 0).unlink()
    assert changes(follower) + changes(follower) == [("z", None)]


def test_offsets_missing_behind_a_whole_batch_are_lost_whatever_was_damaged_before(
    directory: Path, follower: Follower
) -> None:
    broken = bytearray(commit(0, "a", 5))
    broken[-1] ^= 1
    segment(directory, 0).write_bytes(bytes(broken) + commit(1, "b", 7))
    assert changes(follower) == [("b", 7)]
    segment(directory, 5).write_bytes(commit(5, "c", 9))
    assert changes(follower) == [("c", 9)]
    (missing,) = follower.seen.others
    assert isinstance(missing, Missing)
    assert (missing.first_offset, missing.last_offset, missing.explained_by) == (2, 4, None)


def test_no_more_is_given_out_at_a_time_than_asked_for_unless_one_batch_is_larger(directory: Path) -> None:
    batches = [commit(offset, "a", 5) for offset in range(9)]
    segment(directory, 0).write_bytes(b"".join(batches))
    size = len(batches[0])
    for asked, expected in ((3 * size + 1, [3, 3, 3]), (4 * size - 1, [3, 3, 3]), (5 * size, [5, 4]), (1, [1] * 9)):
        growing = GrowingLog(PartitionLog(0, ()), "", partial(read_at, directory), asked)
        given = [len(piece.log.segments[0].buffer) for piece in taken(growing, directory)]
        assert given == [count * size for count in expected]


def taken(growing: GrowingLog, directory: Path) -> Iterator[GrownPiece]:
    for piece in growing.grown(segment_files(directory)):
        assert isinstance(piece, GrownPiece)
        yield piece


def test_a_segment_that_begins_before_what_was_read_is_another_log(directory: Path, follower: Follower) -> None:
    segment(directory, 0).write_bytes(commit(0, "a", 5) + commit(1, "b", 6) + commit(2, "c", 7))
    assert len(changes(follower)) == 3
    segment(directory, 0).write_bytes(commit(0, "a", 5))
    segment(directory, 1).write_bytes(commit(1, "d", 1))
    assert changes(follower) + changes(follower) == [("b", None), ("c", None), ("d", 1)]


# ---------------------------------------------------------------------------------------- any way to grow, byte by byte

BATCHES = [commit(at, "t" * (1 + at % 3), at) for at in range(9)]
ROLLS = (0, 3, 4, 8)
"""Base offsets of the segments."""


def grown_to(size_bytes: int) -> dict[str, bytes]:
    """The files when so many bytes of the log were written: a segment begins with its first byte."""
    files, begin = {}, 0
    for base, behind in zip(ROLLS, (*ROLLS[1:], len(BATCHES)), strict=True):
        data = b"".join(BATCHES[base:behind])
        if size_bytes > begin or base == 0:
            files[f"{base:020}.log"] = data[: max(0, size_bytes - begin)]
        begin += len(data)
    return files


def read_on(growing: GrowingLog, files: dict[str, bytes]) -> bytes:
    """What is new, with the cursors where a reader leaves them."""
    found = b""
    for piece in growing.grown([SegmentFile(int(name[:20]), name, len(data)) for name, data in files.items()]):
        assert isinstance(piece, GrownPiece)
        data = bytes(piece.log.segments[0].buffer)
        for batch in iter_batches(data):
            assert isinstance(batch, RecordBatch)
            assert batch.base_offset == piece.cursor.next_offset
            piece.cursor.last_offset, piece.cursor.next_offset = batch.last_offset, batch.next_offset
        assert files[piece.log.segments[0].file][piece.position :].startswith(data)
        found += data
    return found


@pytest.mark.parametrize("piece_bytes", [1, 150, 400, 1 << 20])
@pytest.mark.parametrize("step", [1, 13, 100, 333, 10_000])
def test_all_whole_batches_are_read_once_however_a_log_grows(step: int, piece_bytes: int) -> None:
    total = sum(map(len, BATCHES))
    files: dict[str, bytes] = {}
    growing = GrowingLog(
        PartitionLog(0, ()), "", lambda name, at, size: files[name][at : at + size], piece_bytes=piece_bytes
    )
    assert (growing.next_offset, growing.place, growing.bytes_behind) == (0, None, 0)
    found = b""
    for size in (*range(0, total, step), total):
        files.clear()
        files |= grown_to(size)
        found += read_on(growing, files)
        whole = [raw for number, raw in enumerate(BATCHES) if sum(map(len, BATCHES[: number + 1])) <= size]
        assert found == b"".join(whole)
        assert (growing.next_offset, growing.doubt) == (len(whole), None)
        assert growing.bytes_behind == size - len(found)
    assert list(growing.rest()) == []
    growing.read_again()
    assert (growing.place, growing.next_offset) == (None, 0)
    assert read_on(growing, files) == found


@pytest.mark.parametrize("offset", range(10))
def test_a_place_is_found_again_in_a_segment_that_was_cleaned(offset: int) -> None:
    """The first batch that reaches the offset, of those that are left; behind all of them the end."""
    for left in ([0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 4, 8], [1, 5], [8]):
        data = b"".join(BATCHES[at] for at in left)
        found = _position_of(
            lambda name, at, size, data=data: data[at : at + min(size, 300)],  # type: ignore[misc]
            SegmentFile(0, "x", len(data)),
            offset,
        )
        assert found == sum(len(BATCHES[at]) for at in left if at < offset)
