"""Write keys and values of records as JSON from their bytes, by a program (`json_programs`).

A program is rows of `STEP_COLUMNS` numbers. A step writes its literal and then what it reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, LongRows
from offsets_log.columnar.scan.interner import is_utf8, same_bytes
from offsets_log.columnar.sinks.embedded import PREFIX, PROGRESS_SIZE, TEXT_AT, TEXT_SIZE, Embedded, known_field
from offsets_log.columnar.sinks.writers import BASE64, URL_SAFE, Output, base64, copy, escaped, write_number
from offsets_log.columnar.wire.primitives import be16, be32, be64, uvarint

# Columns of a program. ``OTHER`` is a second literal, ``TARGET`` the step behind all of an array, a struct, a tagged
# field or a section of these.
STEP, ARGUMENT, LITERAL_AT, LITERAL_SIZE, OTHER_AT, OTHER_SIZE, TARGET, STEP_COLUMNS = range(8)

# Steps, and what ARGUMENT is. Those up to EMBEDDED read a value or nothing, the others say where to go on.
LITERAL = 0
INTEGER = 1  # bytes, and IS_UNSIGNED
STRING = 2  # flags; OTHER are its quotes
BYTES = 3  # the same
UUID = 4  # OTHER are its quotes
EMBEDDED = 5  # field of a member, known by its bytes; OTHER are quotes of base64 where it is not to be expanded
ARRAY = 6  # flags
NEXT = 7  # the end of an element
STRUCT = 8  # flags; it may be null
TAGS = 9
TAG = 10  # its number; up to TARGET are the steps of its data
TAG_END = 11  # OTHER is the text of its default, which does not stand there
END = 12

IS_UNSIGNED = 16
NULLABLE, IS_COMPACT, IS_LONG, IS_TAGGED, IS_BEYOND = 1, 2, 4, 8, 16
"""Flags of a field.

They say whether it may be null; whether its length is compact; whether a length that is not compact is an int32 instead
of an int16; whether the presence of a struct is written as in tagged fields; and whether it is left to the slow path
where it is there.
"""

UUID_SIZE = 16
SLACK = 16
"""Room in bytes that is required after the literal of a step."""

# A frame of what is entered: how much is left, the step to go back to, and of tagged fields the end of what is around
# and where their text begins, before and behind their name. Frames follow in the progress behind its first numbers.
LEFT, BACK, AROUND, BEGIN, BEHIND_NAME = range(PROGRESS_SIZE, PROGRESS_SIZE + 5)
FRAME_SIZE, MOST_FRAMES = 5, 8
STACK_END = PROGRESS_SIZE + FRAME_SIZE * MOST_FRAMES


class Json(NamedTuple):
    """The programs of all keys and values, the bytes that they write, and what stands for a text or embedded bytes."""

    steps: LongRows
    literals: Bytes
    escapes: ByteRows
    embedded: Embedded


@inlined
def _write_null(out: Any, at: Any) -> Any:
    out[U(at)], out[U(at + 1)], out[U(at + 2)], out[U(at + 3)] = 110, 117, 108, 108
    return at + 4


@inlined
def _length(data: Any, read: Any, end: Any, flags: Any) -> Any:
    """Return a length or count, −1 for null, and where it ends; NOT_PLAIN if there is none."""
    if flags & IS_COMPACT:
        size, read = uvarint(data, read, end)
        return size - 1, read if read >= 0 else np.int64(oc.NOT_PLAIN)
    width = np.int64(4) if flags & IS_LONG else np.int64(2)
    if width > end - read:
        return np.int64(0), np.int64(oc.NOT_PLAIN)
    return be32(data, read) if flags & IS_LONG else be16(data, read), read + width


@inlined
def _integer(out: Any, at: Any, argument: Any, data: Any, read: Any, end: Any) -> Any:
    """Write an integer; return where it ends in the text, and in the record."""
    size = argument & (IS_UNSIGNED - 1)
    if size > end - read:
        return np.int64(oc.NOT_PLAIN), read
    if size == 8:
        number = be64(data, read)
    elif size == 4:
        number = be32(data, read)
    elif size == 2:
        number = be16(data, read)
    else:
        number = np.int64(data[U(read)])
        number -= (number & 0x80) << 1
    if argument & IS_UNSIGNED:
        number &= 0xFFFF
    return write_number(out, at, number), read + size


@inlined
def _sized(out: Any, at: Any, json: Json, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Write a string or bytes, or null; return where it ends in the text, and in the record."""
    steps = json.steps
    flags = steps[pc, ARGUMENT] if steps[pc, STEP] != EMBEDDED else np.int64(IS_LONG)
    size, read = _length(data, read, end, flags)
    if read < 0 or size > end - read or size < -1 or (size < 0 and flags & NULLABLE == 0):
        return np.int64(oc.NOT_PLAIN), read
    if size < 0:
        return _write_null(out, at), read
    at = copy(out, at, json.literals, steps[pc, OTHER_AT], steps[pc, OTHER_SIZE])
    if at >= 0 and steps[pc, STEP] != STRING:
        at = base64(out, at, data, read, size, BASE64)
    elif at >= 0:
        at = escaped(out, at, data, read, size, json.escapes) if is_utf8(data, read, size) else np.int64(oc.NOT_PLAIN)
    if at >= 0:
        at = copy(out, at, json.literals, steps[pc, OTHER_AT], steps[pc, OTHER_SIZE])
    return at, read + size


