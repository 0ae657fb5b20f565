"""Compressed bytes of every shape and kind, and decompression in kernels beside `compression.py`."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import cramjam
import numpy as np
import pytest
import xxhash

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import kernel
from offsets_log.columnar.jit.kinds import Bytes, Number, Words
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.columnar.wire import decompress as d
from offsets_log.errors import CorruptBatchError
from offsets_log.log_format.compression import CODECS, LZ4_BLOCK_SIZES, LZ4_MAGIC, LZ4_STORED

GZIP, SNAPPY, LZ4, ZSTD = d.GZIP, d.SNAPPY, d.LZ4, d.ZSTD
NAMES = {codec.id: codec.name for codec in CODECS}
IDS = (SNAPPY, LZ4) if IS_PYTHON else (GZIP, SNAPPY, LZ4, ZSTD)
"""Gzip and zstd are doubtful where kernels are plain Python, which is slow, too."""
EXAMPLES = 40 if IS_PYTHON else 300

needs_libraries = pytest.mark.skipif(IS_PYTHON, reason="foreign functions are called from machine code only")

BEFORE, GUARD = 40, 48
_NOISE = random.Random(5).randbytes(64)


@kernel
def decompress(
    codec_id: Number, source: Bytes, start: Number, end: Number, magic: Number, target: Bytes, at: Number,
    addresses: Words,
) -> Any:  # fmt: skip
    return d.decompress(codec_id, source, start, end, magic, target, at, addresses)


def attempt(
    addresses: np.ndarray, codec_id: int, data: bytes, room: int, magic: int = 2, around: bytes = _NOISE
) -> int | bytes:
    """What is made, or why nothing is; what lies before and behind the target must not change.

    ``around``: the bytes before and behind the compressed ones.
    """
    source = np.frombuffer(around + data + around, np.uint8)
    memory = np.full(GUARD + BEFORE + room + GUARD, 0xA5, np.uint8)
    target = memory[GUARD : len(memory) - GUARD]
    start = len(around)
    made = decompress(codec_id, source, start, start + len(data), magic, target, BEFORE, addresses)
    assert (memory[: GUARD + BEFORE] == 0xA5).all()
    assert (memory[len(memory) - GUARD :] == 0xA5).all()
    return int(made) if made < 0 else bytes(target[BEFORE:made])


def decide(codec_id: int, data: bytes, magic: int = 2) -> bytes | None:
    """What `compression.py` makes of it; None for an error."""
    try:
        return CODECS[codec_id].decompress(data, magic)
    except CorruptBatchError:
        return None


def is_accepted(addresses: np.ndarray, codec_id: int, data: bytes, magic: int = 2, room: int = 1 << 12) -> bool:
    """Whether it is; if so, or if room is lacking, `compression.py` must agree."""
    made = attempt(addresses, codec_id, data, room, magic)
    if made == oc.NOT_PLAIN:
        return False
    expected = decide(codec_id, data, magic)
    if made == oc.NEEDS_ROOM:
        assert expected is None or room < len(expected) + d.SLACK
        return False
    assert made == expected
    return True


# ---------------------------------------------------------------------------------------------- shapes


def commits(count: int, seed: int = 3) -> bytes:
    """Records as offset commits have them: the same names again and again, and numbers that differ a little."""
    rng = random.Random(seed)
    out = bytearray()
    for i in range(count):
        key = b"\0\1\0\x0a" + b"payments-%d" % rng.randrange(9) + b"\0\6orders" + rng.randrange(64).to_bytes(4)
        value = struct.pack(">hqihq", 3, 10**6 + rng.randrange(10**5), -1, 0, 1_700_000_000_000 + i)
        out += bytes((100, 0, 0, 2 * i % 256, 2 * len(key))) + key + bytes((2 * len(value),)) + value + b"\0"
    return bytes(out)


SHAPES = {
    "nothing": b"",
    "one byte": b"x",
    "two bytes": b"\0\0",
    "one commit": commits(1),
    "commits": commits(9),
    "random": random.Random(1).randbytes(600),
    "zeros": bytes(3000),
    "words": b"".join(b"%d of many " % (i % 13) for i in range(300)),
    "a block of lz4": commits(1000)[: 64 * 1024],
    "a block of lz4 and a byte": commits(1000)[: 64 * 1024] + b"y",
}
LARGE_SHAPES = {
    "many commits": commits(5000),
    "much that is random": random.Random(2).randbytes(200_000),
    "many zeros": bytes(300_000),
    "both": random.Random(2).randbytes(70_000) + bytes(70_000) + commits(1500),
}
if not IS_PYTHON:
    SHAPES.update(LARGE_SHAPES)


def snappy_raw(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4_frame(
    data: bytes, *, flags: int = 0x60, size_code: int = 4, descriptor_tail: bytes = b"", magic: int = 2
) -> bytes:
    """A frame with any flags and size of blocks; checksums of blocks and of the content are right."""
    descriptor = bytes((flags, size_code << 4)) + descriptor_tail
    hashed = LZ4_MAGIC + descriptor if magic == 0 else descriptor
    out = LZ4_MAGIC + descriptor + bytes((xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF,))
    for at in range(0, len(data), LZ4_BLOCK_SIZES[size_code]):
        plain = data[at : at + LZ4_BLOCK_SIZES[size_code]]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) >= len(plain):
            out += struct.pack("<I", len(plain) | LZ4_STORED) + plain
            block = plain
        else:
            out += struct.pack("<I", len(block)) + block
        if flags & 0x10:
            out += struct.pack("<I", xxhash.xxh32_intdigest(block))
    return out + bytes(4) + (struct.pack("<I", xxhash.xxh32_intdigest(data)) if flags & 0x04 else b"")


def zstd_frame(*blocks: tuple[int, int, bytes], window: int = 0x58, flags: int = 0, size: bytes = b"") -> bytes:
    """A frame of blocks as (type, size, bytes), with a window byte unless it is a single segment."""
    out = b"\x28\xb5\x2f\xfd" + bytes((flags,)) + (b"" if flags & 0x20 else bytes((window,))) + size
    for i, (kind, length, data) in enumerate(blocks):
        out += struct.pack("<I", (i == len(blocks) - 1) | kind << 1 | length << 3)[:3] + data
    return out


def deflate_gzip(data: bytes, **options: int) -> bytes:
    stream = zlib.compressobj(wbits=31, **options)
    return stream.compress(data) + stream.flush()
