"""Decode what clients keep in a commit's text: the partition time of Kafka Streams, progress of parallel consumers.

Both are base64 of bytes whose first one tells which it is. Nothing else marks them, so a text counts as one of them
only if all of its bytes are exactly what the client's own encoder writes.

Kafka Streams        1, or 2 since 3.6: partition time (int64); in 2, if there is any, metadata of processors: their
                     number (int32), then key (int32 size, UTF-8) and time (int64) of each.
parallel consumers   a letter for each encoding: a bit set, its length first (v1 int16, v2 int32), one bit for each
                     record from the committed offset on, lowest bit first, 1 for done, and a spare byte; or the lengths
                     of runs (v1 int16, v2 int32), of records not done, done, not done … in turn. Compressed: a zstd
                     frame of these.

References: ``TopicPartitionMetadata.java``, ``ProcessorMetadata.java`` (apache/kafka, streams/processor/internals);
``OffsetEncoding.java``, ``EncodedOffsetPair.java``, ``BitSetEncoder.java``, ``RunLengthEncoder.java``
(confluentinc/parallel-consumer, parallelconsumer/offsets), whose ``ByteArray`` has no encoder and is not read here.
"""

from __future__ import annotations

import base64
import io
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import zstandard

from offsets_log.log_format.java_text import encode_string

Json = dict[str, Any]

MAX_DECOMPRESSED_BYTES = 1 << 20
MAX_RUNS = 100_000
"""Limits of decoding: a broker allows 4096 characters of metadata, and no client's data exceeds these bounds."""

ZSTD_FRAME = b"\x28\xb5\x2f\xfd"


class _NotThisError(Exception):
    """The bytes are not of the form they seemed to have."""


def decode_commit_metadata(metadata: str, committed_offset: int) -> Json | None:
    """Decode what a commit's metadata contains, where it is more than text.

    Returns:
        ``{"format": "kafka-streams" | "parallel-consumer", …}``; ``{"format": "hex", "hex": …}`` for anything that is
        not readable text; None for text, even empty.
    """
    raw = _base64(metadata)
    if raw:
        decode = FORMATS.get(raw[0])
        try:
            if decode is not None:
                return decode(raw[1:], committed_offset)
        except (_NotThisError, struct.error, UnicodeDecodeError, zstandard.ZstdError):
            pass
    if any(letter == "\ufffd" or _is_unreadable(letter) for letter in metadata):
        return {"format": "hex", "hex": encode_string(metadata).hex()}
    return None


def _is_unreadable(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cn", "Co") and letter not in "\t\n\r"


def _base64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text)
    except ValueError:
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _require(holds: bool) -> None:
    if not holds:
        raise _NotThisError


# ------------------------------------------------------------------------------------------ Kafka Streams


def _streams_1(data: bytes, committed_offset: int) -> Json:
    (partition_time,) = struct.unpack(">q", data)
    _require(partition_time >= -1)
    return {"format": "kafka-streams", "version": 1, "partitionTime": partition_time}


def _streams_2(data: bytes, committed_offset: int) -> Json:
    result = _streams_1(data[:8], committed_offset) | {"version": 2, "processorMetadata": {}}
    if len(data) > 8:
        (count,) = struct.unpack_from(">i", data, 8)
        at, entries = 12, result["processorMetadata"]
        _require(0 < count <= len(data))
        for _ in range(count):
            (size,) = struct.unpack_from(">i", data, at)
            _require(0 <= size <= len(data) - at - 12)
            key = data[at + 4 : at + 4 + size].decode()
            (entries[key],) = struct.unpack_from(">q", data, at + 4 + size)
            at += 12 + size
        _require(at == len(data) and len(entries) == count)
    return result


# ------------------------------------------------------------------------------------- parallel consumers

Runs = Iterator[tuple[int, bool]]
"""Lengths of runs of records, and whether the records of a run are done."""


def _bit_set(data: bytes, number: struct.Struct) -> Runs:
    (length,) = number.unpack_from(data)
    bits = data[number.size :]
    _require(length > 0 and len(bits) == -(-length // 8) + 1)
    value = int.from_bytes(bits, "little")
    _require(value >> length == 0)
    begin = 0
    while begin < length:
        is_done = bool(value & 1)
        rest = ~value if is_done else value
        same = (rest & -rest).bit_length() - 1 if rest else length - begin
        same = min(same, length - begin)
        yield same, is_done
        begin += same
        value >>= same


def _run_lengths(data: bytes, number: struct.Struct) -> Runs:
    _require(len(data) > 0 and len(data) % number.size == 0)
    for i, (length,) in enumerate(number.iter_unpack(data)):
        _require(length > 0 or (length == 0 and i == 0))
        yield length, i % 2 == 1


@dataclass(frozen=True, slots=True)
class _Encoding:
    """One encoding in which a parallel consumer writes what it has done."""

    name: str
    runs: Callable[[bytes, struct.Struct], Runs]
    number: struct.Struct
    is_compressed: bool = False

    def decode(self, data: bytes, committed_offset: int) -> Json:
        runs = self.runs(_decompressed(data) if self.is_compressed else data, self.number)
        last, ranges, incomplete = _ranges(runs, committed_offset)
        return {
            "format": "parallel-consumer",
            "encoding": self.name,
            "highestSeenOffset": last,
            "incompleteOffsets": ranges,
            "incompleteCount": incomplete,
        }


def _ranges(runs: Iterable[tuple[int, bool]], committed_offset: int) -> tuple[int, list[list[int]], int]:
    """Return the last offset described, first and last offset of each range not done, and how many these hold."""
    offset, ranges, incomplete = committed_offset, list[list[int]](), 0
    for i, (length, is_done) in enumerate(runs):
        _require(i < MAX_RUNS)
        if length and not is_done:
            ranges.append([offset, offset + length - 1])
            incomplete += length
        offset += length
    _require(offset > committed_offset)
    return offset - 1, ranges, incomplete


def _decompressed(data: bytes) -> bytes:
    _require(data.startswith(ZSTD_FRAME))
    made = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read(MAX_DECOMPRESSED_BYTES + 1)
    _require(len(made) <= MAX_DECOMPRESSED_BYTES)
    return made


SHORT, INT = struct.Struct(">h"), struct.Struct(">i")

ENCODINGS = {
    "l": _Encoding("BitSet", _bit_set, SHORT),
    "a": _Encoding("BitSetCompressed", _bit_set, SHORT, is_compressed=True),
    "n": _Encoding("RunLength", _run_lengths, SHORT),
    "J": _Encoding("RunLengthCompressed", _run_lengths, SHORT, is_compressed=True),
    "o": _Encoding("BitSetV2", _bit_set, INT),
    "s": _Encoding("BitSetV2Compressed", _bit_set, INT, is_compressed=True),
    "e": _Encoding("RunLengthV2", _run_lengths, INT),
    "p": _Encoding("RunLengthV2Compressed", _run_lengths, INT, is_compressed=True),
}

FORMATS: dict[int, Callable[[bytes, int], Json]] = {
    1: _streams_1,
    2: _streams_2,
    **{ord(letter): encoding.decode for letter, encoding in ENCODINGS.items()},
}
"""First byte → how to decode the bytes after it."""