@inlined
def _uuid(out: Any, at: Any, json: Json, pc: Any, data: Any, read: Any, end: Any) -> Any:
    steps = json.steps
    if read + UUID_SIZE > end:
        return np.int64(oc.NOT_PLAIN), read
    at = copy(out, at, json.literals, steps[pc, OTHER_AT], steps[pc, OTHER_SIZE])
    if at >= 0:
        at = base64(out, at, data, read, np.int64(UUID_SIZE), URL_SAFE)
    if at >= 0:
        at = copy(out, at - 2, json.literals, steps[pc, OTHER_AT], steps[pc, OTHER_SIZE])  # it is not padded
    return at, read + UUID_SIZE


@part
def _embedded(output: Output, at: Any, json: Json, pc: Any, data: Any, begin: Any, read: Any, end: Any) -> Any:
    """Write embedded bytes in the form of a line; return where it ends in the text, and in the record."""
    out, embedded = output.out, json.embedded
    size, start = _length(data, read, end, np.int64(IS_LONG))
    prefix = output.progress[PREFIX]
    if start < 0 or size < 0 or size > end - start:
        return np.int64(oc.NOT_PLAIN), read
    if prefix > start - begin or not same_bytes(embedded.memory, np.int64(0), data, begin, prefix):
        return _sized(out, at, json, pc, data, read, end)
    number = known_field(output.progress, data, begin, start, size, json.steps[pc, ARGUMENT], embedded)
    if number < 0:
        return np.int64(oc.NEEDS_EMBEDDED), read
    text_at, text_size = embedded.known[number, TEXT_AT], embedded.known[number, TEXT_SIZE]
    return copy(out, at, embedded.memory, text_at, text_size), start + size


@part
def _value(output: Output, at: Any, json: Json, pc: Any, data: Any, begin: Any, read: Any, end: Any) -> Any:
    """Write what a step up to EMBEDDED reads; return where it ends in the text, and in the record."""
    step, out = json.steps[pc, STEP], output.out
    if step == LITERAL:
        return at, read
    if step == EMBEDDED:
        return _embedded(output, at, json, pc, data, begin, read, end)
    if step == INTEGER:
        return _integer(out, at, json.steps[pc, ARGUMENT], data, read, end)
    if step == UUID:
        return _uuid(out, at, json, pc, data, read, end)
    return _sized(out, at, json, pc, data, read, end)


