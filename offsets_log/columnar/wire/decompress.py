"""Decompress inside kernels: many small batches without a call into Python for each.

`compression.py` is the authority. Only plainly valid data are decoded here; everything else, every error included, is
`NOT_PLAIN` and left to it. Lz4 and snappy are decoded here. Gzip is decoded by Python's own zlib and zstd by the
libzstd in the package ``zstandard`` (`libraries`); where these are not found, and where kernels run as plain Python,
the two codecs are `NOT_PLAIN`.

Copies are made in whole words, and libzstd uses free room for itself: bytes in the target after the returned end have
no meaning.

References: ``format_description.txt`` of snappy; the block and the frame format of lz4; ``zlib.h``; RFC 8878.

Over 400 lines: the codecs share their copies and their bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, instruction, part
from offsets_log.columnar.jit.instructions import load64
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.columnar.wire import libraries as lib
from offsets_log.columnar.wire.libraries import address, call
from offsets_log.log_format.compression import LZ4_MAGIC, MAX_DECOMPRESSED_BYTES, XERIAL_HEADER, XERIAL_MAGIC

SLACK = 24
"""How many bytes after its end a copy may write."""

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""Codec ids as in a batch's attributes."""

# ---------------------------------------------------------------------------------------- bytes and words


@instruction
def copy_bytes(source: Any, at: Any, target: Any, out: Any, count: Any) -> None:
    """Copy bytes that do not overlap. The compiler would turn a loop into much code."""
    for i in range(count):
        target[U(out + i)] = source[U(at + i)]


@instruction
def copy8(source: Any, at: Any, target: Any, out: Any) -> None:
    """Copy 8 bytes."""
    for i in range(8):
        target[U(out + i)] = source[U(at + i)]


_MULTIPLES = np.array([0, 8, 4, 3, 2, 2, 2, 2], np.int64)
"""For a distance, the factor that makes it 8 or a little more."""


@inlined
def _copy(source: Any, at: Any, target: Any, out: Any, count: Any) -> None:
    """Copy bytes from a checked range to a place that has room for them and some slack."""
    if count > 16 or at + 16 > len(source):
        copy_bytes(source, at, target, out, count)
    else:
        copy8(source, at, target, out)
        copy8(source, at + 8, target, out + 8)


@inlined
def _little(source: Any, at: Any, count: Any) -> Any:
    """Return ``count`` bytes (0 to 4) as a little-endian integer. The source has at least 8 bytes."""
    first = min(at, len(source) - 8)
    word = load64(source, first) >> U(8 * (at - first) & 63)
    return np.int64(word & (U(1) << U(8 * count)) - U(1))


@inlined
def _repeat(target: Any, out: Any, distance: Any, count: Any) -> None:
    """Copy bytes that were made before, with slack after them; if the distance is below the count, they repeat."""
    if distance < 8:
        for i in range(8):
            target[U(out + i)] = target[U(out + i - distance)]
        out += 8
        count -= 8
        distance *= _MULTIPLES[U(distance)]  # a multiple of a period is a period
    if count > 16:
        while distance < count:
            copy_bytes(target, out - distance, target, out, distance)
            out += distance
            count -= distance
            distance *= 2
        copy_bytes(target, out - distance, target, out, count)
    else:
        copy8(target, out - distance, target, out)
        copy8(target, out + 8 - distance, target, out + 8)


# ------------------------------------------------------------------------------------------------- lz4

_LZ4_MAGIC = int.from_bytes(LZ4_MAGIC, "little")
_SIZE_BYTES = np.int64(4)
"""Has NumPy's type, because numba would compile its users again for each value of a Python number."""

_MASK32 = U(0xFFFFFFFF)
_PRIME1, _PRIME2, _PRIME3 = U(0x9E3779B1), U(0x85EBCA77), U(0xC2B2AE3D)
_PRIME4, _PRIME5 = U(0x27D4EB2F), U(0x165667B1)


@part
def _xxh32(data: Any, at: Any, end: Any) -> Any:
    """Return xxh32 with seed 0 of fewer than 16 bytes, followed by 8 bytes. Products of 32-bit numbers fit into 64."""
    hashed = _PRIME5 + U(end - at)
    while at + 4 <= end:
        word = load64(data, at) & _MASK32
        hashed = hashed + (word * _PRIME3 & _MASK32) & _MASK32
        hashed = ((hashed << U(17) | hashed >> U(15)) & _MASK32) * _PRIME4 & _MASK32
        at += 4
    while at < end:
        hashed = hashed + (U(data[U(at)]) * _PRIME5 & _MASK32) & _MASK32
        hashed = ((hashed << U(11) | hashed >> U(21)) & _MASK32) * _PRIME1 & _MASK32
        at += 1
    hashed = (hashed ^ hashed >> U(15)) * _PRIME2 & _MASK32
    hashed = (hashed ^ hashed >> U(13)) * _PRIME3 & _MASK32
    return np.int64(hashed ^ hashed >> U(16))


