"""What the files beside segments prove of a log whose last segments are gone.

A broker makes a segment's ``.log`` first, so an index behind the last ``.log`` is that of a segment that is not here. A
snapshot of producers is taken where the log ends (``CL-57``), so a log that ends before one once reached it.

References: ``LogSegment.java`` (``open``), ``UnifiedLog.java`` (``roll``, ``close``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from operator import itemgetter

from offsets_log.broker.indexes import TIME_ENTRY
from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.offset_index import OffsetIndex
from offsets_log.errors import InputError

_SNAPSHOT = re.compile(r"([0-9]{20})\.snapshot")
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


def _contents(read: Opener) -> bytes:
    try:
        return bytes(read())
    except InputError:  # it is there, which says enough
        return b"\x00"


def _last_in_index(data: bytes) -> int:
    index = OffsetIndex(lambda at, size: data[at : at + size])
    return max(0, index.entry(index.count - 1)[0]) if index.count else 0


def _last_in_time_index(data: bytes) -> int:
    whole = data[: len(data) // TIME_ENTRY.size * TIME_ENTRY.size].rstrip(b"\x00")
    count = -(-len(whole) // TIME_ENTRY.size)
    return max(0, TIME_ENTRY.unpack_from(data, (count - 1) * TIME_ENTRY.size)[1]) if count else 0


_LAST_OFFSET_IN = {"index": _last_in_index, "timeindex": _last_in_time_index}
