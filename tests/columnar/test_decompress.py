"""Decompression in kernels against `compression.py`: what is accepted has the same bytes, and nothing else is."""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import IS_PYTHON, kernel
from offsets_log.columnar.jit.kinds import Bytes, Number, Words
from offsets_log.columnar.wire import decompress as d
from offsets_log.columnar.wire import libraries as lib
from offsets_log.errors import CorruptBatchError
from offsets_log.log_format import compression
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, LEGACY_HEADER_SIZE, RecordBatch
from offsets_log.log_format.compression import CODECS, LZ4_BLOCK_SIZES, LZ4_MAGIC, LZ4_STORED, XERIAL_HEADER
from offsets_log.log_format.segment import iter_batches
from tests.conftest import RECORDINGS

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


@pytest.fixture(scope="module")
def addresses() -> Iterator[np.ndarray]:
    with lib.Library() as library:
        yield library.addresses


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


# ------------------------------------------------------------------------------------------ what is right


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_what_is_compressed_here_is_read_back(codec_id: int, shape: str, addresses: np.ndarray) -> None:
    plain = SHAPES[shape]
    data = CODECS[codec_id].compress(plain, 2)
    assert attempt(addresses, codec_id, data, len(plain) + d.SLACK) == plain
    assert attempt(addresses, codec_id, data, len(plain) + d.SLACK, around=b"") == plain
    assert attempt(addresses, codec_id, data, 2 * len(plain) + 900) == plain


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_every_target_that_is_too_small_is_told(codec_id: int, addresses: np.ndarray) -> None:
    plain = commits(9) + bytes(40) + random.Random(4).randbytes(50)
    data = CODECS[codec_id].compress(plain, 2)
    for room in range(len(plain)):
        assert attempt(addresses, codec_id, data, room) == oc.NEEDS_ROOM
    for room in range(len(plain), len(plain) + d.SLACK):
        assert attempt(addresses, codec_id, data, room) in (oc.NEEDS_ROOM, plain)


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_a_writable_source_is_read_as_well(codec_id: int, addresses: np.ndarray) -> None:
    plain = commits(3)
    source = np.frombuffer(CODECS[codec_id].compress(plain, 2), np.uint8).copy()
    target = np.zeros(len(plain) + d.SLACK, np.uint8)
    made = decompress(codec_id, source, 0, len(source), 2, target, 0, addresses)
    assert bytes(target[:made]) == plain


@pytest.mark.parametrize("codec_id", [SNAPPY, LZ4], ids=NAMES.get)
def test_repetitions_of_every_period(codec_id: int, addresses: np.ndarray) -> None:
    rng = random.Random(6)
    lengths = (5, 17, 40) if IS_PYTHON else range(1, 90)
    for period, length in itertools.product(range(1, 36), lengths):
        plain = rng.randbytes(7) + (rng.randbytes(period) * 90)[: period + length] + rng.randbytes(13)
        data = CODECS[codec_id].compress(plain, 2)
        assert attempt(addresses, codec_id, data, len(plain) + d.SLACK) == plain


def test_snappy_raw_blocks_and_joined_streams(addresses: np.ndarray) -> None:
    for plain in SHAPES.values():
        assert attempt(addresses, SNAPPY, snappy_raw(plain), len(plain) + d.SLACK) == plain
    stream = CODECS[SNAPPY].compress(commits(9), 2)
    joined = stream + stream + XERIAL_HEADER
    assert attempt(addresses, SNAPPY, joined, 4000) == 2 * commits(9) == decide(SNAPPY, joined)


def test_snappy_elements_that_the_compressor_does_not_write(addresses: np.ndarray) -> None:
    literal = b"\x0cabcd"
    far = b"\x23" + (4).to_bytes(4, "little")  # a copy of 9 bytes with a distance of four bytes
    assert attempt(addresses, SNAPPY, b"\x0d" + literal + far, 100) == b"abcdabcdabcda"
    long = bytes(range(61))
    for width in range(1, 5):  # literals whose length takes so many bytes
        data = b"\x3d" + bytes((59 + width << 2,)) + (60).to_bytes(width, "little") + long
        assert attempt(addresses, SNAPPY, data, 100) == long == decide(SNAPPY, data)
        short = b"\x01" + bytes((59 + width << 2,)) + (0).to_bytes(width, "little") + b"a"
        assert attempt(addresses, SNAPPY, short, 100) == oc.NOT_PLAIN


