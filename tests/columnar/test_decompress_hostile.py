"""Decompression in kernels of bytes that are wrong or were changed: nothing is read that `compression.py` refuses."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar import outcomes as oc
from offsets_log.log_format import compression
from offsets_log.log_format.compression import CODECS, LZ4_STORED, XERIAL_HEADER
from tests.columnar.codec_bytes import (
    EXAMPLES,
    GZIP,
    IDS,
    LZ4,
    NAMES,
    SHAPES,
    SNAPPY,
    ZSTD,
    attempt,
    commits,
    decide,
    decompress,
    deflate_gzip,
    is_accepted,
    lz4_frame,
    needs_libraries,
    snappy_raw,
    zstd_frame,
)
from tests.sizes import examples

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
@examples(EXAMPLES)
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
