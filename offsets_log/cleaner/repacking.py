"""Batches that lost records, compressed again as they were (``CL-31``)."""

from __future__ import annotations

import google_crc32c

from offsets_log.log_format import batch as b
from offsets_log.log_format.compression import codec_of

_LENGTH = slice(8, b.LOG_OVERHEAD)
_CRC = slice(b.CRC_POSITION, b.ATTRIBUTES_POSITION)
_ATTRIBUTES = slice(b.ATTRIBUTES_POSITION, b.ATTRIBUTES_POSITION + 2)


def repacked(plain: bytes) -> bytes:
    """Compress the records of a batch of magic 2 by the codec in its header."""
    codec = codec_of(int.from_bytes(plain[_ATTRIBUTES]))
    raw = bytearray(plain[: b.BATCH_HEADER_SIZE] + codec.compress(plain[b.BATCH_HEADER_SIZE :], b.NEWEST_MAGIC))
    raw[_LENGTH] = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    raw[_CRC] = google_crc32c.value(bytes(raw[b.ATTRIBUTES_POSITION :])).to_bytes(4)
    return bytes(raw)