@pytest.mark.parametrize("flags", [0x60, 0x64, 0x70, 0x74, 0x68, 0x7C, 0x62])
@pytest.mark.parametrize("size_code", [4, 5, 6, 7])
def test_lz4_frames_of_every_kind(flags: int, size_code: int, addresses: np.ndarray) -> None:
    large = b"large" if IS_PYTHON else SHAPES["a block of lz4 and a byte"]
    for plain in (b"", commits(9), large):
        tail = len(plain).to_bytes(8, "little") if flags & 0x08 else b""
        data = lz4_frame(plain, flags=flags, size_code=size_code, descriptor_tail=tail)
        assert attempt(addresses, LZ4, data, len(plain) + d.SLACK) == plain == decide(LZ4, data)


@needs_libraries
def test_lz4_blocks_of_four_mebibytes(addresses: np.ndarray) -> None:
    plain = random.Random(8).randbytes(100_000) * 43 + commits(2000)
    for size_code in (4, 7):
        data = lz4_frame(plain, size_code=size_code)
        assert attempt(addresses, LZ4, data, len(plain) + d.SLACK) == plain


def test_lz4_checksum_of_the_header(addresses: np.ndarray) -> None:
    """Magic 0 has a wrong one, which is not looked at (``records:K1``)."""
    plain = commits(3)
    for magic in (0, 1, 2):
        data = CODECS[LZ4].compress(plain, magic)
        assert attempt(addresses, LZ4, data, 1000, magic) == plain
    wrong = CODECS[LZ4].compress(plain, 0)
    assert attempt(addresses, LZ4, wrong, 1000, 0) == plain == decide(LZ4, wrong, 0)
    assert attempt(addresses, LZ4, wrong, 1000, 1) == oc.NOT_PLAIN
    assert decide(LZ4, wrong, 1) is None


@needs_libraries
@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE])
def test_gzip_of_every_kind(level: int, strategy: int, addresses: np.ndarray) -> None:
    for plain in SHAPES.values():
        data = deflate_gzip(plain, level=level, strategy=strategy)
        assert attempt(addresses, GZIP, data, len(plain)) == plain


@needs_libraries
@pytest.mark.parametrize("level", [-5, 1, 3, 9, 22])
def test_zstd_of_every_level(level: int, addresses: np.ndarray) -> None:
    """As streams, which do not know the size when they begin, and at once."""
    for plain in SHAPES.values() if level < 20 else (commits(9),):  # 22 has the largest window, and is slow
        stream = cramjam.zstd.Compressor(level=level)
        stream.compress(plain)
        streamed = bytes(stream.finish())
        at_once = bytes(cramjam.zstd.compress(plain, level=level))
        for data in (streamed, at_once):
            assert attempt(addresses, ZSTD, data, len(plain)) == plain


