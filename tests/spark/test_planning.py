"""Where logs are cut: never where a piece would depend on what is before it. No Spark is needed for these."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.generate import Options, generate
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.shuffle.pieces import replay_piece
from offsets_log.log_format.batch import LAST_OFFSET_DELTA_POSITION
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import PLAUSIBLE
from offsets_log.replay.profile import MODERN
from spark_jobs import planning
from spark_jobs.files import FoundFile
from spark_jobs.fold import end_offset
from spark_jobs.options import SourceOptions
from spark_jobs.pieces import open_piece
from spark_jobs.planning import FoundLog, PieceFiles
from spark_jobs.source import plan_reading
from tests.disk.logs import batch, name, partition, segment


@pytest.fixture
def log(tmp_path: Path) -> Path:
    generate(tmp_path / "log", Options(bytes=1_000_000, groups=20, segment_bytes=250_000))
    return tmp_path / "log"


def segments(log: Path) -> list[Path]:
    return sorted(log.glob("*/*.log"))


def ends(pieces: Sequence[PieceFiles]) -> list[int]:
    """The last offset of each piece; one that does not fit before the next raises."""
    found = []
    for piece in pieces:
        with ExitStack() as stack:
            opened, bounds = open_piece(piece, stack)
            _, _, reach = replay_piece(Replay(opened, MODERN), bounds, lambda seen: None)
            found.append(reach.last_offset)
    return found


def test_a_segment_is_a_piece(log: Path) -> None:
    pieces = plan_reading(SourceOptions(paths=(str(log),)))
    assert [[Path(file.path).name for file in piece.files] for piece in pieces] == [
        [path.name] for path in segments(log)
    ]
    assert ends(pieces) == sorted(ends(pieces))


def test_small_pieces_join_and_large_ones_are_cut(log: Path) -> None:
    assert len(plan_reading(SourceOptions(paths=(str(log),), piece_bytes=500_000))) in (2, 3)
    small = plan_reading(SourceOptions(paths=(str(log),), piece_bytes=30_000))
    assert len(small) > 20
    assert ends(small) == sorted(ends(small))
    assert len(plan_reading(SourceOptions(paths=(str(log),), split=False))) == 1


def test_segments_that_overlap_stay_together(log: Path) -> None:
    first, second, *_ = segments(log)
    first.write_bytes(first.read_bytes() + second.read_bytes())  # as while the cleaner swaps them
    pieces = plan_reading(SourceOptions(paths=(str(log),)))
    assert [len(piece.files) for piece in pieces] == [2, 1, 1, 1]
    ends(pieces)


@pytest.mark.parametrize(("base", "pieces"), [(2, [2]), (3, [1, 1])])
def test_a_segment_that_begins_at_the_last_offset_of_the_one_before_stays_with_it(
    base: int, pieces: list[int], tmp_path: Path
) -> None:
    partition(tmp_path, 0, {name(0): segment(0, 1, 2), name(base): segment(base, base + 1)})
    assert [len(piece.files) for piece in plan_reading(SourceOptions(paths=(str(tmp_path),)))] == pieces


def test_the_end_of_a_segment_is_found_behind_what_only_looks_like_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "TAIL_BYTES", 200)
    looks_like_one = bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\2"
    first = segment(0) + batch(1, value=looks_like_one * 5) + segment(2)
    assert len(PLAUSIBLE.findall(first[-200:])) > 2
    partition(tmp_path, 0, {name(0): first, name(3): segment(3)})
    assert [len(piece.files) for piece in plan_reading(SourceOptions(paths=(str(tmp_path),)))] == [1, 1]


@pytest.mark.parametrize("again", range(5, 9))
def test_no_cut_is_made_where_offsets_do_not_rise(again: int, tmp_path: Path) -> None:
    """Nine batches; the cut in the middle is before the seventh, and looks at its neighbours."""
    offsets = [at - 1 if at >= again else at for at in range(9)]
    data = segment(*offsets)
    partition(tmp_path, 0, {name(0): data})
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),), piece_bytes=len(data) // 2))
    assert len(pieces) == (1 if again in (6, 7) else 2)


def test_pieces_that_are_laid_end_to_end_are_the_log(log: Path) -> None:
    """Each begins where the one before ends, in its file and in its offsets; only the last one is the last."""
    for piece_bytes in (None, 30_000, 100_000, 500_000):
        pieces = plan_reading(SourceOptions(paths=(str(log),), piece_bytes=piece_bytes))
        assert [(piece.number, piece.count) for piece in pieces] == [(i, len(pieces)) for i in range(len(pieces))]
        assert (pieces[0].index, pieces[0].position, pieces[0].last_offset) == (0, 0, -1)
        for piece, after in pairwise(pieces):
            if after.position:
                assert (piece.end, piece.files[-1].path) == (after.position, after.files[0].path)
            else:
                assert (piece.end, piece.index + len(piece.files)) == (None, after.index)
                assert piece.following == after.files[0].base_offset
            assert piece.next_first_offset is not None
            assert piece.next_first_offset > after.last_offset
        assert (pieces[-1].end, pieces[-1].following, pieces[-1].next_first_offset) == (None, None, None)
        assert {piece.log_end for piece in pieces} == {int(segments(log)[-1].stem)}
        assert [piece.is_last for piece in pieces] == [piece.files[-1] == pieces[-1].files[-1] for piece in pieces]


@pytest.mark.parametrize(("more", "files"), [(0, [1, 1, 1, 1]), (2, [2, 2])])
def test_segments_are_joined_until_they_are_three_quarters_of_a_piece(
    more: int, files: list[int], tmp_path: Path
) -> None:
    segments = {name(at): segment(at, at + 1, at + 2) for at in (10, 13, 16, 19)}
    partition(tmp_path, 0, segments)
    (size,) = {len(data) for data in segments.values()}
    assert size % 3 == 0
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),), piece_bytes=size // 3 * 4 + more))
    assert [len(piece.files) for piece in pieces] == files


def test_a_packed_segment_stays_with_the_next(tmp_path: Path) -> None:
    """Its end is not read before all of it."""
    files = {name(0, ".gz"): gzip.compress(segment(0, 1)), name(2): segment(2), name(3): segment(3)}
    partition(tmp_path, 0, files)
    assert [len(piece.files) for piece in plan_reading(SourceOptions(paths=(str(tmp_path),)))] == [2, 1]


def test_a_torn_segment_stays_with_the_next(log: Path) -> None:
    path = segments(log)[1]
    path.write_bytes(path.read_bytes()[:-10])
    pieces = plan_reading(SourceOptions(paths=(str(log),)))
    assert max(len(piece.files) for piece in pieces) >= 2
    ends(pieces)


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_does_not_keep_pieces_from_fitting(log: Path, seed: int) -> None:
    path = segments(log)[seed % 3]
    data = bytearray(path.read_bytes())
    at = len(data) * (seed + 1) // 13
    data[at : at + 300] = bytes(300)
    path.write_bytes(data)
    ends(plan_reading(SourceOptions(paths=(str(log),), piece_bytes=20_000)))


def test_an_empty_active_segment(log: Path) -> None:
    last = segments(log)[-1]
    last.with_name("00000000000099999999.log").write_bytes(b"")
    pieces = plan_reading(SourceOptions(paths=(str(log),)))
    assert pieces[-1].log_end == 99_999_999
    ends(pieces)


def test_an_empty_segment_holds_nothing_and_reaches_up_to_its_name(tmp_path: Path) -> None:
    partition(tmp_path, 0, {name(0): b"", name(1): segment(1), name(2): b"", name(3): b""})
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),)))
    assert [len(piece.files) for piece in pieces] == [1, 1, 1, 1]
    assert ends(pieces) == [-1, 1, 1, 2]
    assert {piece.log_end for piece in pieces} == {3}
    partition(tmp_path, 1, {name(0): b""})
    assert [piece.log_end for piece in plan_reading(SourceOptions(paths=(str(tmp_path),)))][4:] == [0]


def test_pieces_say_which_offsets_lie_before_and_behind_them(tmp_path: Path) -> None:
    partition(tmp_path, 0, {name(0): segment(0, 1), name(2): segment(2), name(5): segment(5)})
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),)))
    assert [(piece.last_offset, piece.next_first_offset) for piece in pieces] == [(-1, 2), (1, 5), (4, None)]


@pytest.mark.parametrize(("count", "pieces"), [(10, 1), (15, 1), (16, 2), (24, 2)])
def test_a_segment_is_cut_when_it_is_half_as_large_again_as_a_piece(count: int, pieces: int, tmp_path: Path) -> None:
    partition(tmp_path, 0, {name(0): segment(*range(10, 10 + count))})
    planned = plan_reading(SourceOptions(paths=(str(tmp_path),), piece_bytes=10 * len(segment(10))))
    assert len(planned) == pieces


def test_a_large_segment_is_cut_into_pieces_of_about_one_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says how large pieces are to be."""
    data = segment(*range(10, 50))
    partition(tmp_path, 0, {name(0): data})
    monkeypatch.setattr(planning, "SPLIT_BYTES", len(data) // 4)
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),)))
    sizes = [(piece.end or len(data)) - piece.position for piece in pieces]
    assert len(sizes) == 4
    assert all(abs(size - len(data) // 4) <= 2 * len(segment(10)) for size in sizes)


def test_a_note_about_a_log_is_told_by_its_first_piece_only(tmp_path: Path) -> None:
    partition(tmp_path, 0, {name(0, ".swap"): segment(0, 1), name(2): segment(2), name(3): segment(3)})
    first, *others = plan_reading(SourceOptions(paths=(str(tmp_path),)))
    assert any(".swap" in note for note in first.notes)
    assert [piece.notes for piece in others] == [(), ()]


@pytest.mark.parametrize(
    ("is_stopped", "log_end", "expected"), [(False, 9, 9), (False, 2, 5), (False, None, 5), (True, 9, 5)]
)
def test_a_log_goes_on_where_its_active_segment_begins_unless_a_bound_ended_it(
    is_stopped: bool, log_end: int | None, expected: int
) -> None:
    last = {"end_offset": 4, "is_stopped": is_stopped, "log_end": log_end}
    assert end_offset([{"end_offset": 5, "is_stopped": False, "log_end": log_end}, last]) == expected


def found(path: Path, base_offset: int | None, data: bytes) -> FoundFile:
    """A file as a store has it: nothing of it is mapped."""
    path.write_bytes(data)
    return FoundFile(f"local://{path}", base_offset, len(data), url=f"local://{path}")


def test_segments_whose_names_tell_no_offset_stay_with_those_around_them(tmp_path: Path) -> None:
    files = [found(tmp_path / f"{at}.log", base, segment(at)) for at, base in enumerate((0, 1, None, 3, 4))]
    pieces = planning.plan([FoundLog(PartitionLog(0, ()), tuple(files))], piece_bytes=None, split=True)
    assert [[file.base_offset for file in piece.files] for piece in pieces] == [[0], [1, None, 3], [4]]
    assert [piece.following for piece in pieces] == [1, 4, None]
    nameless = planning.plan(
        [FoundLog(PartitionLog(None, ()), (files[2],)), FoundLog(PartitionLog(0, ()), ())], piece_bytes=None, split=True
    )
    assert [(piece.log, piece.log_end, piece.is_last) for piece in nameless] == [(0, 0, True)]


def test_a_file_is_cut_inside_only_where_it_is_mapped_and_cuts_are_told_without_what_is_mapped(tmp_path: Path) -> None:
    """What is mapped here is of no use where the piece is read."""
    data = segment(*range(8))
    remote = found(tmp_path / name(0), 0, data)
    (whole,) = planning.plan([FoundLog(PartitionLog(0, ()), (remote,))], piece_bytes=len(data) // 4, split=True)
    assert whole.end is None
    partition(tmp_path, 0, {name(0): data})
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path / "__consumer_offsets-0"),), piece_bytes=len(data) // 4))
    assert len(pieces) > 1
    assert {file.mapped for piece in pieces for file in piece.files} == {None}


def test_behind_the_last_batch_of_a_file_nothing_is_cut(tmp_path: Path) -> None:
    data = segment(*range(8))
    partition(tmp_path, 0, {name(0): data + bytes(2 * len(data))})
    pieces = plan_reading(SourceOptions(paths=(str(tmp_path),), piece_bytes=len(data) // 2))
    assert [piece.next_first_offset is None for piece in pieces] == [False, True]
    assert ends(pieces)[-1] == 7


def test_an_empty_file_is_not_read_to_know_where_it_ends() -> None:
    """Stores refuse to read of nothing; and in one without an offset in its name nothing tells where it would."""
    assert planning.last_offset_of(FoundFile("nowhere://5.log", 5, 0, url="nowhere://5.log")) == 4
    assert planning.last_offset_of(FoundFile("nowhere://x.log", None, 9, url="nowhere://x.log")) is None


def test_an_end_that_no_batch_tells_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No offset is below zero, whatever a header says; and what only looks like batches is not tried for ever."""
    below = bytearray(batch(0))
    below[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4] = (-1).to_bytes(4, signed=True)
    for tail in (b"", b"\xee" * 90, bytes(90), bytes(below), batch(7)[:-1]):
        assert planning.last_offset_in(tail) is None
    assert planning.last_offset_in(batch(0)) == 0
    odd = (bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\2") * 3
    tail = odd + batch(7)
    tried = sum(match.start() < len(odd) for match in PLAUSIBLE.finditer(tail))
    for most, expected in ((tried, None), (tried + 1, 7)):
        monkeypatch.setattr(planning, "MOST_TRIES", most)
        assert planning.last_offset_in(tail) == expected
