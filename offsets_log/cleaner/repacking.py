"""Batches that lost records, compressed again as they were (``CL-31``)."""

from __future__ import annotations

import zlib

import google_crc32c

from offsets_log.broker.batches import LEGACY_ATTRIBUTES_POSITION
from offsets_log.log_format import batch as b
from offsets_log.log_format.compression import codec_of

_LENGTH = slice(8, b.LOG_OVERHEAD)
_CRC = slice(b.CRC_POSITION, b.ATTRIBUTES_POSITION)
_ATTRIBUTES = slice(b.ATTRIBUTES_POSITION, b.ATTRIBUTES_POSITION + 2)
_LEGACY_CRC = slice(b.LEGACY_CRC_POSITION, b.MAGIC_POSITION)
_LENGTH_BYTES = 4
_NO_KEY = b"\xff" * _LENGTH_BYTES


def repacked(plain: bytes) -> bytes:
    """Compress the records of a batch by the codec in its header.

    Args:
        plain: of magic 0 and 1 a message whose value is not compressed, with any bytes in the place of the lengths.
    """
    magic = plain[b.MAGIC_POSITION]
    if magic < b.NEWEST_MAGIC:
        return _message(plain, magic)
    codec = codec_of(int.from_bytes(plain[_ATTRIBUTES]))
    raw = bytearray(plain[: b.BATCH_HEADER_SIZE] + codec.compress(plain[b.BATCH_HEADER_SIZE :], b.NEWEST_MAGIC))
    raw[_LENGTH] = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    raw[_CRC] = google_crc32c.value(bytes(raw[b.ATTRIBUTES_POSITION :])).to_bytes(4)
    return bytes(raw)


def _message(plain: bytes, magic: int) -> bytes:
    """Compress the value of a message."""
    header_size = b.LEGACY_HEADER_SIZE[magic]
    inside = plain[header_size + 2 * _LENGTH_BYTES :]
    value = codec_of(plain[LEGACY_ATTRIBUTES_POSITION]).compress(inside, magic)
    raw = bytearray(plain[:header_size] + _NO_KEY + len(value).to_bytes(_LENGTH_BYTES) + value)
    raw[_LENGTH] = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    raw[_LEGACY_CRC] = zlib.crc32(memoryview(raw)[b.MAGIC_POSITION :]).to_bytes(4)
    return bytes(raw)