def test_every_compressed_batch_of_the_recordings(
    recording: Callable[[str], Path], addresses: np.ndarray, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    for name in RECORDINGS:
        for path in sorted(recording(name).rglob("*.log")):
            for batch in iter_batches(path.read_bytes()):
                if not isinstance(batch, RecordBatch) or batch.codec.id not in IDS:
                    continue
                data = compressed_bytes(batch)
                expected = batch.codec.decompress(data, batch.magic)
                made = attempt(addresses, batch.codec.id, data, len(expected) + d.SLACK, batch.magic)
                assert made == expected, f"{path}, {batch.position}"
                counts[f"{batch.compression} of magic {batch.magic}"] += 1
    for kind, count in sorted(counts.items()):
        record_property(kind, count)
    assert {kind.split()[0] for kind in counts} == {NAMES[codec_id] for codec_id in IDS}


def compressed_bytes(batch: RecordBatch) -> bytes:
    """Of magic 2 what follows the header; before that the value of a message, whose key is null."""
    if batch.magic == 2:
        return batch.raw[BATCH_HEADER_SIZE:]
    value = LEGACY_HEADER_SIZE[batch.magic] + 4
    assert batch.raw[value - 4 : value + 4] == b"\xff\xff\xff\xff" + (len(batch.raw) - value - 4).to_bytes(4)
    return batch.raw[value + 4 :]


# ------------------------------------------------------------------------------------------ what is not

_LITERALS = b"\x90abcdefghi"  # nine literals of lz4; a match follows
LZ4_BLOCKS = {
    "no block": b"",
    "ends with a match": _LITERALS + b"\4\0",
    "a distance of zero": _LITERALS + b"\0\0\x80" + b"z" * 8,
    "a distance before the begin": _LITERALS + b"\x0a\0\x80" + b"z" * 8,
    "literals cut off": b"\x90abc",
    "a length cut off": b"\xf0\xff\xff",
    "a match too near the end": _LITERALS + b"\4\0\x10z",
    "more than a block": b"\x1fa\1\0" + b"\xff" * 257 + b"\x90" + b"z" * 9,
}


@pytest.mark.parametrize("case", LZ4_BLOCKS)
def test_lz4_blocks_that_are_not_plain(case: str, addresses: np.ndarray) -> None:
    block = LZ4_BLOCKS[case]
    head = lz4_frame(b"")[:-4]
    data = head + struct.pack("<I", len(block) or LZ4_STORED | 0x10000 + 1) + block + bytes(4)
    assert not is_accepted(addresses, LZ4, data, room=1 << 18)
    assert attempt(addresses, LZ4, data, 1 << 18) == oc.NOT_PLAIN


@pytest.mark.parametrize("flags", [0x20, 0xA0, 0x40, 0x61, 0x00])
def test_lz4_frames_that_are_not_kafkas(flags: int, addresses: np.ndarray) -> None:
    data = lz4_frame(commits(3), flags=flags)
    assert attempt(addresses, LZ4, data, 1000) == oc.NOT_PLAIN
    assert decide(LZ4, data) is None


SNAPPY_BLOCKS = {
    "no size": b"",
    "a size cut off": b"\x80",
    "a size of six bytes": b"\x84\x80\x80\x80\x80\0\x0cabcd",
    "more than can be": b"\xff\xff\x7f\x0cabcd",
    "fewer bytes than declared": b"\5\x0cabcd",
    "more bytes than declared": b"\3\x0cabcd",
    "literals cut off": b"\x08\x1cabcd",
    "a literal's length cut off": b"\x46\xf4\1",
    "a copy cut off": b"\x08\x0cabcd\x0e\4",
    "a distance of zero": b"\x08\x0cabcd\1\0",
    "a distance before the begin": b"\x08\x0cabcd\1\5",
    "a copy beyond the size": b"\x08\x0cabcd\5\4",
}


@pytest.mark.parametrize("case", SNAPPY_BLOCKS)
def test_snappy_blocks_that_are_not_plain(case: str, addresses: np.ndarray) -> None:
    block = SNAPPY_BLOCKS[case]
    streamed = XERIAL_HEADER + struct.pack(">i", len(block)) + block
    for data in (block, streamed):
        assert not is_accepted(addresses, SNAPPY, data, room=1 << 22)


def test_snappy_streams_that_are_not_plain(addresses: np.ndarray) -> None:
    block = snappy_raw(commits(3))
    for data in (
        XERIAL_HEADER + struct.pack(">i", len(block) + 1) + block,
        XERIAL_HEADER + struct.pack(">i", -1) + block,
        XERIAL_HEADER + struct.pack(">i", len(block)) + block + b"\0\0",
    ):
        assert attempt(addresses, SNAPPY, data, 1000) == oc.NOT_PLAIN
        assert decide(SNAPPY, data) is None


@needs_libraries
def test_gzip_that_is_not_plain(addresses: np.ndarray) -> None:
    """Several members and padding are Java's to take; they are read, but not here."""
    plain = commits(3)
    data = deflate_gzip(plain)
    for more in (data, b"padding"):
        assert attempt(addresses, GZIP, data + more, 1000) == oc.NOT_PLAIN
        assert decide(GZIP, data + more) is not None
    for cut in range(len(data)):
        assert not is_accepted(addresses, GZIP, data[:cut])
    for wrong in (zlib.compress(plain), b"\0" * 30, data[:-8] + bytes(8), data[:-4] + bytes(4)):
        assert not is_accepted(addresses, GZIP, wrong)


def bits(*fields: tuple[int, int]) -> bytes:
    """Numbers of so many bits, the lowest bits first."""
    total = shift = 0
    for value, width in fields:
        total |= value << shift
        shift += width
    return total.to_bytes(-(-shift // 8), "little")


@needs_libraries
def test_gzip_that_libdeflate_takes_and_zlib_does_not(addresses: np.ndarray) -> None:
    """All their checksums of the content are right."""

    def member(deflated: bytes, plain: bytes, flags: int = 0, more: bytes = b"") -> bytes:
        trailer = struct.pack("<II", zlib.crc32(plain), len(plain))
        return b"\x1f\x8b\x08" + bytes((flags,)) + bytes(6) + more + deflated + trailer

    plain = commits(3)
    stream = zlib.compressobj(wbits=-15)
    deflated = stream.compress(plain) + stream.flush()
    # The fixed codes: "a", a match by the symbol 286, which is none, with the distance 1, the end.
    reserved = bits((3, 3), (0x89, 8), (0x63, 8), (0, 5), (0, 7))
    # Codes of its own: of the one distance there is a code of one bit, 0, and the match has a 1.
    incomplete = bytes.fromhex("0dc081000000008020d6fc253e0f")
    for data in (
        member(reserved, b"a" * 259),
        member(incomplete, b"aaaa"),
        member(deflated, plain, 2, b"\0\0"),  # the checksum of the header is not 0
    ):
        assert decide(GZIP, data) is None
        assert attempt(addresses, GZIP, data, 1000) == oc.NOT_PLAIN
    head = member(b"", b"", 2)[:10]
    checked = member(deflated, plain, 2, struct.pack("<H", zlib.crc32(head) & 0xFFFF))
    assert attempt(addresses, GZIP, checked, 1000) == plain == decide(GZIP, checked)


@needs_libraries
def test_zstd_that_is_not_plain(addresses: np.ndarray) -> None:
    plain = commits(3)
    data = CODECS[ZSTD].compress(plain, 2)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    for several in (data + data, skippable + data, data + skippable):
        assert attempt(addresses, ZSTD, several, 2000) == oc.NOT_PLAIN
        assert decide(ZSTD, several) is not None
    for cut in range(len(data)):
        assert not is_accepted(addresses, ZSTD, data[:cut])
    assert attempt(addresses, ZSTD, data, 1000, magic=1) == oc.NOT_PLAIN
    assert attempt(addresses, ZSTD, data + b"\0", 1000) == oc.NOT_PLAIN
    dictionary = zstd_frame((0, 5, b"\7hello"), flags=1)
    assert attempt(addresses, ZSTD, dictionary, 1000) == oc.NOT_PLAIN


@needs_libraries
def test_zstd_windows_that_streaming_refuses(addresses: np.ndarray) -> None:
    for window in range(256):
        data = zstd_frame((0, 5, b"hello"), window=window)
        is_small = window <= 17 << 3  # 128 MiB
        assert is_accepted(addresses, ZSTD, data) is is_small
        assert (decide(ZSTD, data) is not None) is is_small


@needs_libraries
def test_zstd_blocks_larger_than_blocks_may_be(addresses: np.ndarray) -> None:
    """ZSTD_decompressDCtx takes a repeated byte of any size; streaming does not."""
    for size, is_fine in ((128 * 1024, True), (128 * 1024 + 1, False), (200_000, False)):
        data = zstd_frame((1, size, b"x"))
        assert is_accepted(addresses, ZSTD, data, room=300_000) is is_fine
        assert (decide(ZSTD, data) is not None) is is_fine
    small_window = zstd_frame((1, 1024, b"x"), (1, 1025, b"y"), window=0)
    assert attempt(addresses, ZSTD, small_window, 4000) == oc.NOT_PLAIN


@needs_libraries
def test_zstd_distances_beyond_the_window(addresses: np.ndarray) -> None:
    """A window made smaller afterwards: what a distance beyond it gives depends on the decompressor's buffers."""
    stream = cramjam.zstd.Compressor(level=3)
    data = b""
    for _ in range(40):
        stream.compress(random.Random(9).randbytes(900))
        data += bytes(stream.flush())
    data += bytes(stream.finish())
    assert data[4] & 0x20 == 0
    small = data[:5] + b"\0" + data[6:]
    for one in (data, small):
        is_accepted(addresses, ZSTD, one, room=100_000)
    assert attempt(addresses, ZSTD, small, 100_000) == oc.NOT_PLAIN
    assert attempt(addresses, ZSTD, data, 100_000) == random.Random(9).randbytes(900) * 40


@needs_libraries
def test_more_than_the_bound_is_never_accepted(addresses: np.ndarray) -> None:
    bound = compression.MAX_DECOMPRESSED_BYTES
    target = np.empty(bound + (1 << 20), np.uint8)
    block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    blocks = (struct.pack("<I", len(block)) + block) * (bound >> 22)
    head = lz4_frame(b"", size_code=7)[:-4]
    one_more = struct.pack("<I", LZ4_STORED | 1) + b"x"
    for codec_id, data in (
        (LZ4, head + blocks + one_more + bytes(4)),
        (ZSTD, zstd_frame(*[(1, 128 * 1024, b"x")] * (bound >> 17), (1, 1, b"y"), window=17 * 8)),
        (GZIP, deflate_gzip(bytes(bound + 1), level=1)),
    ):
        source = np.frombuffer(data, np.uint8)
        assert decompress(codec_id, source, 0, len(source), 2, target, 0, addresses) == oc.NOT_PLAIN


def test_positions_and_codecs_that_cannot_be(addresses: np.ndarray) -> None:
    source = np.frombuffer(CODECS[SNAPPY].compress(commits(3), 2), np.uint8)
    target = np.zeros(1000, np.uint8)
    size = len(source)
    for start, end, at in ((-1, size, 0), (0, size + 1, 0), (9, 8, 0), (0, size, -1), (0, size, 1001)):
        assert decompress(SNAPPY, source, start, end, 2, target, at, addresses) == oc.NOT_PLAIN
    for codec_id in (-1, 0, 5, 6, 7):
        assert decompress(codec_id, source, 0, size, 2, target, 0, addresses) == oc.NOT_PLAIN
    assert not target.any()


# --------------------------------------------------------------------------------------- what is changed

_SEEDS = {
    codec_id: [
        *(CODECS[codec_id].compress(SHAPES[shape], 2) for shape in ("nothing", "one commit", "commits", "words")),
        CODECS[codec_id].compress(random.Random(7).randbytes(40) + bytes(60) + b"abc" * 30, 2),
    ]
    for codec_id in (GZIP, SNAPPY, LZ4, ZSTD)
}
_SEEDS[SNAPPY] += [snappy_raw(commits(4)), 2 * _SEEDS[SNAPPY][1]]
_SEEDS[LZ4] += [lz4_frame(commits(4), flags=0x7C, descriptor_tail=bytes(8)), lz4_frame(bytes(70_000))]
_SEEDS[ZSTD] += [zstd_frame((0, 4, b"abcd"), (1, 1000, b"x"), (0, 0, b"")), b"".join(_SEEDS[ZSTD][:2])]

Change = tuple[int, int, int]


def changed(data: bytes, changes: list[Change]) -> bytes:
    """Bytes flipped, set, taken out, put in, or repeated, at places that are counted around the whole."""
    out = bytearray(data)
    for kind, place, byte in changes:
        at = place % (len(out) + 1)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << byte % 8
        elif kind == 1 and at < len(out):
            out[at] = byte
        elif kind == 2:
            del out[at : at + byte % 9]
        elif kind == 3:
            out[at:at] = bytes((byte,))
        elif kind == 4:
            out[at:at] = out[at : at + byte]
        else:
            del out[at:]
    return bytes(out)


_CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 70_000), st.integers(0, 255)), min_size=1, max_size=4)


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    seed=st.integers(0, 9), changes=_CHANGES, room=st.sampled_from((0, 30, 300, 1000, 1 << 17)), magic=st.integers(0, 2)
)
def test_whatever_is_changed_is_never_read_differently(
    codec_id: int, seed: int, changes: list[Change], room: int, magic: int, addresses: np.ndarray
) -> None:
    seeds = _SEEDS[codec_id]
    is_accepted(addresses, codec_id, changed(seeds[seed % len(seeds)], changes), magic, room)


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_many_changes(codec_id: int, addresses: np.ndarray, record_property: Callable[[str, object], None]) -> None:
    rng = random.Random(10)
    accepted = sum(is_accepted(addresses, codec_id, data) for data in random_changes(codec_id, rng, 10 * EXAMPLES))
    record_property("accepted", accepted)
    assert accepted


