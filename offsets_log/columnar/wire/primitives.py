"""Read wire types in kernels: integers, varints, and the run of a column program over a record's bytes.

Kernels never trust a length: it is compared with the enclosing end before it is used. For data that do not fit, a
negative position is returned; then the construct codec reads the record and explains the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.instructions import load64
from offsets_log.columnar.wire import programs as p

MALFORMED = -1
"""Returned instead of a position."""

MULTIPLIER = U(0x9E3779B97F4A7C15)
OTHER_MULTIPLIER = U(0xC2B2AE3D27D4EB4F)


@inlined
def be16(data: Any, at: Any) -> Any:
    """Return a signed 16-bit integer, most significant byte first; the caller has checked the end."""
    value = np.int64(data[U(at)]) << np.int64(8) | np.int64(data[U(at) + U(1)])
    return value - ((value & np.int64(0x8000)) << np.int64(1))


@inlined
def be32(data: Any, at: Any) -> Any:
    """Return a signed 32-bit integer, most significant byte first; the caller has checked the end."""
    begin = U(at)
    value = np.int64(
        U(data[begin]) << U(24) | U(data[begin + U(1)]) << U(16) | U(data[begin + U(2)]) << U(8) | U(data[begin + U(3)])
    )
    return value - ((value & np.int64(0x80000000)) << np.int64(1))


@inlined
def be64(data: Any, at: Any) -> Any:
    """Return a signed 64-bit integer, most significant byte first; the caller has checked the end."""
    begin = U(at)
    return np.int64(
        U(data[begin]) << U(56)
        | U(data[begin + U(1)]) << U(48)
        | U(data[begin + U(2)]) << U(40)
        | U(data[begin + U(3)]) << U(32)
        | U(data[begin + U(4)]) << U(24)
        | U(data[begin + U(5)]) << U(16)
        | U(data[begin + U(6)]) << U(8)
        | U(data[begin + U(7)])
    )


@part
def _long_uvarint(data: Any, at: Any, end: Any, max_bytes: Any) -> Any:
    value = U(0)
    shift = U(0)
    for i in range(max_bytes):
        if at + i >= end:
            return U(0), np.int64(MALFORMED)
        byte = U(data[U(at + i)])
        if shift < U(64):
            value |= (byte & U(0x7F)) << shift
        if byte < U(0x80):
            return value, at + i + np.int64(1)
        shift += U(7)
    return U(0), np.int64(MALFORMED)


@inlined
def uvarint(data: Any, at: Any, end: Any) -> Any:
    """Return an unsigned varint of 32 bits as a signed 64-bit integer, and where it ends or MALFORMED."""
    if at + 1 < end:  # one byte or two without a branch, for which it is cannot be foretold
        first, second = np.int64(data[U(at)]), np.int64(data[U(at) + U(1)])
        more = first >> 7
        if second & more << 7 == 0:
            return first & 0x7F | second * more << 7, at + 1 + more
    value, after = _long_uvarint(data, at, end, np.int64(5))
    return np.int64(value & U(0xFFFFFFFF)), after


@inlined
def varint(data: Any, at: Any, end: Any) -> Any:
    """Return a zigzag varint of 32 bits, and where it ends or MALFORMED."""
    value, after = uvarint(data, at, end)
    return (value >> np.int64(1)) ^ -(value & np.int64(1)), after


@inlined
def varlong(data: Any, at: Any, end: Any) -> Any:
    """Return a zigzag varint of 64 bits, and where it ends or MALFORMED."""
    if at + 3 < end:
        first, second, third = np.int64(data[U(at)]), np.int64(data[U(at) + U(1)]), np.int64(data[U(at) + U(2)])
        if first < 0x80:
            return first >> 1 ^ -(first & 1), at + 1
        if third < 0x80:
            more = second & 0x7F | (third << 7 if second >= 0x80 else np.int64(0))
            return (first & 0x7F | more << 7) >> 1 ^ -(first & 1), at + (3 if second >= 0x80 else 2)
    value, after = _long_uvarint(data, at, end, np.int64(10))
    return np.int64(value >> U(1)) ^ -np.int64(value & U(1)), after


@inlined
def hash_bytes(data: Any, start: Any, size: Any, seed: Any) -> Any:
    """Return a 64-bit hash of bytes; the seed makes it unpredictable."""
    value = U(seed) ^ U(size)
    other = MULTIPLIER
    at = start
    end = start + size
    while at + 16 <= end:  # two products at a time, for neither waits for the other
        value = (value ^ load64(data, at)) * MULTIPLIER
        other = (other ^ load64(data, at + 8)) * OTHER_MULTIPLIER
        value ^= value >> U(29)
        other ^= other >> U(31)
        at += 16
    tail = U(0)
    if size >= 8:  # the last 16 bytes, some of them once more: no loop whose length cannot be foretold
        value = (value ^ load64(data, max(start, end - 16))) * MULTIPLIER
        value ^= value >> U(29)
        tail = load64(data, end - 8) * OTHER_MULTIPLIER
        tail ^= tail >> U(32)
    else:
        for i in range(start, end):
            tail = tail << U(8) | U(data[U(i)])
    value = (value ^ other ^ tail) * MULTIPLIER
    return np.int64(value ^ value >> U(32))


@part
def walk(scan_state: a.ScanState, begin: Any, data: Any, start: Any, end: Any) -> Any:
    """Run a program of the scan state over ``data[start:end]``.

    The positions of the fields asked for are noted in the scan state; NOTHING for missing ones.

    Returns:
        Where the message ends, or MALFORMED.
    """
    at = start
    pc = begin
    code, notes = scan_state.code, scan_state.notes
    depth = np.int64(0)
    scan_state.distinct_count = 0
    while True:
        opcode = code[pc]
        if opcode == p.SKIP:
            at += code[pc + 1]
            if at > end:
                return np.int64(MALFORMED)
            pc += 2
        elif opcode == p.NOTE:
            notes[code[pc + 1]] = at
            pc += 2
        elif opcode == p.STRING:
            at = _after_string(data, at, end, code[pc + 1])
            if at < 0:
                return at
            pc += 2
        elif opcode == p.END:
            return at
        else:
            pc, at, end, depth = _walk_rare(scan_state, pc, data, at, end, depth)
            if at < 0:
                return at


@inlined
def _after_string(data: Any, at: Any, end: Any, nullable: Any) -> Any:
    """Return where a string after an int16 ends."""
    if at + 2 > end:
        return np.int64(MALFORMED)
    return _after_sized(be16(data, at), at + 2, end, nullable)


@inlined
def _after_sized(size: Any, at: Any, end: Any, nullable: Any) -> Any:
    """Return where a string or bytes of that size end; −1 is null."""
    if size < 0:
        return at if size == -1 and nullable else np.int64(MALFORMED)
    return at + size if size <= end - at else np.int64(MALFORMED)


@part
def _walk_rare(scan_state: a.ScanState, pc: Any, data: Any, at: Any, end: Any, depth: Any) -> Any:
    code = scan_state.code
    opcode = code[pc]
    if opcode == p.TAGS or opcode == p.TAG_END:
        return _walk_tags(scan_state, pc, data, at, end, depth)
    if opcode == p.CLEAR:
        scan_state.notes[code[pc + 1]] = a.NOTHING
        return pc + 2, at, end, depth
    if opcode == p.NEXT:
        frame = scan_state.stack[depth - 1]
        frame[1] -= 1
        if frame[1] == 0:
            return pc + 1, at, end, depth - 1
        return frame[0], at, end, depth
    if opcode == p.PRESENT:
        is_there, at = _presence(data, at, end, code[pc + 1])
        return pc + (3 if is_there else 3 + code[pc + 2]), at, end, depth
    if opcode == p.BYTES or opcode == p.COMPACT:
        return pc + 2, _after_bytes(scan_state, pc, data, at, end), end, depth
    pc, at, depth = _walk_list(scan_state, pc, data, at, end, depth)
    return pc, at, end, depth


@inlined
def _after_bytes(scan_state: a.ScanState, pc: Any, data: Any, at: Any, end: Any) -> Any:
    """Return where a string or bytes of BYTES and COMPACT end."""
    flags = scan_state.code[pc + 1]
    size, at = _length(data, at, end, scan_state.code[pc] == p.BYTES, flags)
    if at < 0:
        return at
    begin, at = at, _after_sized(size, at, end, flags & p.NULLABLE)
    if flags & p.IS_DISTINCT and at >= 0 and size >= 0 and not is_new(scan_state, data, begin, size):
        return np.int64(MALFORMED)
    if flags & p.IS_SUBSCRIPTION and at >= 0 and not takes_subscription(data, begin, at):
        return np.int64(MALFORMED)
    return at


@part
def takes_subscription(data: Any, at: Any, end: Any) -> Any:
    """Return whether a coordinator gets over bytes in which it looks for topics (``B-18``).

    As `consumer_protocol.refusal_of_subscription` says.
    """
    if at + 6 > end:
        return True
    count, at = be32(data, at + 2), at + 6
    if count < 0 or count > end - at:
        return False
    for _ in range(count):
        if at + 2 > end:
            return True
        at = _after_sized(be16(data, at), at + 2, end, np.int64(0))
        if at < 0:
            return False
    return at + 4 > end or be32(data, at) <= end - at - 4


@inlined
def _walk_list(scan_state: a.ScanState, pc: Any, data: Any, at: Any, end: Any, depth: Any) -> Any:
    """Enter an array, or skip an array of numbers."""
    code = scan_state.code
    opcode, flags = code[pc], code[pc + 1]
    is_long = opcode == p.ARRAY or (opcode == p.NUMBERS and flags & p.IS_LONG != 0)
    size, at = _length(data, at, end, is_long, np.int64(0))
    nullable = flags & p.NULLABLE
    if at < 0 or size > end - at or size < -1 or (size == -1 and not nullable) or depth >= a.MOST_FRAMES:
        return pc, np.int64(MALFORMED), depth
    if opcode == p.NUMBERS:
        at += max(size, 0) * code[pc + 2]
        return pc + 3, at if at <= end else np.int64(MALFORMED), depth
    if size <= 0:
        return pc + 3 + code[pc + 2], at, depth
    frame = scan_state.stack[depth]
    frame[0] = pc + 3
    frame[1] = size
    return pc + 3, at, depth + 1


@inlined
def _presence(data: Any, at: Any, end: Any, flags: Any) -> Any:
    """Return whether a nullable struct is present, and where it begins."""
    if flags & p.IS_TAGGED:
        marker, at = uvarint(data, at, end)
        return marker != 0, at
    if at + 1 > end:
        return False, np.int64(MALFORMED)
    return data[U(at)] < 0x80, at + 1


@inlined
def _length(data: Any, at: Any, end: Any, is_long: Any, flags: Any) -> Any:
    """Return a length or count (int32, int16 or compact), and where it ends."""
    if is_long or flags & p.IS_SHORT:
        size = np.int64(4) if is_long else np.int64(2)
        if at + size > end:
            return np.int64(0), np.int64(MALFORMED)
        return be32(data, at) if is_long else be16(data, at), at + size
    size, at = uvarint(data, at, end)
    return size - 1, at


@inlined
def is_new(scan_state: a.ScanState, data: Any, start: Any, size: Any) -> Any:
    """Return whether no earlier text in the record was the same; False where this is not certain."""
    found = hash_bytes(data, start, size, scan_state.seed)
    count, distinct = scan_state.distinct_count, scan_state.distinct
    if count >= a.MAX_DISTINCT:
        return False
    for i in range(count):
        if distinct[U(i)] == found:
            return False
    distinct[U(count)] = found
    scan_state.distinct_count = count + 1
    return True


@part
def _walk_tags(scan_state: a.ScanState, pc: Any, data: Any, at: Any, end: Any, depth: Any) -> Any:
    """Go on through the tagged fields of a struct to the data of the next known one, which must be read to its end.

    Unknown fields are skipped. While a known field is read, the section's frame holds how many fields follow, and its
    end.
    """
    code, stack = scan_state.code, scan_state.stack
    if code[pc] == p.TAGS:
        count, at = uvarint(data, at, end)
    elif at != end:
        return pc, np.int64(MALFORMED), end, depth
    else:
        depth -= 1
        pc, count, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
    while count > 0 and at >= 0:
        count -= 1
        tag, at = uvarint(data, at, end)
        if at < 0:
            return pc, at, end, depth
        size, at = uvarint(data, at, end)
        if at < 0 or size > end - at:
            return pc, np.int64(MALFORMED), end, depth
        for entry in range(pc + 3, pc + 3 + 3 * code[pc + 2], 3):
            if code[entry] == tag:
                if depth >= a.MOST_FRAMES:
                    return pc, np.int64(MALFORMED), end, depth
                if code[entry + 2] >= 0:
                    scan_state.notes[code[entry + 2]] = at
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = pc, count, end
                return pc + code[entry + 1], at, at + size, depth + 1
        at += size
    return pc + code[pc + 1], at, end, depth
