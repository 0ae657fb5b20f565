"""What a log should hold: the rule itself, and what tells a cleaned segment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.events import Until
from offsets_log.log_format import completeness
from offsets_log.log_format.batch import MAGIC_POSITION
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.completeness import Missing, missing_partition, shows_cleaning
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.pipeline import iter_events
from tests.conftest import RECORDINGS, log_directories
from tests.disk.logs import batch, segment

CLEANED = batch(0) + batch(3)


def log(segments: dict[int, bytes], **told: int) -> PartitionLog:
    parts = tuple(Segment(str(base), base, data) for base, data in segments.items())
    return PartitionLog(0, parts, checkpoints=Checkpoints(**told))


def missing(given: PartitionLog, until: int | None = None) -> list[tuple[int, int, bool]]:
    events = iter_events(given, until=Until(until))
    return [(event.first_offset, event.last_offset, event.is_lost) for event in events if isinstance(event, Missing)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (log({}), []),
        (log({0: segment(0, 1)}), []),
        (log({5: segment(5)}), [(0, 4, True)]),
        (log({5: b""}), [(0, 4, True)]),
        (log({5: segment(5)}, log_start_offset=5), []),
        (log({5: segment(5)}, log_start_offset=2), [(2, 4, True)]),
        (log({5: segment(5)}, log_start_offset=9), []),
        (log({0: segment(0)}, high_watermark=1, recovery_point=1), []),
        (log({0: segment(0)}, high_watermark=3), [(1, 2, True)]),
        (log({0: segment(0)}, high_watermark=2, recovery_point=4), [(1, 3, True)]),
        (log({0: segment(0), 1: b""}, high_watermark=1), []),
        (log({0: segment(0), 7: segment(7)}), [(1, 6, True)]),
        (log({0: segment(0), 7: b""}, high_watermark=7), [(1, 6, True)]),
        (log({0: CLEANED, 7: b""}, high_watermark=7), [(4, 6, False)]),
        (log({0: CLEANED, 7: segment(7)}), [(4, 6, False)]),
        (log({0: segment(0), 7: segment(7, 9)}), [(1, 6, False)]),
        (log({0: segment(0), 5: b"", 7: segment(7)}), [(1, 6, False)]),
        (log({0: b"", 7: segment(7)}), [(0, 6, False)]),
        (log({0: segment(0), 7: segment(7)}, cleaned_until=7), [(1, 6, False)]),
        (log({0: segment(0), 7: segment(7)}, cleaned_until=4), [(1, 3, False), (4, 6, True)]),
        (log({0: CLEANED, 7: segment(7)}, cleaned_until=0), [(4, 6, False)]),
        (log({0: CLEANED, 7: segment(7)}, cleaned_until=4), [(4, 6, True)]),
        (log({0: CLEANED, 7: segment(7, 9)}, cleaned_until=4), [(4, 6, False)]),
        (log({0: CLEANED, 7: segment(7, 9), 12: b""}, cleaned_until=4), [(4, 6, False), (10, 11, False)]),
        (log({0: segment(0), 7: segment(7)}, log_start_offset=7), []),
        (log({0: segment(0), 7: segment(7)}, log_start_offset=3), [(3, 6, True)]),
    ],
)
def test_what_is_missing(given: PartitionLog, expected: list[tuple[int, int, bool]]) -> None:
    """``CL-11``, ``CL-38``, ``CL-55``: what a gap is, and what names of files tell."""
    assert missing(given) == expected
    chosen = replace(given, selection="chosen")
    assert not any(is_lost for *_, is_lost in missing(chosen))


@pytest.mark.parametrize(
    ("given", "explained_by", "shown_by"),
    [
        ({0: segment(0), 7: segment(7)}, None, "neither file was ever cleaned"),
        ({0: segment(0)[:-1] + b"\xff", 7: segment(7)}, "they may be in what could not be read there", "begins at 7"),
        ({0: CLEANED, 7: segment(7)}, "a file beside them was cleaned", "begins at 7"),
    ],
)
def test_why_offsets_between_files_are_missing(
    given: dict[int, bytes], explained_by: str | None, shown_by: str
) -> None:
    """A choice explains it before all others."""
    for selection in (None, "chosen"):
        (gap,) = (one for one in iter_events(replace(log(given), selection=selection)) if isinstance(one, Missing))
        assert gap.explained_by == (selection or explained_by)
        assert shown_by in gap.shown_by or selection


@pytest.mark.parametrize("cleaned_until", [1, 4])
def test_offsets_beyond_the_cleaner_are_lost_and_told_with_how_far_it_had_come(cleaned_until: int) -> None:
    given = log({0: segment(0), 7: segment(7)}, cleaned_until=cleaned_until)
    lost = [one for one in iter_events(given) if isinstance(one, Missing) and one.is_lost]
    assert [one.first_offset for one in lost] == [cleaned_until]
    assert lost[0].shown_by.endswith(f", and the cleaner had come to {cleaned_until} only")


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (0, []),
        (3, [(0, 2, True)]),
        (7, [(0, 4, True)]),
        (8, [(0, 4, True), (7, 7, True)]),
        (12, [(0, 4, True), (7, 8, True), (10, 11, True)]),
        (None, [(0, 4, True), (7, 8, True), (10, 19, True)]),
    ],
)
def test_bounds_cut_what_is_missing(until: int | None, expected: list[tuple[int, int, bool]]) -> None:
    given = log({5: segment(5, 6), 9: segment(9)}, high_watermark=20)
    assert missing(given, until) == expected


def test_a_partition_that_never_held_anything_is_not_missing() -> None:
    assert list(missing_partition(3, Checkpoints(high_watermark=0))) == []
    (found,) = missing_partition(3, Checkpoints(high_watermark=9, recovery_point=4, log_start_offset=2))
    assert (found.first_offset, found.last_offset, found.is_lost) == (2, 8, True)
    assert "replication-offset-checkpoint" in found.in_words()
    assert found.count == 7
    assert "offsets partition 3: offsets 2 to 8 are missing (7 of the log)" in found.in_words()
    assert (
        replace(found, last_offset=2, offsets_partition=None).in_words().startswith("offsets partition ?: offsets 2 to")
    )
    assert replace(found, last_offset=2).count == 1


def test_damage_is_no_hole() -> None:
    broken = bytearray(segment(0, 1, 2))
    broken[len(segment(0)) + 16] = 9  # the second batch's magic
    assert any(isinstance(event, Damage) for event in iter_events(log({0: bytes(broken), 3: segment(3)})))
    assert not shows_cleaning(Segment("", 0, bytes(broken)))


def cleaned(*, count: int = 1, last_offset: int = 9) -> bytes:
    """A batch from offset 7 on that has lost records, or its last ones."""
    records = [Record(offset=7 + at, timestamp_ms=1, key=b"k", value=b"v") for at in range(count)]
    return build_batch(records, last_offset=last_offset)


BROKEN = segment(7)[:MAGIC_POSITION] + b"\x09" + segment(7)[MAGIC_POSITION + 1 :]


@pytest.mark.parametrize(
    ("base_offset", "data", "is_told"),
    [
        (7, segment(7, 8), False),
        (7, segment(7, 9), True),
        (6, segment(7), True),
        (None, segment(7, 8), False),
        (None, segment(7, 9), True),
        (7, cleaned(), True),
        (7, cleaned(count=3), False),
        (7, b"", True),
        (7, BROKEN + segment(8), False),
        (7, BROKEN + segment(9, 10), False),
        (7, BROKEN + segment(8, 10), True),
        (7, segment(7) + bytes(90), False),
        (5, build_batch([Record(offset=7, timestamp_ms=1, key=b"k", value=b"v")], compression="gzip"), True),
        (5, build_batch([Record(offset=7, timestamp_ms=1, key=b"k", value=b"v")], magic=1, compression="gzip"), False),
        (5, build_batch([Record(offset=7, timestamp_ms=1, key=b"k", value=b"v")], magic=1), True),
    ],
)
def test_a_segment_shows_cleaning_by_offsets_that_are_missing_inside(
    base_offset: int | None, data: bytes, is_told: bool
) -> None:
    """Behind what cannot be read the next offset is not known (``CL-38``)."""
    assert shows_cleaning(Segment("x", base_offset, data)) is is_told


def test_only_the_first_batches_of_a_segment_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for looked_at, is_told in ((2, False), (3, True)):
        monkeypatch.setattr(completeness, "BATCHES_LOOKED_AT", looked_at)
        assert shows_cleaning(Segment("x", 7, segment(7, 8, 10))) is is_told


RANDOM = ("random-java", "random-scala")
"""Made as if they were cleaned, with no checkpoint that says where."""

WRAPPED = ("kafka-0.11-compacted",)
"""Has cleaned segments of compressed messages of magic 1 only, whose headers cannot show it."""


@pytest.mark.parametrize("name", sorted(set(RECORDINGS) - set(RANDOM)))
def test_real_segments_show_whether_they_were_cleaned(name: str, recording: Callable[[str], Path]) -> None:
    """Each segment of every broker, against that broker's own checkpoint (``CL-49``)."""
    count = 0
    for directory in log_directories(recording(name)):
        with open_logs([str(directory)]) as disk:
            for found in disk.logs:
                ends = [segment.base_offset or 0 for segment in found.segments[1:]]
                for one, end in zip(found.segments, ends, strict=False):
                    was_cleaned = end <= (found.cleaned_until or 0)
                    assert shows_cleaning(one) in {was_cleaned, was_cleaned and name not in WRAPPED}, one.file
                    count += was_cleaned
                assert not len(found.segments[-1].buffer) or not shows_cleaning(found.segments[-1])
    assert count == {"kafka-4.3-cleaned": 8, "kafka-0.11-compacted": 3}.get(name, 0)
