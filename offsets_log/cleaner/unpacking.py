"""Compressed batches on their way through kernels, which know plain ones only."""

from __future__ import annotations

from typing import NamedTuple

import google_crc32c

from offsets_log.broker.batches import FileBatch
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.compression import CODEC_MASK, CODECS

_LENGTH = slice(8, b.LOG_OVERHEAD)
_CRC = slice(b.CRC_POSITION, b.ATTRIBUTES_POSITION)
_ATTRIBUTES = slice(b.ATTRIBUTES_POSITION, b.ATTRIBUTES_POSITION + 2)
_MAX_TIMESTAMP = slice(35, 43)


class Repacked(NamedTuple):
    """A batch that was compressed anew."""

    raw: bytes
    max_timestamp_ms: int


def unpacked(batch: FileBatch) -> bytes | None:
    """A compressed batch of magic 2 as a plain one, without a checksum; None of any other, and where it cannot be."""
    codec_id = batch.attributes & CODEC_MASK
    if not 0 < codec_id < len(CODECS):
        return None
    raw = batch.raw()
    try:
        body = CODECS[codec_id].decompress(raw[b.BATCH_HEADER_SIZE :], batch.magic)
    except OffsetsLogError:
        return None
    header = bytearray(raw[: b.BATCH_HEADER_SIZE])
    header[_LENGTH] = (b.BATCH_HEADER_SIZE - b.LOG_OVERHEAD + len(body)).to_bytes(4)
    header[_ATTRIBUTES] = (int.from_bytes(header[_ATTRIBUTES]) & ~CODEC_MASK).to_bytes(2)
    return bytes(header) + body


def repacked(plain: bytes, batch: FileBatch) -> Repacked:
    """A plain batch compressed as another one is (``CL-31``)."""
    codec = CODECS[batch.attributes & CODEC_MASK]
    body = codec.compress(plain[b.BATCH_HEADER_SIZE :], batch.magic)
    raw = bytearray(plain[: b.BATCH_HEADER_SIZE] + body)
    raw[_LENGTH] = (len(raw) - b.LOG_OVERHEAD).to_bytes(4)
    raw[_ATTRIBUTES] = (int.from_bytes(raw[_ATTRIBUTES]) | codec.id).to_bytes(2)
    raw[_CRC] = google_crc32c.value(bytes(raw[b.ATTRIBUTES_POSITION :])).to_bytes(4)
    return Repacked(bytes(raw), int.from_bytes(raw[_MAX_TIMESTAMP], signed=True))