@inlined
def _lz4_length(source: Any, at: Any, end: Any, length: Any) -> Any:
    """Return a length that starts with 4 bits, and the position after it.

    15 continues in the bytes that follow; the length is -1 if these are cut off.
    """
    more: Any = 255 if length == 15 else 0
    while more == 255:
        if at >= end:
            return -1, at
        more = np.int64(source[U(at)])
        at += 1
        length += more
    return length, at


@part
def _lz4_block(source: Any, at: Any, end: Any, target: Any, base: Any, block_end: Any, room: Any) -> Any:
    """Decode one block of sequences: literals, then a match.

    liblz4 requires a distance from the ends that its compressor keeps: the last 5 bytes are literals, and the last
    match begins 12 bytes before the end. It is always required here, although some of liblz4's loops do not check it.
    """
    out = base
    while at < end:
        token = np.int64(source[U(at)])
        count, at = _lz4_length(source, at + 1, end, token >> 4)
        if count < 0 or count > end - at or count > block_end - out:
            return oc.NOT_PLAIN
        if count > room - out:
            return oc.NEEDS_ROOM
        _copy(source, at, target, out, count)
        at += count
        out += count
        if at == end:
            return out
        if at > end - 8 or out > block_end - 12:
            return oc.NOT_PLAIN
        distance = np.int64(load64(source, at) & U(0xFFFF))
        count, at = _lz4_length(source, at + 2, end - 4, token & 15)
        if count < 0 or distance == 0 or distance > out - base or count + 4 > block_end - 5 - out:
            return oc.NOT_PLAIN
        if count + 4 > room - out:
            return oc.NEEDS_ROOM
        _repeat(target, out, distance, count + 4)
        out += count + 4
    return oc.NOT_PLAIN


@part
def _lz4(source: Any, start: Any, end: Any, magic: Any, target: Any, out: Any, room: Any) -> Any:
    """Decode a frame. Checksums of blocks and content, the content's size, and bytes after the end mark are ignored."""
    if end - start < 11:
        return oc.NOT_PLAIN
    head = np.int64(load64(source, start))
    flags, blocks = head >> 32, head >> 40
    if head & 0xE1_FFFFFFFF != _LZ4_MAGIC | 0x60 << 32 or blocks & 0x40 == 0:  # version 1, independent, no dictionary
        return oc.NOT_PLAIN
    at = start + 6 + (flags & 0x08)
    if end - at < 5 or (magic > 0 and source[U(at)] != _xxh32(source, start + 4, at) >> 8 & 0xFF):
        return oc.NOT_PLAIN
    at += 1
    block_size = 1 << 8 + 2 * (blocks >> 4 & 7)
    behind = flags >> 2 & 4  # a checksum of four bytes follows each block
    while at + 4 <= end:
        size = _little(source, at, _SIZE_BYTES)
        at += 4
        if size == 0:
            return out
        stored = size >> 31
        size &= 0x7FFFFFFF
        if size > block_size or size > end - at:
            return oc.NOT_PLAIN
        if stored == 0:
            out = _lz4_block(source, at, at + size, target, out, out + block_size, room)
            if out < 0:
                return out
        elif size > room - out:
            return oc.NEEDS_ROOM
        else:
            _copy(source, at, target, out, size)
            out += size
        at += size + behind
    return oc.NOT_PLAIN


# ---------------------------------------------------------------------------------------------- snappy

_XERIAL_MAGIC = U(int.from_bytes(XERIAL_MAGIC, "little"))
_XERIAL_HEADER_SIZE = len(XERIAL_HEADER)