def random_changes(codec_id: int, rng: random.Random, count: int) -> Iterator[bytes]:
    """Compressed bytes of several shapes, changed at one to three places."""
    for _ in range(count):
        changes = [(rng.randrange(6), rng.randrange(70_000), rng.randrange(256)) for _ in range(rng.randint(1, 3))]
        yield changed(rng.choice(_SEEDS[codec_id]), changes)


# --------------------------------------------------------------------------------------------- libraries


@needs_libraries
def test_what_is_not_there_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {codec_id: CODECS[codec_id].compress(commits(3), 2) for codec_id in IDS}
    library = lib.Library()
    for codec_id in IDS:
        assert attempt(library.addresses, codec_id, data[codec_id], 1000) == commits(3)
    library.close()
    library.close()
    monkeypatch.setattr(lib, "library_of", lambda codec: None)
    with lib.Library() as missing:
        for addresses in (library.addresses, missing.addresses):
            assert not addresses.any()
            assert attempt(addresses, GZIP, data[GZIP], 1000) == oc.NOT_PLAIN
            assert attempt(addresses, ZSTD, data[ZSTD], 1000) == oc.NOT_PLAIN
            assert attempt(addresses, LZ4, data[LZ4], 1000) == commits(3)


def test_the_doors_to_other_libraries_are_open() -> None:
    """A version that closes one makes its batches slow, not wrong: raise no bound without a look."""
    assert lib.closed_doors() == []


