"""Where logs are cut: never where a piece would depend on what is before it. No Spark is needed for these."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.generate import Options, generate
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.shuffle.pieces import replay_piece
from offsets_log.log_format.segment import PLAUSIBLE
from offsets_log.replay.profile import MODERN
from spark_jobs import planning
from spark_jobs.fold import end_offset
from spark_jobs.options import SourceOptions
from spark_jobs.pieces import open_piece
from spark_jobs.planning import PieceFiles
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


@pytest.mark.parametrize(
    ("is_stopped", "log_end", "expected"), [(False, 9, 9), (False, 2, 5), (False, None, 5), (True, 9, 5)]
)
def test_a_log_goes_on_where_its_active_segment_begins_unless_a_bound_ended_it(
    is_stopped: bool, log_end: int | None, expected: int
) -> None:
    last = {"end_offset": 4, "is_stopped": is_stopped, "log_end": log_end}
    assert end_offset([{"end_offset": 5, "is_stopped": False, "log_end": log_end}, last]) == expected
