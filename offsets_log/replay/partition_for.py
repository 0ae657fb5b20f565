"""Compute the partition of ``__consumer_offsets`` that a group belongs to (``records:H1``)."""

from __future__ import annotations

import struct
from functools import lru_cache

DEFAULT_PARTITIONS = 50
"""Default of ``offsets.topic.num.partitions``."""

HASHES_REMEMBERED = 1 << 12
_INT32_MIN = -(1 << 31)


@lru_cache(maxsize=HASHES_REMEMBERED)
def java_hash(text: str) -> int:
    """Return ``String.hashCode`` of a text: over UTF-16 code units, wrapped to signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for (unit,) in struct.iter_unpack(">H", units):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


def positive_hash(group: str) -> int:
    """Return the absolute value of a group's hash; the one hash that has none counts as 0."""
    found = java_hash(group)
    return 0 if found == _INT32_MIN else abs(found)


def partition_for(group: str, partitions: int) -> int:
    """Return the offsets partition of a group."""
    return positive_hash(group) % partitions