@pytest.mark.parametrize("codec", lib.DOORS)
def test_a_closed_door_is_told(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    door = lib.DOORS[codec]
    monkeypatch.setitem(lib.DOORS, codec, replace(door, functions=(*door.functions, "not_lent")))
    lib.library_of.cache_clear()
    (told,) = lib.closed_doors()
    lib.library_of.cache_clear()
    assert told.startswith(f"{codec}: {door.whose}")
    assert "not_lent" in told


def test_threads_with_libraries_of_their_own() -> None:
    shapes = list(SHAPES.values())[:6]
    data = [(codec_id, plain, CODECS[codec_id].compress(plain, 2)) for codec_id in IDS for plain in shapes]

    def work(_: int) -> bool:
        with lib.Library() as library:
            return all(
                attempt(library.addresses, codec_id, compressed, len(plain) + d.SLACK) == plain
                for codec_id, plain, compressed in data * (1 if IS_PYTHON else 50)
            )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.skipif(not IS_PYTHON, reason="for plain Python only")
def test_in_plain_python_two_codecs_are_doubtful(addresses: np.ndarray) -> None:
    for codec_id in (GZIP, ZSTD):
        assert attempt(addresses, codec_id, CODECS[codec_id].compress(b"abc", 2), 1000) == oc.NOT_PLAIN