def _snappy_tags() -> np.ndarray[Any, Any]:
    """Return for every tag byte a number with three parts.

    These are the length (bits 0–7), the high bits of the distance (8–15), and how many bytes follow (16–). A literal
    longer than 60 has its length in the bytes that follow.
    """
    tags = np.zeros(256, np.int64)
    for tag in range(256):
        kind, rest = tag & 3, tag >> 2
        if kind == 0:
            tags[tag] = rest + 1 if rest < 60 else 1 | rest - 59 << 16
        elif kind == 1:
            tags[tag] = 4 + (rest & 7) | rest >> 3 << 8 | 1 << 16
        else:
            tags[tag] = rest + 1 | (2 if kind == 2 else 4) << 16
    return tags


_SNAPPY_TAGS = _snappy_tags()


@part
def _snappy_block(source: Any, at: Any, end: Any, target: Any, base: Any, room: Any) -> Any:
    """Decode one block: its size as a varint, then elements: literals and copies."""
    length = end - at
    size: Any = 0
    shift, byte = 0, np.int64(0x80)
    while byte & 0x80:
        if at >= end or shift > 28:
            return oc.NOT_PLAIN
        byte = np.int64(source[U(at)])
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
    if size > 32 * length + 64:
        return oc.NOT_PLAIN
    if size > room - base:
        return oc.NEEDS_ROOM
    out, block_end = base, base + size
    while at < end:
        tag = np.int64(source[U(at)])
        at += 1
        element = _SNAPPY_TAGS[U(tag)]
        follow = element >> 16
        if follow > end - at:
            return oc.NOT_PLAIN
        trailer = _little(source, at, follow)
        at += follow
        count = element & 0xFF
        if tag & 3 == 0:
            count += trailer
            is_short = follow > 0 and count <= 60  # some decoders take such a length from four bytes only
            if is_short or count > end - at or count > block_end - out:
                return oc.NOT_PLAIN
            _copy(source, at, target, out, count)
            at += count
        else:
            distance = (element & 0xFF00) + trailer
            if distance == 0 or distance > out - base or count > block_end - out:
                return oc.NOT_PLAIN
            _repeat(target, out, distance, count)
        out += count
    return out if out == block_end else oc.NOT_PLAIN


@part
def _snappy(source: Any, at: Any, end: Any, target: Any, out: Any, room: Any) -> Any:
    """Decode a xerial stream, or several joined end to end; without its magic, a single raw block."""
    is_stream = False
    while True:
        if end - at >= _XERIAL_HEADER_SIZE and load64(source, at) == _XERIAL_MAGIC:
            is_stream = True
            at += _XERIAL_HEADER_SIZE
        if at == end and is_stream:
            return out
        size = end - at
        if is_stream:
            if size < 4:
                return oc.NOT_PLAIN
            size = np.int64(source[U(at)]) << 24 | np.int64(source[U(at + 1)]) << 16
            size |= np.int64(source[U(at + 2)]) << 8 | np.int64(source[U(at + 3)])
            at += 4
            if size > end - at:  # a negative one, too
                return oc.NOT_PLAIN
        out = _snappy_block(source, at, at + size, target, out, room)
        if out < 0 or not is_stream:
            return out
        at += size


# ------------------------------------------------------------------------------------------------ gzip
#
# zlib and nothing faster, because it has to refuse what `compression.py` refuses: libdeflate takes incomplete codes,
# the symbols 286 and 287, the distances 30 and 31, and does not look at the checksum of a header.

_Z_FINISH = 4
_Z_STREAM_END = 1
_MAX_INT = 0x7FFFFFFF


@part
def _gzip(source: Any, start: Any, end: Any, target: Any, at: Any, room: Any, library: Any) -> Any:
    """Decode one member that takes all bytes, by the zlib that Python has."""
    if IS_PYTHON or library[lib.INFLATE] == U(0) or end - start > _MAX_INT:
        return oc.NOT_PLAIN
    stream = address(library, lib.Z_STREAM)
    library[lib.NEXT_IN] = address(source, start)
    library[lib.AVAILABLE_IN] = U(end - start)
    library[lib.NEXT_OUT] = address(target, at)
    library[lib.AVAILABLE_OUT] = U(room - at)
    call(library[lib.INFLATE_RESET], (stream,))
    result = call(library[lib.INFLATE], (stream, U(_Z_FINISH)))
    if result & U(_MAX_INT) != U(_Z_STREAM_END):  # an int: the upper half of the register has no meaning
        return oc.NEEDS_ROOM if library[lib.AVAILABLE_OUT] == U(0) else oc.NOT_PLAIN
    return at + np.int64(library[lib.TOTAL_OUT]) if library[lib.AVAILABLE_IN] == U(0) else oc.NOT_PLAIN


