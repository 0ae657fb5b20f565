"""What indexes and producer snapshots prove of a log whose last segments are gone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.disk.left_beside import reached_beside
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import batches_of
from offsets_log.pipeline import iter_events
from tests.conftest import RECORDINGS, log_directories
from tests.disk.logs import name, partition, segment

ZEROS = bytes(64)
INDEX = struct.pack(">ii", 3, 70) + struct.pack(">ii", 8, 200)
TIMES = struct.pack(">qi", 1000, 3) + struct.pack(">qi", 2000, 9)


def file(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020}.{suffix}"


@pytest.mark.parametrize(
    ("beside", "high_watermark", "expected"),
    [
        ({}, None, None),
        ({file(5, "index"): INDEX, file(2, "timeindex"): TIMES, "x": b""}, None, (14, file(5, "index"))),
        ({file(5, "timeindex"): TIMES + ZEROS}, None, (15, file(5, "timeindex"))),
        ({file(5, "index"): INDEX[::-1] + INDEX, file(5, "timeindex"): TIMES[12:] + TIMES[:12]}, None, None),
        ({file(5, "index"): ZEROS, file(5, "timeindex"): b""}, None, None),
        ({file(5, "snapshot"): b"", file(7, "snapshot"): b""}, None, (7, file(7, "snapshot"))),
        ({file(6, "index"): INDEX}, None, (15, file(6, "index"))),
        ({file(6, "index"): INDEX + ZEROS, file(6, "timeindex"): TIMES + ZEROS}, None, (16, file(6, "index"))),
        ({file(6, "index"): INDEX, file(9, "timeindex"): TIMES}, None, (19, file(9, "timeindex"))),
        ({file(6, "index"): INDEX, file(15, "snapshot"): b""}, None, (15, file(6, "index"))),
        ({file(6, "index"): INDEX, file(99, "snapshot"): b""}, None, (99, file(99, "snapshot"))),
        ({file(6, "index"): b""}, None, (7, file(6, "index"))),
        ({file(6, "index"): ZEROS, file(6, "timeindex"): ZEROS}, None, (7, file(6, "index"))),
        ({file(6, "index"): ZEROS, file(6, "timeindex"): ZEROS}, 6, (6, file(6, "index"))),
        ({file(6, "index"): b"", file(6, "timeindex"): b""}, None, (6, file(6, "index"))),
        ({file(6, "index"): struct.pack(">ii", -9, -1)}, None, (7, file(6, "index"))),
        ({file(6, "index.swap"): INDEX, file(6, "txnindex"): ZEROS}, None, None),
    ],
)
def test_how_far_a_log_reached(
    beside: dict[str, bytes], high_watermark: int | None, expected: tuple[int, str] | None
) -> None:
    """Of a log whose last segment begins at 5."""
    readers = {name: lambda data=data: data for name, data in beside.items()}
    found = reached_beside([name(0), name(5)], readers, high_watermark)
    assert (found and (found[0], found[1].partition(",")[0])) == expected


def test_an_index_that_cannot_be_read_is_of_a_segment_with_records_unless_something_else_tells() -> None:
    def refuse() -> bytes:
        raise InputError("it cannot be read")

    beside = {file(6, "index"): refuse, file(6, "timeindex"): refuse}
    for high_watermark, expected in ((None, 7), (6, 6)):
        found = reached_beside([name(0)], beside, high_watermark)
        assert found is not None
        assert found[0] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({name(0): segment(0, 1), file(2, "snapshot"): b""}, None),
        ({name(0): segment(0, 1), file(0, "index"): INDEX}, (2, 8)),
        ({name(0): b"", file(0, "timeindex"): TIMES}, (0, 9)),
        ({name(0): segment(0, 1), file(4, "snapshot"): b""}, (2, 3)),
        ({name(0): segment(0, 1), file(2, "index"): INDEX}, (2, 10)),
        ({file(0, "index"): INDEX, file(4, "snapshot"): b""}, (0, 8)),
        ({file(0, "index"): b"", file(0, "timeindex"): b""}, None),
        ({name(0, ".swap"): segment(0, 1), file(0, "index"): INDEX}, None),
        ({name(0, ".cleaned"): segment(0, 1), file(4, "snapshot"): b""}, (0, 3)),
    ],
)
def test_what_is_missing_by_it(files: dict[str, bytes], expected: tuple[int, int] | None, tmp_path: Path) -> None:
    """``CL-57``: a snapshot where the log ends is normal, one beyond it is of records that were there."""
    partition(tmp_path, 0, {name(0): segment(0)})
    partition(tmp_path, 1, files)
    with open_logs([str(tmp_path)]) as disk:
        events = (event for log in disk.logs for event in iter_events(log) if isinstance(event, Missing))
        found = [(one.offsets_partition, one.first_offset, one.last_offset) for one in [*disk.absent, *events]]
    assert found == ([] if expected is None else [(1, *expected)])


@pytest.mark.parametrize("recorded", RECORDINGS)
def test_no_recording_lacks_log_by_what_lies_beside_it(recorded: str, recording: Callable[[str], Path]) -> None:
    """Of brokers that ran, were killed or stopped: their own files never say that log is missing."""
    for directory in log_directories(recording(recorded)):
        with open_logs([str(directory)]) as disk:
            assert not [one for one in disk.absent if one.is_lost]
            for log in disk.logs:
                end = max([log.segments[-1].base_offset or 0, *(batch.next_offset for batch in batches_of(log))])
                assert (log.checkpoints.reached or 0) <= end, log.checkpoints.reached_by
