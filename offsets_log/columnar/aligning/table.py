"""What records of the source say, as prints, and at which offsets it stands there: a hash table.

A print is one number for a record: of its time and its hash, or of one of them alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.jit.compiled import U, inlined, kernel
from offsets_log.columnar.jit.kinds import LongRows, Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.columnar.wire.primitives import MULTIPLIER, OTHER_MULTIPLIER

Bools = npt.NDArray[np.bool_]

# What prints are made of.
WHOLE, WITHOUT_TIME, TIME_ALONE = range(3)


class Slot(Record):
    """A print, the offsets between which it stands, and whether it was looked up."""

    of_print: Long
    lowest: Long
    highest: Long
    is_found: Long


NO_PRINT = 0
"""In an empty slot."""

NOWHERE_LOWEST = int(np.iinfo(np.int64).max)
NOWHERE_HIGHEST = -1
"""The offsets of a print that is not in the source."""


@inlined
def _mixed(value: Any) -> Any:
    value = (value ^ value >> U(30)) * MULTIPLIER
    value = (value ^ value >> U(27)) * OTHER_MULTIPLIER
    return value ^ value >> U(31)


@kernel
def prints(rows: Table[r.Noted], made_of: Number, found: Longs) -> None:
    """Make the prints of data records; `found` takes one a row."""
    for n in range(len(rows)):
        i = U(n)
        value = U(0)
        if made_of != WITHOUT_TIME:
            value = _mixed(U(rows[i].time) + U(0x9E3779B97F4A7C15))
        if made_of != TIME_ALONE:
            value = _mixed(value ^ U(rows[i].hash))
        value = _mixed(value)
        found[i] = np.int64(value) if value != U(NO_PRINT) else np.int64(1)


def slots_for(count: int) -> Table[Slot]:
    """Return an empty table for so many prints."""
    return Table(Slot, 1 << max(10, (4 * count // 3).bit_length()))


@inlined
def _slot(slots: Any, value: Any) -> Any:
    """Return the slot of a print, or the empty one where it belongs."""
    mask = np.int64(len(slots) - 1)
    at = value & mask
    while slots[U(at)].of_print != NO_PRINT and slots[U(at)].of_print != value:
        at = at + 1 & mask
    return U(at)


@kernel
def put(slots: Table[Slot], found: Longs, offsets: Longs) -> None:
    """Note at which offsets prints stand; the caller has made sure of room."""
    for n in range(len(found)):
        slot, offset = slots[_slot(slots, found[U(n)])], offsets[U(n)]
        if slot.of_print == NO_PRINT:
            slot.of_print, slot.lowest, slot.highest = found[U(n)], offset, offset
        else:
            slot.lowest = min(slot.lowest, offset)
            slot.highest = max(slot.highest, offset)


@kernel
def look_up(slots: Table[Slot], found: Longs, places: LongRows) -> int:
    """Widen the places of records, int64[n, 2] of lowest and highest offset, by what the table has; return how many."""
    count = 0
    for n in range(len(found)):
        i = U(n)
        slot = slots[_slot(slots, found[i])]
        if slot.of_print != NO_PRINT:
            places[i, 0] = min(places[i, 0], slot.lowest)
            places[i, 1] = max(places[i, 1], slot.highest)
            slot.is_found = 1
            count += 1
    return count


def share_found(slots: Table[Slot]) -> tuple[int, int]:
    """Return how many prints were looked up, and how many there are between the first and the last of these."""
    rows = slots.rows
    found = rows[rows["is_found"] != 0]
    if not len(found):
        return 0, 0
    first, last = found["lowest"].min(), found["highest"].max()
    between = (rows["of_print"] != NO_PRINT) & (rows["lowest"] >= first) & (rows["highest"] <= last)
    return len(found), int(between.sum())


def not_found(slots: Table[Slot]) -> tuple[a.Int64s, Bools]:
    """Return the prints that stand once and were not looked up, and which of them stand before all that were."""
    rows = slots.rows
    is_found = rows["is_found"] != 0
    first = rows["lowest"][is_found].min() if is_found.any() else NOWHERE_LOWEST
    left = rows[(rows["of_print"] != NO_PRINT) & (rows["lowest"] == rows["highest"]) & ~is_found]
    return left["of_print"], left["lowest"] < first


def spread(slots: Table[Slot]) -> tuple[int, int]:
    """Return how many prints a table has, and how far apart the offsets of one lie at most."""
    rows = slots.rows
    return int((rows["of_print"] != NO_PRINT).sum()), int((rows["highest"] - rows["lowest"]).max())


def nowhere(count: int) -> a.Int64s:
    """Return the places of so many records that were not looked up."""
    places = np.empty((count, 2), np.int64)
    places[:, 0], places[:, 1] = NOWHERE_LOWEST, NOWHERE_HIGHEST
    return places
