"""What the files beside segments prove of a log whose last segments are gone, or shorter than they were.

A broker makes a segment's ``.log`` first, so an index behind the last ``.log`` is that of a segment that is not here.
The last segment once held what its own indexes name. A snapshot of producers is taken where the log ends (``CL-57``),
so a log that ends before one once reached it.

References: ``LogSegment.java`` (``open``), ``UnifiedLog.java`` (``roll``, ``close``).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Collection, Mapping
from functools import partial
from itertools import pairwise
from operator import itemgetter

from offsets_log.broker.indexes import TIME_ENTRY
from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.offset_index import ENTRY as OFFSET_ENTRY
from offsets_log.disk.stored import Stored
from offsets_log.errors import InputError

_SNAPSHOT = re.compile(r"([0-9]{20})\.snapshot")
LOOKED_AT = 64
"""So many entries of an index have to rise for the last one to be believed."""
MOST_FETCHED = 1 << 20
"""A larger index in a store is not fetched to see where its segment ended."""
_INDEX = re.compile(r"([0-9]{20})\.(index|timeindex)")


def reached_beside(
    segments: Collection[str], beside: Mapping[str, Opener], high_watermark: int | None
) -> tuple[int, str] | None:
    """Return the offset that a log reached at least, and which files say so; None without such a file.

    Args:
        segments: names of files, those of the segments among them.
        beside: name → how to read a file beside them.
        high_watermark: as a broker noted it.
    """
    last_segment = max((name[:20] for name in segments if name[:20].isdecimal()), default="")
    claims = [(int(match[1]), match[0]) for match in map(_SNAPSHOT.fullmatch, beside) if match]
    lone = [match for match in map(_INDEX.fullmatch, beside) if match and match[1] > last_segment]
    if lone:
        base = max(match[1] for match in lone)
        indexes = {match[2]: match[0] for match in lone if match[1] == base}
        end = _end_by(int(base), {kind: beside[name] for kind, name in indexes.items()}, high_watermark)
        claims.insert(0, (end, f"{min(indexes.values())}, whose .log is not here,"))
    for kind, last_offset_in in _LAST_OFFSET_IN.items():
        name = f"{last_segment}.{kind}"
        read = beside.get(name) if f"{last_segment}.log" in segments else None  # another file's, beside a .swap
        if read is None or (isinstance(read, Stored) and read.size_bytes > MOST_FETCHED):
            continue
        if last := last_offset_in(_contents(read)):
            claims.append((int(last_segment) + last + 1, name))
    return max(claims, key=itemgetter(0), default=None)


def _end_by(base_offset: int, indexes: Mapping[str, Opener], high_watermark: int | None) -> int:
    """Return where a segment ended at least, by its indexes alone.

    One without entries held a record, as segments are made for one, unless both were closed in order and are empty, or
    the broker noted that it had not come so far.
    """
    found = {kind: _contents(read) for kind, read in indexes.items()}
    last = max(_LAST_OFFSET_IN[kind](data) for kind, data in found.items())
    is_known_empty = len(found) == len(_LAST_OFFSET_IN) and not any(found.values())
    is_noted_empty = high_watermark is not None and high_watermark <= base_offset
    return base_offset + (last + 1 if last > 0 or not (is_known_empty or is_noted_empty) else 0)


def _contents(read: Opener) -> memoryview:
    try:
        return memoryview(read())
    except InputError:  # it is there, which says enough
        return memoryview(b"\x00")


def _last_in(data: memoryview, entry: struct.Struct, offset_at: int) -> int:
    """Return the last relative offset of an index; 0 of an empty one, and of one whose last entries do not rise."""
    size = entry.size
    slots = range(len(data) // size)
    end = bisect_left(slots, True, key=lambda slot: not any(data[slot * size : (slot + 1) * size]))  # room made before
    entries = [*entry.iter_unpack(data[max(0, end - LOOKED_AT) * size : end * size])]
    is_rising = all(a <= b for one, two in pairwise(entries) for a, b in zip(one, two, strict=True))
    return max(0, entries[-1][offset_at]) if entries and is_rising else 0


_LAST_OFFSET_IN = {
    "index": partial(_last_in, entry=OFFSET_ENTRY, offset_at=0),
    "timeindex": partial(_last_in, entry=TIME_ENTRY, offset_at=1),
}
