"""Both engines on a hostile segment: what ``python -m tests.fuzz --what engines`` asks of each input."""

from __future__ import annotations

import zlib
from functools import cache

from offsets_log.columnar.events.chunk import Room
from offsets_log.columnar.sinks.lines import Press
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.replay.profile import PROFILES
from tests.columnar.engines import columnar_answer, columnar_rows, construct_answer, construct_rows
from tests.columnar.test_lines import ALL_FORMATS, lines_in_bulk, lines_one_by_one, press_of
from tests.fuzz.mutation import FILE

SMALL = Room(rows=512, least_entries=64)
"""Quicker made, and outgrown sooner."""


def check_engines(data: bytes) -> tuple[int, int]:
    """Replay under one of the profiles, which the bytes choose, and decode, by both; (records, what was seen)."""
    log = _log(data)
    profile = [*PROFILES.values()][zlib.crc32(data) % len(PROFILES)]
    assert columnar_answer(log, profile) == construct_answer(log, profile), profile.name
    rows, seen = construct_rows(log)
    assert columnar_rows(log, room=SMALL) == (rows, seen)
    return len(rows), len(seen)


def check_lines(data: bytes) -> tuple[int, int]:
    """Print in every format, by both; (lines, 0)."""
    log = _log(data)
    lines = 0
    for name in ALL_FORMATS:
        expected = lines_one_by_one(log, _press(name))
        assert lines_in_bulk(log, _press(name)) == expected, name
        lines += expected.count(b"\n")
    return lines, 0


@cache
def _press(name: str) -> Press:
    return press_of(name, room=SMALL)


def _log(data: bytes) -> PartitionLog:
    return PartitionLog(0, (Segment(FILE, 0, data),))
