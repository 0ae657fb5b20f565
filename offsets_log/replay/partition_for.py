"""Which partition of ``__consumer_offsets`` a group belongs to (``records:H1``)."""

from __future__ import annotations

import struct

DEFAULT_PARTITIONS = 50
"""``offsets.topic.num.partitions``."""

_INT32_MIN = -(1 << 31)


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, wrapping to signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for (unit,) in struct.iter_unpack(">H", units):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


def positive_hash(group: str) -> int:
    """Without its sign; the one hash that has no absolute value counts as 0."""
    found = java_hash(group)
    return 0 if found == _INT32_MIN else abs(found)


def partition_for(group: str, partitions: int) -> int:
    """The offsets partition of a group."""
    return positive_hash(group) % partitions
