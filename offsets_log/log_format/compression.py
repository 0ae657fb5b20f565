"""Codecs: the id in a batch's attributes → bounded decompression and compression.

Every function is bounded: output beyond `MAX_DECOMPRESSED_BYTES` is an error, whatever the compressed bytes declare.

References: ``clients/.../common/compress/*.java``, ``Lz4BlockInputStream.java``; the xerial snappy stream format.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import cramjam
import xxhash

from offsets_log.errors import CorruptBatchError, UnsupportedCompressionTypeError

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
"""Limit for one batch. Kafka's own limit, message.max.bytes (1 MiB by default), counts compressed bytes."""

_INT32 = struct.Struct(">i")
_UINT32_LE = struct.Struct("<I")


def _too_large() -> CorruptBatchError:
    return CorruptBatchError(f"it decompresses to more than {MAX_DECOMPRESSED_BYTES} bytes")


# ------------------------------------------------------------------------------------------------ gzip


def _decompress_gzip(data: bytes, magic: int) -> bytes:
    out = bytearray()
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(data, MAX_DECOMPRESSED_BYTES + 1 - len(out))
        except zlib.error as error:
            if out:
                break  # Java's GZIPInputStream takes what follows a whole member for padding
            raise CorruptBatchError(f"gzip: {error}") from None
        if len(out) > MAX_DECOMPRESSED_BYTES:
            raise _too_large()
        if not stream.eof:
            raise CorruptBatchError("gzip: the stream is cut off")
        data = stream.unused_data
    return bytes(out)


def _compress_gzip(data: bytes, magic: int) -> bytes:
    stream = zlib.compressobj(wbits=31)
    return stream.compress(data) + stream.flush()


# ---------------------------------------------------------------------------------------------- snappy

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + _INT32.pack(1) + _INT32.pack(1)
XERIAL_BLOCK = 32 * 1024


def _snappy_block(block: bytes, room: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > room:
            raise _too_large()
        # A snappy element of three bytes makes at most 64: a declared length beyond cannot be true.
        if size > 32 * len(block) + 64:
            raise CorruptBatchError(f"snappy: {len(block)} bytes declare {size}")
        out = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"snappy: {error}") from None
    return bytes(out)


def _decompress_snappy(data: bytes, magic: int) -> bytes:
    """Decompress a xerial stream, or a single raw block if its magic is missing."""
    if len(data) < len(XERIAL_HEADER) or not data.startswith(XERIAL_MAGIC):
        return _snappy_block(data, MAX_DECOMPRESSED_BYTES)
    out = bytearray()
    at = len(XERIAL_HEADER)
    while at < len(data):
        if data.startswith(XERIAL_MAGIC, at):  # streams may be joined end to end
            at += len(XERIAL_HEADER)
            continue
        if at + _INT32.size > len(data):
            raise CorruptBatchError("snappy: a block length is cut off")
        (size,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        if not 0 <= size <= len(data) - at:
            raise CorruptBatchError(f"snappy: a block takes {size} bytes, {len(data) - at} are left")
        out += _snappy_block(data[at : at + size], MAX_DECOMPRESSED_BYTES - len(out))
        at += size
    return bytes(out)


def _compress_snappy(data: bytes, magic: int) -> bytes:
    out = bytearray(XERIAL_HEADER)
    for at in range(0, len(data), XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + XERIAL_BLOCK]))
        out += _INT32.pack(len(block)) + block
    return bytes(out)


# ------------------------------------------------------------------------------------------------- lz4

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_BLOCK = 64 * 1024
LZ4_BLOCK_SIZES = {4: 64 * 1024, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}
LZ4_STORED = 0x80000000


def _lz4_header_checksum(descriptor: bytes, magic: int) -> int:
    """Return a frame header's checksum: magic 0 also hashes the magic bytes, an old mistake (``records:K1``)."""
    hashed = LZ4_MAGIC + descriptor if magic == 0 else descriptor
    checksum: int = xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF
    return checksum


@dataclass(frozen=True, slots=True)
class _Lz4Header:
    end: int
    block_size: int
    has_block_checksum: bool


