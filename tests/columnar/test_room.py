"""Whether there is room in the tables of a scan: all that one new key may take, and nothing that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import has_room

ROWS, GROUPS, ARENA_USED, KEY_BYTES = 7, 3, 100, 20
ROOM = {
    "slots": 2 * (ROWS + 2),
    "rows": ROWS + 2,
    "more": ROWS + 2,
    "group_slots": 2 * (GROUPS + 1),
    "groups": GROUPS + 1,
    "arena": ARENA_USED + 3 * (KEY_BYTES + a.CACHE_LINE + a.SIZE_BYTES),
}
"""Just enough: a key and its canonical form, in tables of open addressing that are half full at most."""


def is_enough(room: dict[str, int]) -> bool:
    scan_state = a.ScanState()
    scan_state.row_count, scan_state.group_count, scan_state.arena_used = ROWS, GROUPS, ARENA_USED
    scan_state.more_room, scan_state.group_slots_room = room["more"], room["group_slots"]
    arrays = a.Arrays(
        scan_state,
        slots=np.zeros(room["slots"], np.int64),
        rows=Table(a.Row, room["rows"]),
        groups=Table(a.Group, room["groups"]),
        arena=np.zeros(room["arena"], np.uint8),
        overflow=np.zeros(0, np.int64),
    )
    return bool(has_room(arrays, KEY_BYTES))


def test_just_enough_is_enough() -> None:
    assert is_enough(ROOM)


@pytest.mark.parametrize("what", ROOM)
def test_less_of_anything_is_not(what: str) -> None:
    assert not is_enough(ROOM | {what: ROOM[what] - 1})
