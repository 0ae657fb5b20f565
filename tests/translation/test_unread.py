"""What could not be read of a target's log, and which answers that moves."""

from __future__ import annotations

from dataclasses import replace

import google_crc32c

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.translation.answers import AT_LEAST, BY_TIME, EXACT, Answer, Later
from offsets_log.translation.unread import OFFSETS_END, Stretch, move_back, uncounted, unread
from tests.translation.logs import Said

SPANS = [(0, 99)]


def piece(*offsets: int) -> bytes:
    return build_batch([Said(1000 + offset, b"k", b"v").at(offset) for offset in offsets])


def damaged(*offsets: int) -> bytes:
    data = bytearray(piece(*offsets))
    data[-1] ^= 1
    return bytes(data)


def log(*segments: tuple[int, bytes]) -> PartitionLog:
    return PartitionLog(0, tuple(Segment(f"{base:020}.log", base, data) for base, data in segments))


def test_damage_in_the_middle_and_at_the_end() -> None:
    damage = log((10, damaged(10, 11) + piece(12, 13)), (14, piece(14) + damaged(15)), (16, damaged(16)))
    assert unread(damage, SPANS) == [
        Stretch(10, 12, is_damaged=True),
        Stretch(15, 16, is_damaged=True),
        Stretch(16, OFFSETS_END, is_damaged=True),
    ]


def test_what_lacks_between_segments_unless_the_cleaner_took_it() -> None:
    plain = (0, piece(0, 1)), (5, piece(5, 6)), (7, b""), (9, piece(9))
    assert unread(log(*plain), SPANS) == [Stretch(2, 5, is_damaged=False), Stretch(7, 9, is_damaged=False)]
    assert unread(log(*plain, (10, piece(10, 12))), SPANS) == []
    assert unread(log((0, piece(0, 2)), *((base + 3, piece(base + 3)) for base in (0, 5))), [(3, 9)]) == []


def test_records_of_a_batch_that_cannot_be_read() -> None:
    data = bytearray(piece(0, 1, 2))
    data[-3] ^= 0x70  # in the last record: its value's length
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    (stretch,) = unread(log((0, bytes(data) + piece(3))), SPANS)
    assert stretch.end == 3
    assert stretch.is_damaged


def test_answers_move_unless_a_read_record_lies_between() -> None:
    target = log((0, piece(0, 1) + damaged(2, 3) + piece(4, 5)))
    told = {
        1: Answer(1, EXACT, 0, before=0),
        2: Answer(4, EXACT, 0, before=1),
        3: Answer(4, BY_TIME, 7, before=1),
        5: Answer(5, EXACT, 0, before=4),
        6: Answer(6, EXACT, 0, before=5, is_record=False),
    }
    moved, stretches = move_back(told, target, 0)
    assert moved == told | {2: Answer(2, AT_LEAST, None), 3: Answer(2, BY_TIME, None)}
    assert stretches == [Stretch(2, 4, is_damaged=True)]


def test_nothing_moves_before_the_logs_start() -> None:
    target = log((0, damaged(0, 1, 2, 3) + piece(4, 5)))
    one = Answer(4, EXACT, 0)
    assert move_back({0: one}, target, 2)[0] == {0: Answer(2, AT_LEAST, None)}
    assert move_back({0: one}, target, 4)[0] == {0: one}
    assert move_back({0: replace(one, before=3)}, target, 0)[0] == {0: one}


def test_nothing_is_counted_beside_what_could_not_be_read() -> None:
    """Neither for those who may miss records."""
    told = uncounted({1: Answer(10, AT_LEAST, 5, later=Later(14, 2, 4)), 2: Answer(20, EXACT, 0)})
    assert told == {1: Answer(10, AT_LEAST, None), 2: Answer(20, EXACT, 0)}
    one = told[1]
    assert isinstance(one, Answer)
    assert one.later == Later(14, None, 4)