def _read_lz4_header(data: bytes, at: int, magic: int) -> _Lz4Header:
    if not data.startswith(LZ4_MAGIC, at) or len(data) < at + 7:
        raise CorruptBatchError("lz4: there is no frame header")
    flags, block_descriptor = data[at + 4], data[at + 5]
    if flags >> 6 != 1:
        raise CorruptBatchError(f"lz4: frame version {flags >> 6}")
    if not flags & 0x20 or flags & 0x01:
        raise CorruptBatchError("lz4: dependent blocks and dictionaries are not Kafka's")
    descriptor_end = at + 6 + (8 if flags & 0x08 else 0)
    if descriptor_end >= len(data):
        raise CorruptBatchError("lz4: the frame header is cut off")
    block_size = LZ4_BLOCK_SIZES.get(block_descriptor >> 4 & 7)
    if block_size is None:
        raise CorruptBatchError("lz4: unknown block size")
    if magic > 0 and data[descriptor_end] != _lz4_header_checksum(data[at + 4 : descriptor_end], magic):
        raise CorruptBatchError("lz4: the header checksum is wrong")
    return _Lz4Header(descriptor_end + 1, block_size, bool(flags & 0x10))


def _decompress_lz4(data: bytes, magic: int) -> bytes:
    header = _read_lz4_header(data, 0, magic)
    out = bytearray()
    at = header.end
    buffer = bytearray(header.block_size)
    while True:
        if at + 4 > len(data):
            raise CorruptBatchError("lz4: a block size is cut off")
        (size,) = _UINT32_LE.unpack_from(data, at)
        at += 4
        if size == 0:
            return bytes(out)
        stored, size = bool(size & LZ4_STORED), size & ~LZ4_STORED
        if size > min(header.block_size, len(data) - at):
            raise CorruptBatchError(f"lz4: a block takes {size} bytes, {len(data) - at} are left")
        block = data[at : at + size]
        if stored:
            out += block
        else:
            try:
                made = cramjam.lz4.decompress_block_into(block, buffer, output_len=len(buffer))
            except cramjam.DecompressionError as error:
                raise CorruptBatchError(f"lz4: {error}") from None
            out += memoryview(buffer)[:made]
        if len(out) > MAX_DECOMPRESSED_BYTES:
            raise _too_large()
        at += size + (4 if header.has_block_checksum else 0)


def _compress_lz4(data: bytes, magic: int) -> bytes:
    descriptor = bytes((0x60, 0x40))  # version 1, independent blocks, no checksums; blocks of 64 KiB
    out = bytearray(LZ4_MAGIC + descriptor + bytes((_lz4_header_checksum(descriptor, magic),)))
    for at in range(0, len(data), LZ4_BLOCK):
        plain = data[at : at + LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += _UINT32_LE.pack(len(block)) + block
        else:
            out += _UINT32_LE.pack(len(plain) | LZ4_STORED) + plain
    return bytes(out + _UINT32_LE.pack(0))


# ------------------------------------------------------------------------------------------------ zstd


def _decompress_zstd(data: bytes, magic: int) -> bytes:
    if magic < 2:
        raise CorruptBatchError("zstd needs magic 2")
    size = max(64 * 1024, 4 * len(data))
    while True:
        out = bytearray(min(size, MAX_DECOMPRESSED_BYTES))
        try:
            made = cramjam.zstd.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise CorruptBatchError(f"zstd: {error}") from None
            if size >= MAX_DECOMPRESSED_BYTES:
                raise _too_large() from None
            size *= 8
            continue
        return bytes(memoryview(out)[:made])


def _compress_zstd(data: bytes, magic: int) -> bytes:
    return bytes(cramjam.zstd.compress(data))


# ----------------------------------------------------------------------------------------------- table


@dataclass(frozen=True, slots=True)
class Codec:
    """One compression type: its id in the attributes, its name, and its two functions of (bytes, magic)."""

    id: int
    name: str
    decompress: Callable[[bytes, int], bytes]
    compress: Callable[[bytes, int], bytes]


CODECS: tuple[Codec, ...] = (
    Codec(0, "none", lambda data, magic: data, lambda data, magic: data),
    Codec(1, "gzip", _decompress_gzip, _compress_gzip),
    Codec(2, "snappy", _decompress_snappy, _compress_snappy),
    Codec(3, "lz4", _decompress_lz4, _compress_lz4),
    Codec(4, "zstd", _decompress_zstd, _compress_zstd),
)
CODEC_MASK = 0x07
CODEC_NAMED = {codec.name: codec for codec in CODECS}


def codec_name(attributes: int) -> str:
    """Return the name of the codec in a batch's attributes, or its id if it is unknown."""
    codec_id = attributes & CODEC_MASK
    return CODECS[codec_id].name if codec_id < len(CODECS) else f"unknown({codec_id})"


def codec_of(attributes: int) -> Codec:
    """Return the codec in a batch's attributes (bits 0–2).

    Raises:
        UnsupportedCompressionTypeError: the id is 5, 6 or 7.
    """
    codec_id = attributes & CODEC_MASK
    if codec_id >= len(CODECS):
        raise UnsupportedCompressionTypeError(f"unknown compression type {codec_id}", field="attributes")
    return CODECS[codec_id]