@inlined
def _array(output: Output, depth: Any, at: Any, steps: Any, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Enter or skip an array; return the next step, the positions in text and record, and the depth."""
    out = output.out
    flags = steps[pc, ARGUMENT]
    size, read = _length(data, read, end, flags)
    is_fit = read >= 0 and size <= end - read and size >= -1 and (size >= 0 or flags & NULLABLE != 0)
    if not is_fit or depth >= MOST_FRAMES:
        return pc, np.int64(oc.NOT_PLAIN), read, depth
    if size < 0:
        return steps[pc, TARGET], _write_null(out, at), read, depth
    out[U(at)] = 91  # [
    if size == 0:
        out[U(at + 1)] = 93  # ]
        return steps[pc, TARGET], at + 2, read, depth
    frame = FRAME_SIZE * depth
    output.progress[frame + LEFT], output.progress[frame + BACK] = size, pc + 1
    return pc + 1, at + 1, read, depth + 1


@inlined
def _next(output: Output, depth: Any, at: Any, pc: Any) -> Any:
    """Go to the next element or out of the array."""
    stack = output.progress
    frame = FRAME_SIZE * (depth - 1)
    stack[frame + LEFT] -= 1
    is_last = stack[frame + LEFT] == 0
    output.out[U(at)] = np.uint8(93) if is_last else np.uint8(44)  # ] or ,
    return (pc + 1 if is_last else stack[frame + BACK]), at + 1, depth - (1 if is_last else 0)


@inlined
def _struct(out: Any, at: Any, steps: Any, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Enter a struct that may be null, or skip it."""
    if read >= end:
        return pc, np.int64(oc.NOT_PLAIN), read
    if steps[pc, ARGUMENT] & IS_TAGGED:
        marker, read = uvarint(data, read, end)
        is_null = marker == 0
    else:
        is_null = data[U(read)] >= 0x80
        read += 1
    if read < 0:
        return pc, np.int64(oc.NOT_PLAIN), read
    if is_null:
        return steps[pc, TARGET], _write_null(out, at), read
    return pc + 1, np.int64(oc.NOT_PLAIN) if steps[pc, ARGUMENT] & IS_BEYOND else at, read


@part
def _tags(output: Output, depth: Any, at: Any, json: Json, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Enter a section of tagged fields, go on to the next field, or leave it; also return the end of what is read now.

    The numbers of the fields must ascend, as in the steps, and none may be unknown.
    """
    stack, steps = output.progress, json.steps
    if steps[pc, STEP] == TAGS:
        count, read = uvarint(data, read, end)
        if read < 0 or depth >= MOST_FRAMES:
            return pc, np.int64(oc.NOT_PLAIN), read, end, depth
        frame = FRAME_SIZE * depth
        stack[frame + LEFT], stack[frame + BACK], stack[frame + AROUND] = count, pc, end
        depth += 1
    else:
        frame = FRAME_SIZE * (depth - 1)
        begin = stack[frame + BEHIND_NAME]
        size, other = at - begin, steps[pc, OTHER_AT]
        if read != end:
            return pc, np.int64(oc.NOT_PLAIN), read, end, depth
        if size == steps[pc, OTHER_SIZE] and same_bytes(json.literals, other, output.out, begin, size):
            at = stack[frame + BEGIN]
        end = stack[frame + AROUND]
    behind = steps[stack[frame + BACK], TARGET]
    if stack[frame + LEFT] == 0:
        return behind, at, read, end, depth - 1
    stack[frame + LEFT] -= 1
    tag, read = uvarint(data, read, end)
    size = np.int64(0)
    if read >= 0:
        size, read = uvarint(data, read, end)
    pc += 1
    while pc < behind and steps[pc, ARGUMENT] != tag:
        pc = steps[pc, TARGET]
    if read < 0 or size > end - read or pc >= behind:
        return pc, np.int64(oc.NOT_PLAIN), read, end, depth
    stack[frame + BEGIN] = at
    at = copy(output.out, at, json.literals, steps[pc, LITERAL_AT], steps[pc, LITERAL_SIZE])
    stack[frame + BEHIND_NAME] = at
    return pc + 1, at, read, read + size, depth


@part
def _enter(output: Output, depth: Any, at: Any, json: Json, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Do a step after EMBEDDED.

    Returns:
        The next step, the positions in text and record, where the record ends, and the depth.
    """
    steps = json.steps
    step = steps[pc, STEP]
    if step == ARRAY:
        pc, at, read, depth = _array(output, depth, at, steps, pc, data, read, end)
    elif step == NEXT:
        pc, at, depth = _next(output, depth, at, pc)
    elif step == STRUCT:
        pc, at, read = _struct(output.out, at, steps, pc, data, read, end)
    else:
        return _tags(output, depth, at, json, pc, data, read, end)
    return pc, at, read, end, depth


@part
def write_json(output: Output, at: Any, json: Json, pc: Any, data: Any, read: Any, end: Any) -> Any:
    """Write the JSON of ``data[read:end]``; return where it ends in the text, NOT_PLAIN or FULL."""
    out, steps, begin = output.out, json.steps, read
    depth = np.int64(0)
    while True:
        step = steps[pc, STEP]
        at = copy(out, at, json.literals, steps[pc, LITERAL_AT], steps[pc, LITERAL_SIZE])
        if at >= 0 and len(out) - at < SLACK:
            at = np.int64(oc.FULL)
        if at < 0:
            return at
        if step == END:
            return at if read == end else np.int64(oc.NOT_PLAIN)
        if step <= EMBEDDED:
            at, read = _value(output, at, json, pc, data, begin, read, end)
            pc += 1
        else:
            pc, at, read, end, depth = _enter(output, depth, at, json, pc, data, read, end)
        if at < 0:
            return at
