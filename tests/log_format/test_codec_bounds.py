"""Compressed bytes at the bounds of each codec: what is stored, checked, declared, and how much may come out."""

from __future__ import annotations

import gzip
import random
import struct

import cramjam
import pytest
import xxhash

from offsets_log.errors import CorruptBatchError, UnsupportedCompressionTypeError
from offsets_log.log_format import compression
from offsets_log.log_format.compression import CODEC_NAMED, LZ4_MAGIC, codec_name, codec_of

NAMES = [name for name in CODEC_NAMED if name != "none"]
RANDOM = random.Random(1).randbytes(150_000)
LZ4 = CODEC_NAMED["lz4"]


@pytest.mark.parametrize("other_bits", [0, 0x08, 0x38, 0xFFF8])
def test_the_lowest_three_bits_of_attributes_are_the_codec_whatever_the_others(other_bits: int) -> None:
    """``CompressionType``: five of the eight numbers have one."""
    for codec_id, name in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        assert codec_name(codec_id | other_bits) == codec_of(codec_id | other_bits).name == name
        assert codec_of(codec_id | other_bits) is CODEC_NAMED[name]
    for codec_id in (5, 6, 7):
        assert codec_name(codec_id | other_bits) == f"unknown({codec_id})"
        with pytest.raises(UnsupportedCompressionTypeError, match=f"unknown compression type {codec_id}"):
            codec_of(codec_id | other_bits)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_no_codec_makes_smaller_are_given_back(name: str) -> None:
    codec = CODEC_NAMED[name]
    packed = codec.compress(RANDOM, 2)
    assert codec.decompress(packed, 2) == RANDOM
    assert len(packed) <= len(RANDOM) + 100


@pytest.mark.parametrize("zeros", [6, 7, 8])
def test_a_block_of_lz4_that_becomes_no_smaller_is_stored(zeros: int) -> None:
    """With so many zeros among other bytes it becomes a byte larger, as long, and a byte smaller."""
    plain = RANDOM[:50] + bytes(zeros) + RANDOM[50:100]
    block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
    assert len(block) - len(plain) == 7 - zeros
    stored = struct.pack("<I", len(plain) | compression.LZ4_STORED) + plain
    assert LZ4.compress(plain, 2)[7:] == (stored if zeros < 8 else struct.pack("<I", len(block)) + block) + bytes(4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [bytes(100_000), RANDOM], ids=["zeros", "random"])
def test_as_much_as_may_be_comes_out_and_no_byte_more(name: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = CODEC_NAMED[name]
    packed = codec.compress(data, 2)
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", len(data))
    assert codec.decompress(packed, 2) == data
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", len(data) - 1)
    with pytest.raises(CorruptBatchError, match=f"decompresses to more than {len(data) - 1} bytes"):
        codec.decompress(packed, 2)


def test_members_of_gzip_have_the_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", 6)
    assert CODEC_NAMED["gzip"].decompress(gzip.compress(b"one") + gzip.compress(b"two"), 2) == b"onetwo"
    with pytest.raises(CorruptBatchError, match="more than 6"):
        CODEC_NAMED["gzip"].decompress(gzip.compress(b"one") + gzip.compress(b"four"), 2)
    with pytest.raises(CorruptBatchError, match="cut off"):
        CODEC_NAMED["gzip"].decompress(gzip.compress(b"one") + gzip.compress(b"two")[:-1], 2)


def frame(
    *blocks: bytes, flags: int = 0x60, size: int | None = None, stored: bool = True, block_size: int = 4
) -> bytes:
    """A frame of LZ4.

    Args:
        block_size: the number for how large its blocks may be, in Kafka 4: 64 KiB.
        flags: with bit 4 each block has a checksum behind it.
        size: what its header says of its contents.
    """
    descriptor = bytes((flags | (0x08 if size is not None else 0), block_size << 4))
    descriptor += b"" if size is None else struct.pack("<Q", size)
    head = LZ4_MAGIC + descriptor + bytes((xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF,))
    mark = compression.LZ4_STORED if stored else 0
    checksum = bytes(4) if flags & 0x10 else b""
    return head + b"".join(struct.pack("<I", len(one) | mark) + one + checksum for one in blocks) + bytes(4)


@pytest.mark.parametrize("size", [None, 11])
@pytest.mark.parametrize("flags", [0x60, 0x70])
def test_a_frame_of_lz4_may_tell_its_size_and_have_checksums_behind_blocks(flags: int, size: int | None) -> None:
    whole = frame(b"some ", b"bytes.", flags=flags, size=size)
    assert LZ4.decompress(whole, 2) == b"some bytes."
    for end in range(len(whole) - 4):
        with pytest.raises(CorruptBatchError, match="lz4: "):
            LZ4.decompress(whole[:end], 2)


@pytest.mark.parametrize(("block_size", "most"), [(4, 64 << 10), (5, 256 << 10), (6, 1 << 20), (7, 4 << 20)])
def test_a_block_of_lz4_is_no_larger_than_its_frame_says(block_size: int, most: int) -> None:
    """Neither as it is stored nor as what it becomes."""
    assert LZ4.decompress(frame(bytes(most), block_size=block_size), 2) == bytes(most)
    with pytest.raises(CorruptBatchError, match=f"a block takes {most + 1} bytes"):
        LZ4.decompress(frame(bytes(most + 1), block_size=block_size), 2)
    for size in (most, most + 1):
        packed = frame(
            bytes(cramjam.lz4.compress_block(bytes(size), store_size=False)), stored=False, block_size=block_size
        )
        if size == most:
            assert LZ4.decompress(packed, 2) == bytes(most)
        else:
            with pytest.raises(CorruptBatchError, match="lz4: "):
                LZ4.decompress(packed, 2)


def test_a_block_of_lz4_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(CorruptBatchError, match="lz4: "):
        LZ4.decompress(frame(b"\xf0\xff\xff", stored=False), 2)


def test_the_block_of_snappy_may_be_as_long_as_an_element_makes_it() -> None:
    """One that declares no more than its elements could make is tried; a copy of three bytes makes 64."""
    snappy = CODEC_NAMED["snappy"]
    assert snappy.decompress(snappy.compress(bytes(1 << 15), 2), 2) == bytes(1 << 15)
    for declared, words in ((224, "snappy: "), (225, "snappy: 5 bytes declare 225")):
        with pytest.raises(CorruptBatchError, match=words) as caught:
            snappy.decompress(bytes((declared & 0x7F | 0x80, declared >> 7)) + b"\0\0\0", 2)
        assert ("declare" in str(caught.value)) is (declared == 225)
