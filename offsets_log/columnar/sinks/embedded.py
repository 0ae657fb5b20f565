"""Find what stands in a line for embedded bytes, in a table of those that are known (`known`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar.jit.compiled import U, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs
from offsets_log.columnar.scan.interner import same_bytes
from offsets_log.columnar.wire.primitives import be16, hash_bytes

KNOWN, SEED, PREFIX, WHICH, EMBEDDED_AT, EMBEDDED_SIZE, PROGRESS_SIZE = range(7)
"""Numbers of the progress: how many are known, the seed of their hashes; with how many bytes of ``memory`` a raw value
must begin behind its version if its fields are expanded; and which bytes are not known."""

# Columns of ``known``: embedded bytes in ``memory``, what they are, and what stands in a line for them.
KNOWN_AT, KNOWN_SIZE, KNOWN_WHICH, TEXT_AT, TEXT_SIZE, KNOWN_COLUMNS = range(6)

FIELDS = 4
"""What embedded bytes are: −1 a protocol type, −2 − n a protocol of the type in row n, and from FIELDS on a field of a
member, FIELDS * (1 + n) + its number, where row n is the group's protocol."""


class Embedded(NamedTuple):
    """The embedded bytes that are known; see `known.Known`."""

    slots: Longs
    known: LongRows
    memory: Bytes


@part
def find_known(progress: Any, embedded: Embedded, data: Any, start: Any, size: Any, which: Any) -> Any:
    """Return the number of embedded bytes, −1 if they are not known, and their slot."""
    slots, known = embedded.slots, embedded.known
    mask = np.int64(len(slots) - 1)
    slot = hash_bytes(data, start, size, progress[SEED] + which) & mask
    while slots[U(slot)] != 0:
        number = slots[U(slot)] - 1
        is_like = known[number, KNOWN_SIZE] == size and known[number, KNOWN_WHICH] == which
        if is_like and same_bytes(embedded.memory, known[number, KNOWN_AT], data, start, size):
            return number, slot
        slot = slot + 1 & mask
    return np.int64(-1), slot


@part
def known_field(progress: Any, data: Any, begin: Any, start: Any, size: Any, field: Any, embedded: Embedded) -> Any:
    """Return the number of a member's field, known for the protocol type and protocol of its group; else −1.

    Args:
        begin: where the group's value begins behind its version: type, generation and protocol were read before.
    """
    at, number, which = begin, np.int64(-1), np.int64(-1)
    for step in range(3):
        if step == 2:
            at, length, which = start, size, FIELDS * (1 + number) + field
        else:
            length = max(be16(data, at), np.int64(0))
            at, which = at + 2, -2 - number
        number, _ = find_known(progress, embedded, data, at, length, which)
        if number < 0:
            progress[WHICH], progress[EMBEDDED_AT], progress[EMBEDDED_SIZE] = which, at, length
            return number
        at += length + 4
    return number


@kernel
def remember(progress: Longs, embedded: Embedded) -> None:
    """Enter row ``progress[KNOWN]`` of ``known`` into the table; there is room."""
    known = embedded.known
    number = progress[KNOWN]
    at, size, which = known[number, KNOWN_AT], known[number, KNOWN_SIZE], known[number, KNOWN_WHICH]
    _, slot = find_known(progress, embedded, embedded.memory, at, size, which)
    embedded.slots[slot] = number + 1
    progress[KNOWN] = number + 1