# ------------------------------------------------------------------------------------------------ zstd
#
# libzstd is called piece by piece, as its own streaming decompressor does, and not once for the whole frame:
# ZSTD_decompressDCtx does not look at the window's size, nor at that of blocks of one repeated byte.

_ZSTD_MAGIC = 0xFD2FB528
_MIN_ZSTD_FRAME = 4 + 2 + 3
_MAX_ZSTD_WINDOW = 1 << 27
"""ZSTD_WINDOWLOG_LIMIT_DEFAULT: streaming refuses larger windows."""
_ZSTD_TOO_SMALL = -70
"""-ZSTD_error_dstSize_tooSmall"""


@part
def _zstd(source: Any, start: Any, end: Any, target: Any, out: Any, room: Any, library: Any) -> Any:
    """Decode one frame that takes all bytes.

    Its content may be as large as its window: libzstd does not compare distances with the window, and the result of a
    longer distance depends on where its output goes. Two things that libzstd does not check piece by piece are checked
    here: the declared size if the last block is empty, and compressed blocks of no bytes.
    """
    if IS_PYTHON or library[lib.ZSTD_STATE] == U(0) or end - start < _MIN_ZSTD_FRAME:
        return oc.NOT_PLAIN
    head = np.int64(load64(source, start) & U(0xFFFFFFFFFFFF))
    if head & 0x0B_FFFFFFFF != _ZSTD_MAGIC or head >> 38 & 3 == 3:  # no reserved bit, no dictionary, no size of 8 bytes
        return oc.NOT_PLAIN
    is_segment = head >> 37 & 1  # then the window is the size
    width = head >> 38 & 3
    width = width << 1 if width else is_segment
    declared = _little(source, start + 6 - is_segment, width) + (256 if width == 2 else 0)
    window = declared if is_segment else (8 + (head >> 40 & 7)) << 7 + (head >> 43)
    base, next_block, state = out, start + 6 - is_segment + width, library[lib.ZSTD_STATE]
    if window > _MAX_ZSTD_WINDOW or call(library[lib.ZSTD_BEGIN], (state,)) != U(0):
        return oc.NOT_PLAIN
    while True:
        size = np.int64(call(library[lib.ZSTD_NEXT], (state,)))
        if size == 0:
            is_whole = start == end and out - base <= window and (width == 0 or out - base == declared)
            return out if is_whole else oc.NOT_PLAIN
        if size < 0 or size > end - start:
            return oc.NOT_PLAIN
        if start == next_block:
            block = _little(source, start, size)
            if block >> 1 == 2:  # compressed, no bytes
                return oc.NOT_PLAIN
            next_block += size + (1 if block >> 1 & 3 == 1 else block >> 3)
        place, room_left, piece = address(target, out), U(room - out), address(source, start)
        made = np.int64(call(library[lib.ZSTD_CONTINUE], (state, place, room_left, piece, U(size))))
        if made < 0:  # -ZSTD_ErrorCode
            return oc.NEEDS_ROOM if made == _ZSTD_TOO_SMALL else oc.NOT_PLAIN
        start += size
        out += made


# ----------------------------------------------------------------------------------------------- codecs


@part
def decompress(codec_id: Any, source: Any, start: Any, end: Any, magic: Any, target: Any, at: Any, library: Any) -> Any:
    """Decompress ``source[start:end]`` into ``target[at:]``; bytes of ``target`` outside of that are not written.

    Args:
        library: `libraries.Library.addresses` of the thread that calls.

    Returns:
        The end of what was made in ``target``, `NEEDS_ROOM` or `NOT_PLAIN`.
    """
    if not 0 <= start <= end <= len(source) or not 0 <= at <= len(target) or len(source) < 8:
        return oc.NOT_PLAIN
    start, end, at = np.int64(start), np.int64(end), np.int64(at)
    room = min(len(target), at + MAX_DECOMPRESSED_BYTES)
    if codec_id == LZ4:
        made = _lz4(source, start, end, magic, target, at, room - SLACK)
    elif codec_id == SNAPPY:
        made = _snappy(source, start, end, target, at, room - SLACK)
    elif codec_id == GZIP:
        made = _gzip(source, start, end, target, at, room, library)
    elif codec_id == ZSTD and magic >= 2:
        made = _zstd(source, start, end, target, at, room, library)
    else:
        return oc.NOT_PLAIN
    return oc.NOT_PLAIN if made == oc.NEEDS_ROOM and room - at == MAX_DECOMPRESSED_BYTES else made
